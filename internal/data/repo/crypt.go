package repo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/delay"
)

// Errors of encryption.
var (
	// ErrNoKey says that something is encrypted and no identity was given that opens it.
	ErrNoKey = errors.New("it is encrypted, and no identity opens it: give --identity FILE")
	// errOtherKey is ErrNoKey if identities were given.
	errOtherKey error = otherKey{}
	// ErrRecipients says that a repository is encrypted to other recipients than those that were named.
	ErrRecipients = errors.New("the repository's recipients are different")
)

type otherKey struct{}

func (otherKey) Error() string {
	return "it is encrypted, and no identity opens it: the given identity belongs to none of its recipients, give --identity FILE with one that does"
}

func (otherKey) Is(err error) bool { return err == ErrNoKey }

// Keys are what a repository uses: to encrypt, to read, to sign, to trust. Encryption is age's (https://age-encryption.org/v1): the holder of an
// identity that belongs to one of the recipients can read; recipients alone can only write.
type Keys struct {
	// Recipients are those to whom a new repository is encrypted; empty: it is not encrypted. For an existing one they
	// must be the same, so that those who can write to the place cannot add theirs.
	Recipients []string
	// Identities open what is encrypted.
	Identities []age.Identity
	// CacheDir is where this host keeps the key that names chunks, so that it can write without an identity.
	CacheDir string
	// Signer signs the backups that are taken; nil: they are not signed.
	Signer ed25519.PrivateKey
	// Policy says whose backups may be read; nil: all.
	Policy Policy
}

// ReadRecipients reads what --encrypt-to says: recipients themselves, or files with one a line. The list is sorted.
func ReadRecipients(specs ...string) ([]string, error) {
	var list []string
	for _, spec := range specs {
		more, err := readRecipients(spec)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func readRecipients(spec string) (list []string, err error) {
	if secret(spec) {
		return nil, errSecret
	}
	text := spec
	if !strings.HasPrefix(spec, "age1") {
		b, err := os.ReadFile(spec)
		if err != nil {
			return nil, fmt.Errorf("recipients: %q is neither age1… nor a file: %w", shortened(spec), err)
		}
		text = string(b)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if secret(line) {
			return nil, errSecret
		}
		if _, err := age.ParseRecipients(strings.NewReader(line)); err != nil {
			return nil, fmt.Errorf("recipients: %q is not one of age", shortened(line))
		}
		list = append(list, line)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("recipients: none in %s", shortened(spec))
	}
	return list, nil
}

var errSecret = errors.New("recipients: this is an identity, which is secret; the recipient is in the identity file as a comment, or use age-keygen -y")

func secret(s string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(s)), "AGE-SECRET-KEY-")
}

func shortened(s string) string {
	if len(s) > 24 {
		return s[:20] + "…"
	}
	return s
}

// ReadIdentities reads a file of identities, as age-keygen writes it.
func ReadIdentities(file string) ([]age.Identity, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	defer f.Close()
	list, err := age.ParseIdentities(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("identity: %s is not a file of age identities", file) // the parser's error could quote a secret
	}
	return list, nil
}

// cipher is the encryption of a repository; nil in one that is not encrypted.
type cipher struct {
	recipients []age.Recipient
	identities []age.Identity
	names      []byte // the key that names chunks; nil: not known here
}

func newCipher(recipients []string, identities []age.Identity) (*cipher, error) {
	if len(recipients) == 0 {
		return nil, nil
	}
	list, err := age.ParseRecipients(strings.NewReader(strings.Join(recipients, "\n")))
	if err != nil {
		return nil, fmt.Errorf("%s: recipients: %w: %w", configKey, ErrDamaged, err)
	}
	return &cipher{recipients: list, identities: identities}, nil
}

// Encrypted reports whether what the repository holds is encrypted.
func (r *Repo) Encrypted() bool { return r.cipher != nil }

// Readable reports whether what the repository holds can be read with the available keys.
func (r *Repo) Readable() bool { return r.cipher == nil || len(r.cipher.identities) > 0 }

// newHash makes the hash that names chunks: SHA-256, in an encrypted repository HMAC-SHA-256 with a separate key, so that
// names do not reveal to readers of the place what rows there may be.
func (r *Repo) newHash() (hash.Hash, error) {
	switch {
	case r.cipher == nil:
		return sha256.New(), nil
	case r.cipher.names == nil:
		return nil, errNoNames
	}
	return hmac.New(sha256.New, r.cipher.names), nil
}

