package repo

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Errors of signatures.
var (
	// ErrForged says that a backup, or a mirrored log, is not what its taker signed.
	ErrForged = fleet.WithRemedy(errors.New("it is not what was signed"),
		"somebody has changed it, or put another in its place: see who may write there, and take the backup from a second place")
	// ErrUnsigned says that something is not signed: its taker did not, or somebody removed the signature.
	ErrUnsigned = fleet.WithRemedy(errors.New("it is not signed, so it is unknown who made it"), TrustRemedy)
	// ErrForeign says that something is signed by a key that is not trusted.
	ErrForeign = fleet.WithRemedy(errors.New("it is signed by a key that is not trusted"), TrustRemedy)
)

// Untrusted reports whether an error is that no trusted key has signed something: ErrUnsigned or ErrForeign.
func Untrusted(err error) bool { return errors.Is(err, ErrUnsigned) || errors.Is(err, ErrForeign) }

// TrustRemedy says how to read a backup whose taker is not trusted.
const TrustRemedy = "--trust KEY trusts the key that risso backup key prints on the host that takes the backups and mirrors the logs; --allow-unsigned reads it all the same, as those of older versions, when you know who may write to the place"

// PublicKey is the key that verifies a taker's signatures. As text it is "ed25519:" followed by base64.
type PublicKey string

const keyScheme = "ed25519:"

// PublicOf returns the public half of a signing key.
func PublicOf(key ed25519.PrivateKey) PublicKey {
	return PublicKey(keyScheme + base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey))) // of an ed25519 key it is no other
}

// ParsePublicKey reads what risso backup key prints.
func ParsePublicKey(s string) (PublicKey, error) {
	k := PublicKey(strings.TrimSpace(s))
	if k.bytes() == nil {
		return "", fmt.Errorf("%q is not a public key: it must be %s and 43 characters, as printed by risso backup key", shortened(s), keyScheme)
	}
	return k, nil
}

// bytes is the key itself; nil when it is none.
func (k PublicKey) bytes() ed25519.PublicKey {
	text, ok := strings.CutPrefix(string(k), keyScheme)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) != ed25519.PublicKeySize {
		return nil
	}
	return b
}

// signed returns the signature of a message as text.
func signed(key ed25519.PrivateKey, message []byte) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(key, message))
}

// check says whether the key signed a message: ErrDamaged if the signature, or the key, is none, ErrForged if it is one of something else.
func (k PublicKey) check(message []byte, signature string) error {
	key := k.bytes()
	raw, err := base64.StdEncoding.DecodeString(signature)
	switch {
	case err != nil || key == nil:
		return fmt.Errorf("its signature: %w", ErrDamaged)
	case !ed25519.Verify(key, message, raw):
		return fmt.Errorf("its signature does not match its key: %w: %w", ErrForged, ErrDamaged)
	}
	return nil
}

// Policy says which backups and mirrored logs may be read by a command that runs what they hold.
type Policy interface {
	// Accept is called before a manifest or a log is read; what names it for messages, signer is the key that signed it, "" if it is not
	// signed. An error refuses it, such as ErrUnsigned or ErrForeign. It may be called from several goroutines.
	Accept(repository, what string, signer PublicKey) error
	// Counts is called by readers: whether what is signed by a key, "" by nobody, counts. It reports nothing and
	// writes nothing down; while no key is trusted for a repository everything counts. Errors are those of Accept.
	Counts(repository string, signer PublicKey) error
}

// signature is the object next to a manifest that says who took the backup. Its message binds the manifest, to the last byte, to
// the backup and the repository.
type signature struct {
	Format     int       `json:"format"`
	Repository string    `json:"repository"`
	Backup     string    `json:"backup"`
	Header     string    `json:"header"` // SHA-256 of the manifest's first line, hex: what is known of a backup before it is read to its end
	Lines      string    `json:"lines"`  // of all lines but the last
	Key        PublicKey `json:"key"`
	Signature  string    `json:"signature"` // base64
}

func (s *signature) message() []byte {
	return fmt.Appendf(nil, "risso backup signature %d\n%s\n%s\n%s\n%s\n%s\n", s.Format, s.Repository, s.Backup, s.Header, s.Lines, s.Key)
}

