package repo

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keyFile is the name of the signing key in a folder of keys, knownFile that of the list of keys that are trusted.
const (
	keyFile   = "signing-key"
	knownFile = "known-keys"
)

// SigningKey reads the key by which this account signs its backups from a folder. create: if there is none one is made, for
// this account's eyes only; else it is fs.ErrNotExist.
func SigningKey(dir string, create bool) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, keyFile)
	key, err := readSigningKey(path)
	if !errors.Is(err, fs.ErrNotExist) || !create {
		return key, err
	}
	_, key, err = ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	// Whole or not at all, and of two processes that make one at the same time the first wins.
	f, err := os.CreateTemp(dir, "."+keyFile+"-*") // 0600
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	return readSigningKey(path)
}

func readSigningKey(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s is not a signing key", path)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := k.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s is not a signing key", path) // what it holds may be a secret
	}
	return key, nil
}

// ReadPublicKeys reads what --trust says: keys themselves, or files with one a line.
func ReadPublicKeys(specs ...string) (list []PublicKey, err error) {
	for _, spec := range specs {
		text := spec
		if !strings.HasPrefix(spec, keyScheme) {
			b, err := os.ReadFile(spec)
			if err != nil {
				return nil, fmt.Errorf("%q is neither a public key (%s…) nor a file of them: %w", shortened(spec), keyScheme, err)
			}
			text = string(b)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			k, err := ParsePublicKey(line)
			if err != nil {
				return nil, err
			}
			list = append(list, k)
		}
	}
	return list, nil
}

// Trust is a Policy: the keys that are named, this account's own, and those in its file of known keys, where the first key that is seen
// of a repository is written down, as ssh does with hosts. From then on another one must be confirmed.
type Trust struct {
	Dir      string      // of the account's signing key and its known keys
	Place    string      // the repository's place, as shown to users
	Keys     []PublicKey // to be trusted from now on
	Unsigned bool        // read also what is unsigned, or signed by others
	// Said is called with what is trusted from now on, and what is read without trust. It may be called from several goroutines, and may be nil.
	Said func(string)

	mu   sync.Mutex
	told map[string]bool
}

// known is a line of the file of known keys.
type known struct {
	repository string
	key        PublicKey
	place      string
}

// Accept implements Policy.
func (t *Trust) Accept(repository, what string, signer PublicKey) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, err := t.read()
	if err != nil {
		return err
	}
	of := slices.DeleteFunc(slices.Clone(list), func(k known) bool { return k.repository != repository })
	here := slices.IndexFunc(list, func(k known) bool { return k.place == t.Place && k.repository != repository })
	switch {
	case signer == "" && t.Unsigned:
		t.say(what + " is not signed: it is unknown who made it; it is read anyway, as requested")
		return nil
	case signer == "":
		return ErrUnsigned
	case slices.ContainsFunc(of, func(k known) bool { return k.key == signer }):
		return nil
	case slices.Contains(t.Keys, signer):
		return t.remember(repository, signer, "from now on the key "+string(signer)+" is trusted for this repository, as requested")
	case t.own(signer):
		return t.remember(repository, signer, "")
	case t.Unsigned:
		t.say(what + " is signed by " + string(signer) + ", which is not trusted; it is read anyway, as requested")
		return nil
	case len(of) > 0 || len(t.Keys) > 0:
		return fmt.Errorf("%w: %s", ErrForeign, signer)
	case here >= 0:
		return fmt.Errorf("%w: %s; repository %s was here before, and has been replaced by another", ErrForeign, signer, list[here].repository)
	}
	return t.remember(repository, signer, "this repository is seen for the first time; from now on its key "+string(signer)+" is trusted for it, and another one needs --trust")
}

func (t *Trust) say(text string) {
	if t.told == nil {
		t.told = map[string]bool{}
	}
	if t.Said != nil && !t.told[text] {
		t.Said(text)
	}
	t.told[text] = true
}

// Counts implements Policy.
func (t *Trust) Counts(repository string, signer PublicKey) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Unsigned {
		return nil
	}
	keys, err := t.named(repository)
	switch {
	case err != nil:
		return err
	case len(keys) == 0, slices.Contains(keys, signer), signer != "" && t.own(signer):
		return nil
	case signer == "":
		return ErrUnsigned
	}
	return fmt.Errorf("%w: %s", ErrForeign, signer)
}

// named are the keys that are trusted of a repository by name, or because they are written down.
func (t *Trust) named(repository string) ([]PublicKey, error) {
	list, err := t.read()
	if err != nil {
		return nil, err
	}
	keys := slices.Clone(t.Keys)
	for _, k := range list {
		if k.repository == repository {
			keys = append(keys, k.key)
		}
	}
	return keys, nil
}

// Known are the keys that are trusted for a repository without confirmation: those that are named, those that are written down, this
// account's own.
func (t *Trust) Known(repository string) ([]PublicKey, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys, err := t.named(repository)
	if err != nil {
		return nil, err
	}
	mine, err := SigningKey(t.Dir, false)
	switch {
	case err == nil:
		keys = append(keys, PublicOf(mine))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return keys, nil
}

// own reports whether a key is this account's.
func (t *Trust) own(key PublicKey) bool {
	mine, err := SigningKey(t.Dir, false)
	return err == nil && PublicOf(mine) == key
}

// read reads the file of known keys.
func (t *Trust) read() (list []known, err error) {
	f, err := os.Open(filepath.Join(t.Dir, knownFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the known keys: %w", err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " ", 4)
		if len(fields) < 2 || !validID(fields[0]) || PublicKey(fields[1]).bytes() == nil {
			return nil, fmt.Errorf("%s, line %d: not a repository and its key", f.Name(), n)
		}
		k := known{repository: fields[0], key: PublicKey(fields[1])}
		if len(fields) == 4 {
			k.place = fields[3]
		}
		list = append(list, k)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read the known keys: %w", err)
	}
	return list, nil
}

// remember writes a key down, durably, before anything of the backup is read.
func (t *Trust) remember(repository string, key PublicKey, why string) error {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return fmt.Errorf("write the known keys: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(t.Dir, knownFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the known keys: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	if err == nil {
		place := strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, t.Place)
		_, err = fmt.Fprintf(f, "%s %s %s %s\n", repository, key, time.Now().UTC().Format(time.RFC3339), place)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the known keys: %w", err)
	}
	if why != "" {
		t.say(why)
	}
	return nil
}

// Own writes down that this account signs backups of a repository, so that what others put there is not taken for the first one
// seen for it.
func (t *Trust) Own(repository string, key PublicKey) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, err := t.read()
	if err != nil || slices.ContainsFunc(list, func(k known) bool { return k.repository == repository && k.key == key }) {
		return err
	}
	return t.remember(repository, key, "")
}
