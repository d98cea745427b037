package blobtest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/lack"
)

// S3Server is a real S3 server that a test started: versitygw over a folder.
type S3Server struct {
	Addr string // 127.0.0.1:PORT
	Dir  string // a folder per bucket
	CA   string // file of the certificate, with TLS
}

// Place is a place in a bucket of the server, which is made. Further parameters are KEY=VALUE.
func (s *S3Server) Place(t testing.TB, bucket, prefix string, params ...string) string {
	t.Helper()
	return s.PlaceBy(t, s.Addr, bucket, prefix, params...)
}

// PlaceBy is Place by way of another address, a proxy's.
func (s *S3Server) PlaceBy(t testing.TB, addr, bucket, prefix string, params ...string) string {
	t.Helper()
	if err := os.Mkdir(filepath.Join(s.Dir, bucket), 0o755); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	scheme := "http"
	if s.CA != "" {
		scheme = "https"
		params = append(params, "ca-file="+s.CA)
	}
	return fmt.Sprintf("s3://%s/%s?%s", bucket, prefix, strings.Join(append([]string{"endpoint=" + scheme + "://" + addr, "region=us-east-1"}, params...), "&"))
}

// S3 starts an S3 server for a test, and sets its keys in the environment. It skips the test where versitygw is not installed.
func S3(t testing.TB) *S3Server { return startS3(t, false) }

// S3TLS is S3 with TLS, with its own certificate.
func S3TLS(t testing.TB) *S3Server { return startS3(t, true) }

// findS3 is where script/setup puts versitygw.
func findS3() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	if p := filepath.Join(cache, "risso", "bin", "versitygw"); isFile(p) {
		return p, nil
	}
	return exec.LookPath("versitygw")
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

func startS3(t testing.TB, secure bool) *S3Server {
	t.Helper()
	bin, err := findS3()
	if err != nil {
		lack.Of(t, "versitygw, the S3 server of tests, is not installed: run script/setup")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "only-for-tests")
	dir := t.TempDir()
	s := &S3Server{Addr: freeAddr(t), Dir: filepath.Join(dir, "buckets")}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"--port", s.Addr}
	if secure {
		s.CA = filepath.Join(dir, "cert.pem")
		certificate(t, s.CA, filepath.Join(dir, "key.pem"))
		args = append(args, "--cert", s.CA, "--key", filepath.Join(dir, "key.pem"))
	}
	start(t, s.Addr, append(os.Environ(), "ROOT_ACCESS_KEY=test", "ROOT_SECRET_KEY=only-for-tests"), bin, append(args, "posix", s.Dir)...)
	return s
}

// start runs a server until the test ends, and waits until its address answers.
func start(t testing.TB, addr string, env []string, bin string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		log.Close()
	})
	await.Until(t, func() bool {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			return true
		}
		select {
		case err := <-ended:
			ended <- err
			b, _ := os.ReadFile(log.Name())
			t.Fatalf("%s ended: %v\n%s", filepath.Base(bin), err, b)
		default:
		}
		return false
	}, "%s to answer on %s", filepath.Base(bin), addr)
	return cmd
}

// freeAddr is a port of this machine that is not in use.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate makes one for 127.0.0.1 that is its own authority.
func certificate(t testing.TB, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", k)
}

func writePEM(t testing.TB, file, kind string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SFTPServer is a real sshd that a test started, for the user who runs the test.
type SFTPServer struct {
	Addr       string
	User       string
	Dir        string
	KeyFile    string // the user's key
	KnownHosts string
	HostKey    ssh.PublicKey
}

// Place is a folder on the server, at an address: its own, or a proxy's (then known hosts must know that too, see Know).
func (s *SFTPServer) Place(addr, dir string) string {
	return fmt.Sprintf("sftp://%s@%s%s?key-file=%s&known-hosts=%s", s.User, addr, filepath.Join(s.Dir, dir), s.KeyFile, s.KnownHosts)
}

// Know adds an address to the known hosts.
func (s *SFTPServer) Know(t testing.TB, addr string) {
	t.Helper()
	f, err := os.OpenFile(s.KnownHosts, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, knownhosts.Line([]string{addr}, s.HostKey)); err != nil {
		t.Fatal(err)
	}
}

// SFTP starts OpenSSH's server for a test on a separate port. It skips the test if sshd is not installed.
func SFTP(t testing.TB) *SFTPServer {
	t.Helper()
	const sshd = "/usr/sbin/sshd" // it has to be called by its whole path
	if !isFile(sshd) {
		lack.Of(t, "sshd is not installed: run script/setup")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &SFTPServer{Addr: freeAddr(t), User: me.Username, Dir: filepath.Join(dir, "data"), KeyFile: filepath.Join(dir, "user"), KnownHosts: filepath.Join(dir, "known_hosts")}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.HostKey = sshKey(t, filepath.Join(dir, "host"))
	mine := sshKey(t, s.KeyFile)
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	keys := write("authorized_keys", string(ssh.MarshalAuthorizedKey(mine)))
	host, port, _ := net.SplitHostPort(s.Addr)
	config := write("sshd_config", strings.Join([]string{"ListenAddress " + host, "Port " + port, "HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + keys,
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "PermitRootLogin prohibit-password", "Subsystem sftp internal-sftp", ""}, "\n"))
	if me.Uid == "0" {
		// Where sshd separates its privileges; the service would make it at boot.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Know(t, s.Addr)
	start(t, s.Addr, os.Environ(), sshd, "-D", "-e", "-f", config)
	return s
}

// sshKey makes a key pair, the private one in a file.
func sshKey(t testing.TB, file string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Slow answers as S3 does when it wants to be asked less often.
func Slow(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
}

// Broken answers as S3 does when something broke.
func Broken(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
}

func answer(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	body := `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + `</Code><Message>` + message + `</Message></Error>`
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}
