package agree

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FolderName is the folder in the data folder that makes a risso serve one of several controllers.
const FolderName = "controller"

// The files in the folder.
const (
	settingsFile = "controller.json"
	caFile       = "ca.crt"
	caKeyFile    = "ca.key"
	certFile     = "node.crt"
	keyFile      = "node.key"
	logFile      = "log.db"
)

// Settings say who a controller is.
type Settings struct {
	Cluster   string `json:"cluster"`   // the same for all that share a state
	Name      string `json:"name"`      // of this controller
	Address   string `json:"address"`   // host:port at which the others reach it
	Listen    string `json:"listen"`    // host:port at which it listens; empty: at Address
	URL       string `json:"url"`       // of its page, for the others' users; empty: as risso serve listens
	Peers     []Peer `json:"peers"`     // who is asked to be let in; Raft's own configuration says who takes part
	Heartbeat int    `json:"heartbeat"` // milliseconds without a sign of the leader until another one is elected
}

// Peer is another controller.
type Peer struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// DefaultHeartbeat is how long a leader may be silent.
const DefaultHeartbeat = 300 * time.Millisecond

// leastHeartbeat is shorter than which processes that wait for a processor are taken for dead.
const leastHeartbeat = 50 * time.Millisecond

// heartbeat is how long a leader may be silent.
func (s Settings) heartbeat() time.Duration {
	if s.Heartbeat == 0 {
		return DefaultHeartbeat
	}
	return time.Duration(s.Heartbeat) * time.Millisecond
}

// Check says what is wrong with settings that a person gave.
func (s Settings) Check() error {
	switch host, port, err := net.SplitHostPort(s.Address); {
	case s.Name == "" || strings.ContainsAny(s.Name, " /\\\t\n"):
		return fmt.Errorf("name %q: give the controller a name without blanks and slashes", s.Name)
	case err != nil || port == "" || port == "0" || host == "":
		return fmt.Errorf("address %q: write it as host:port, at which the other controllers reach this one", s.Address)
	case s.heartbeat() < leastHeartbeat || s.heartbeat() > time.Minute:
		return fmt.Errorf("heartbeat %s: between %s and a minute", s.heartbeat(), leastHeartbeat)
	}
	return nil
}

// Folder is what makes a risso serve one of several controllers: who it is and its keys.
type Folder struct {
	Path string
	Settings
}

// OpenFolder reads the folder of a data folder; false: there is none, and risso serve is the only controller.
func OpenFolder(data string) (f Folder, there bool, err error) {
	f.Path = filepath.Join(data, FolderName)
	text, err := os.ReadFile(filepath.Join(f.Path, settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.Settings)
	}
	if err != nil {
		return f, false, fmt.Errorf("read who this controller is: %w", err)
	}
	return f, true, nil
}

// Invitation lets another risso serve become one of the controllers. It has the key that signs their certificates: whoever has it is one of them.
type Invitation struct {
	Format    string `json:"format"`
	Cluster   string `json:"cluster"`
	Peers     []Peer `json:"peers"`
	Heartbeat int    `json:"heartbeat"`
	CA        string `json:"ca"`
	CAKey     string `json:"ca_key"`
}

const invitationFormat = "risso invitation 1"

// ParseInvitation reads an invitation.
func ParseInvitation(text []byte) (i Invitation, err error) {
	if err := json.Unmarshal(text, &i); err != nil || i.Format != invitationFormat {
		return i, errors.New("it is no invitation that risso controller invite wrote")
	}
	return i, nil
}

// Invitation makes an invitation from what this controller has.
func (f Folder) Invitation(peers []Peer) (i Invitation, err error) {
	ca, err := os.ReadFile(filepath.Join(f.Path, caFile))
	if err != nil {
		return i, fmt.Errorf("invite: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(f.Path, caKeyFile))
	if err != nil {
		return i, fmt.Errorf("invite: %w", err)
	}
	return Invitation{Format: invitationFormat, Cluster: f.Cluster, Peers: peers, Heartbeat: f.Heartbeat, CA: string(ca), CAKey: string(key)}, nil
}

// MakeFolder makes the folder of the first controller, with a new authority for certificates.
func MakeFolder(data string, s Settings) (Folder, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Folder{}, fmt.Errorf("make keys: %w", err)
	}
	ca := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "Risso controllers " + s.Cluster}, NotBefore: alwaysFrom, NotAfter: alwaysTo,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, public, private)
	if err != nil {
		return Folder{}, fmt.Errorf("make keys: %w", err)
	}
	key, err := keyText(private)
	if err != nil {
		return Folder{}, err
	}
	return writeFolder(data, s, certText(der), key)
}

// JoinFolder makes the folder of a controller that was invited.
func JoinFolder(data string, s Settings, i Invitation) (Folder, error) {
	s.Cluster, s.Peers, s.Heartbeat = i.Cluster, i.Peers, i.Heartbeat
	return writeFolder(data, s, []byte(i.CA), []byte(i.CAKey))
}

// Certificates do not end: the others forget who is removed, and clocks may be wrong.
var (
	alwaysFrom = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	alwaysTo   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// serverName is the name by which controllers know each other's certificates.
const serverName = "controller.risso.internal"

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails: it ends the program instead
	return new(big.Int).SetBytes(b)
}

func certText(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyText(k crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, fmt.Errorf("write down a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// writeFolder makes a key for a controller, has it signed, and writes everything; the settings last, as they make it valid.
func writeFolder(data string, s Settings, ca, caKey []byte) (Folder, error) {
	f := Folder{Path: filepath.Join(data, FolderName), Settings: s}
	if err := s.Check(); err != nil {
		return f, err
	}
	authority, err := tls.X509KeyPair(ca, caKey)
	if err != nil {
		return f, fmt.Errorf("read the authority's key: %w", err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return f, fmt.Errorf("make keys: %w", err)
	}
	cert := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: s.Name}, DNSNames: []string{serverName}, NotBefore: alwaysFrom, NotAfter: alwaysTo,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, cert, authority.Leaf, public, authority.PrivateKey)
	if err != nil {
		return f, fmt.Errorf("sign the controller's key: %w", err)
	}
	key, err := keyText(private)
	if err != nil {
		return f, err
	}
	settings, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return f, fmt.Errorf("write down who this controller is: %w", err)
	}
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return f, fmt.Errorf("make the controller's folder: %w", err)
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{caFile, ca}, {caKeyFile, caKey}, {certFile, certText(der)}, {keyFile, key}, {settingsFile, append(settings, '\n')}} {
		if err := os.WriteFile(filepath.Join(f.Path, file.name), file.text, 0o600); err != nil {
			return f, fmt.Errorf("write the controller's folder: %w", err)
		}
	}
	return f, nil
}

// keys are what a controller shows to others, and by what it knows them.
type keys struct {
	cert  tls.Certificate
	pool  *x509.CertPool
	print string // of this controller's certificate
}

func (f Folder) keys() (k keys, err error) {
	k.cert, err = tls.LoadX509KeyPair(filepath.Join(f.Path, certFile), filepath.Join(f.Path, keyFile))
	if err != nil {
		return k, fmt.Errorf("read the controller's keys: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(f.Path, caFile))
	if err != nil {
		return k, fmt.Errorf("read the controller's keys: %w", err)
	}
	k.pool = x509.NewCertPool()
	if !k.pool.AppendCertsFromPEM(bytes.TrimSpace(ca)) {
		return k, fmt.Errorf("read the controller's keys: %s is no certificate", caFile)
	}
	k.print = fingerprint(k.cert.Certificate[0])
	return k, nil
}

// fingerprint tells certificates apart.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16])
}