// sign puts the signature of the manifest that is going to be put.
func (r *Repo) sign(ctx context.Context, h Header, d *Draft) error {
	if r.signer == nil {
		return nil
	}
	first, all, err := d.sums(h)
	if err != nil {
		return err
	}
	s := signature{Format: 1, Repository: r.ID, Backup: h.ID, Header: first, Lines: all, Key: PublicOf(r.signer)}
	s.Signature = signed(r.signer, s.message())
	return r.putStream(ctx, signatureKey(h.ID), func(w io.Writer) error {
		return writePlain(w, func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
	})
}

// sums are the hashes of the manifest's first line and of all lines before its last.
func (d *Draft) sums(h Header) (first, all string, err error) {
	line, err := encodeLine(Line{Backup: &h})
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(line)
	all, err = d.writeTo(io.Discard, h)
	return hex.EncodeToString(sum[:]), all, err
}

// Unfit reports whether an error of Mine is of that backup alone: nothing is built on it, but another may do.
func Unfit(err error) bool {
	return Untrusted(err) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoBackup)
}

// Mine returns the header of a backup that this repository's signer signed, to build on: else it is ErrUnsigned or ErrForeign.
// Without a signer any will do.
func (r *Repo) Mine(ctx context.Context, id string) (h Header, err error) {
	s, err := r.signature(ctx, id)
	if err != nil {
		return h, fmt.Errorf("backup %s: %w", id, err)
	}
	switch {
	case r.signer == nil:
	case s == nil:
		return h, fmt.Errorf("backup %s: %w", id, ErrUnsigned)
	case s.Key != PublicOf(r.signer):
		return h, fmt.Errorf("backup %s: %w: %s", id, ErrForeign, s.Key)
	}
	m, err := r.Manifest(ctx, id)
	if errors.Is(err, ErrNoKey) {
		return r.head(ctx, id) // without an identity only its signer is known
	}
	if err != nil {
		return h, err
	}
	defer m.Close()
	return m.Header, nil
}

// Strangers says which whole backups count for nothing, and why, by ID: those that the repository's policy does not count, and those that
// are not what was signed. Without a policy there are none.
func (r *Repo) Strangers(ctx context.Context, list []Entry) (map[string]string, error) {
	out := map[string]string{}
	if r.policy == nil {
		return out, nil
	}
	takers, err := r.takers(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if !e.Whole {
			continue
		}
		t := takers[e.ID]
		err := t.err
		if err == nil {
			err = r.policy.Counts(r.ID, t.key)
		}
		switch {
		case told(err):
			out[e.ID] = err.Error()
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}

// signed reads the signature of a backup and asks the policy; nil if there is none.
func (r *Repo) signed(ctx context.Context, id string) (*signature, error) {
	s, err := r.signature(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("backup %s: %w", id, err)
	}
	signer := PublicKey("")
	if s != nil {
		signer = s.Key
	}
	if r.policy == nil {
		return s, nil
	}
	if err := r.policy.Accept(r.ID, "backup "+id, signer); err != nil {
		return nil, fmt.Errorf("backup %s: %w", id, err)
	}
	return s, nil
}

// signature reads the signature of a backup, and checks all of it but the manifest's own bytes.
func (r *Repo) signature(ctx context.Context, id string) (*signature, error) {
	var s signature
	err := r.readPlain(ctx, signatureKey(id), "its signature", 1<<16, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Format != 1 {
		return nil, fmt.Errorf("its signature has format %d, this risso reads 1 (take a newer one): %w", s.Format, ErrUnsigned)
	}
	if err := s.Key.check(s.message(), s.Signature); err != nil {
		return nil, err
	}
	if s.Repository != r.ID || s.Backup != id {
		return nil, fmt.Errorf("its signature belongs to backup %s of repository %s: %w: %w", s.Backup, s.Repository, ErrForged, ErrDamaged)
	}
	return &s, nil
}

// fits compares a hash of the manifest with the signed one.
func (*signature) fits(signed, got string) error {
	if signed != got {
		return fmt.Errorf("manifest: %w: %w", ErrForged, ErrDamaged)
	}
	return nil
}