var errNoNames = errors.New("the repository is encrypted, and this host does not have the key that names its chunks: give --identity FILE once (only that key is kept), or copy the file from the host that created the repository")

// encrypt wraps a writer; Close ends the encryption, not the writer.
func (c *cipher) encrypt(w io.Writer) (io.WriteCloser, error) {
	if c == nil {
		return nopCloser{w}, nil
	}
	return age.Encrypt(w, c.recipients...)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// decrypt returns what is in an encrypted stream. It reads nothing until it is read.
func (c *cipher) decrypt(sealed io.Reader) io.Reader {
	if c == nil {
		return sealed
	}
	return &decrypter{c: c, sealed: sealed}
}

type decrypter struct {
	c      *cipher
	sealed io.Reader
	plain  io.Reader
}

func (d *decrypter) Read(b []byte) (int, error) {
	if d.plain == nil {
		if len(d.c.identities) == 0 {
			return 0, ErrNoKey
		}
		plain, err := age.Decrypt(d.sealed, d.c.identities...)
		var other *age.NoIdentityMatchError
		if errors.As(err, &other) {
			// Encrypted to others, or damaged: that shows at the seal.
			if _, err := io.Copy(io.Discard, d.sealed); err != nil {
				return 0, err
			}
			return 0, errOtherKey
		}
		if err != nil {
			return 0, err
		}
		d.plain = plain
	}
	n, err := d.plain.Read(b)
	if errors.Is(err, io.EOF) {
		// The seal follows what age reads.
		if _, err := io.Copy(io.Discard, d.sealed); err != nil {
			return n, err
		}
	}
	return n, err
}

// nameKey is what a host keeps of an encrypted repository.
type nameKey struct {
	Repository string   `json:"repository"`
	Recipients []string `json:"recipients"`
	Key        string   `json:"key"` // base64
}

const namesKey = "keys/names"

func cacheFile(dir, id string) string { return filepath.Join(dir, "names-"+id+".json") }

// makeTime is how long a process that has written the key of names may take for the repository's own file before another considers it killed.
const makeTime = 15 * time.Second

// makeNames makes the key that names chunks and returns it as stored in the place, encrypted; fs.ErrExist if somebody else has made
// a repository in the meantime.
func (r *Repo) makeNames(ctx context.Context) ([]byte, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	var b bytes.Buffer
	if err := r.cipher.seal(&b, key); err != nil {
		return nil, err
	}
	r.cipher.names = key
	for began := time.Now(); ; {
		err := r.store.Create(ctx, namesKey, bytes.NewReader(b.Bytes()))
		if err == nil {
			return b.Bytes(), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make the key of names: %w", err)
		}
		if _, err2 := r.store.Size(ctx, configKey); err2 == nil || !errors.Is(err2, fs.ErrNotExist) {
			return nil, cmp.Or(err2, err)
		}
		if time.Since(began) >= makeTime { // of a killed process: no repository has it
			began = time.Now()
			if err := r.store.Delete(ctx, namesKey); err != nil {
				return nil, fmt.Errorf("make the key of names: %w", err)
			}
			continue
		}
		if err := delay.For(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// ownNames makes certain that the key of names in the place is that of the repository that was made: somebody may have taken its maker
// for killed. Then this host keeps it.
func (r *Repo) ownNames(ctx context.Context, k Keys, recipients []string, names []byte) error {
	rc, err := r.store.Get(ctx, namesKey)
	var there []byte
	if err == nil {
		there, err = io.ReadAll(io.LimitReader(rc, 1<<20))
		rc.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make the key of names: %w", err)
	}
	if !bytes.Equal(there, names) {
		if err := r.store.Put(ctx, namesKey, bytes.NewReader(names)); err != nil {
			return fmt.Errorf("make the key of names: %w", err)
		}
	}
	return r.cacheNames(k, recipients)
}

// seal encrypts a few bytes.
func (c *cipher) seal(w *bytes.Buffer, b []byte) error {
	e, err := c.encrypt(w)
	if err != nil {
		return err
	}
	if _, err := e.Write(b); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	sealed := appendSeal(bytes.Clone(w.Bytes()))
	w.Reset()
	w.Write(sealed)
	return nil
}

// findNames looks for the key of names: on this host, then in the place by an identity. That there is none is no error: one
// may read, list, prune and copy without. Identities of which none opens it are ErrNoKey: they open nothing else there.
func (r *Repo) findNames(ctx context.Context, k Keys, recipients []string) error {
	cached, err := r.cachedNames(k, recipients)
	if err != nil || len(k.Identities) == 0 {
		return err
	}
	key, err := r.openNames(ctx)
	switch r.fits = err == nil; {
	case cached && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged)):
		return nil // Verify reports it
	case err != nil:
		return err
	case cached:
		r.otherNames = !bytes.Equal(key, r.cipher.names)
		return nil // Verify reports it
	}
	r.cipher.names = key
	return r.cacheNames(k, recipients)
}

// cachedNames takes the key of names that this host keeps, if it does.
func (r *Repo) cachedNames(k Keys, recipients []string) (bool, error) {
	if k.CacheDir == "" {
		return false, nil
	}
	b, err := os.ReadFile(cacheFile(k.CacheDir, r.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var n nameKey
	if err := json.Unmarshal(b, &n); err != nil || n.Repository != r.ID {
		return false, fmt.Errorf("%s cannot be read; remove it and give --identity once", cacheFile(k.CacheDir, r.ID))
	}
	if !slices.Equal(n.Recipients, recipients) {
		return false, fmt.Errorf("%w than when this host last wrote there; if that is intended, remove %s", ErrRecipients, cacheFile(k.CacheDir, r.ID))
	}
	r.cipher.names, err = base64.StdEncoding.DecodeString(n.Key)
	return true, err
}

// openNames opens the key of names stored in the place.
func (r *Repo) openNames(ctx context.Context) ([]byte, error) {
	rc, err := r.store.Get(ctx, namesKey)
	if err != nil {
		return nil, fmt.Errorf("read the key of names: %w", err)
	}
	defer rc.Close()
	sealed, err := io.ReadAll(io.LimitReader(rc, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the key of names: %w", err)
	}
	key, err := io.ReadAll(r.cipher.decrypt(newUnsealer(bytes.NewReader(sealed))))
	switch {
	case errors.Is(err, ErrNoKey), errors.Is(err, ErrDamaged):
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	case len(key) != 32:
		err = ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", namesKey, err)
	}
	return key, nil
}

func (r *Repo) cacheNames(k Keys, recipients []string) error {
	if k.CacheDir == "" {
		return nil
	}
	b, err := json.Marshal(nameKey{r.ID, recipients, base64.StdEncoding.EncodeToString(r.cipher.names)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.CacheDir, 0o700); err != nil {
		return fmt.Errorf("keep the key of names: %w", err)
	}
	if err := os.WriteFile(cacheFile(k.CacheDir, r.ID), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the key of names: %w", err)
	}
	return nil
}

// keepManifest keeps the manifest of the newest backup of a server on the host that took it: the next backup cuts tables where
// this one did, and the host that writes need not be able to read. It is a convenience, so an error is none.
func (r *Repo) keepManifest(h Header, d *Draft) {
	if r.cache == "" {
		return
	}
	server := sha256.Sum256([]byte(h.Server.Identity))
	dir := filepath.Join(r.cache, hex.EncodeToString(server[:8])+"-"+string(h.Kind))
	old, _ := filepath.Glob(filepath.Join(dir, "*"))
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, h.ID), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	err = d.writeObject(f, h, nil)
	if err2 := f.Close(); err != nil || err2 != nil {
		os.Remove(f.Name())
		return
	}
	for _, name := range old {
		if name != f.Name() {
			os.Remove(name)
		}
	}
}

// keptManifest is a manifest that this host kept; nil: it did not, or it can be read in the place.
func (r *Repo) keptManifest(id string, sig *signature) *Manifest {
	if r.cache == "" || r.Readable() || strings.ContainsAny(id, `*?[]\/`) {
		return nil
	}
	list, _ := filepath.Glob(filepath.Join(r.cache, "*", id))
	if len(list) != 1 {
		return nil
	}
	f, err := os.Open(list[0])
	if err != nil {
		return nil
	}
	o, err := openObject("the manifest", f, nil)
	if err != nil {
		return nil
	}
	m, err := newManifest(o, sig)
	if err != nil {
		return nil
	}
	return m
}
