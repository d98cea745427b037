package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// proofTime is how the time of a proof is written in its key, and proofSigned what ends the key of its signature.
const (
	proofTime   = "20060102T150405.000000Z"
	proofSigned = ".signature"
)

// Proof is what a drill of a backup found, as data/drill writes it.
type Proof struct {
	Backup string
	Time   time.Time // when the drill began
	JSON   []byte    // nil if it cannot be read, as without an identity: then Passed depends on what was signed
	Signer PublicKey // the key that signed it; "": none
	// Doubt is why it counts for nothing: it is damaged (ErrDamaged), or not what was signed (ErrForged), or the repository's policy does not
	// accept its signer. nil: it counts.
	Doubt error

	said bool // by its signature: it passed
}

// Passed reports whether the drill of a proof went well.
func (p Proof) Passed() bool {
	if p.JSON == nil {
		return p.said
	}
	return passed(p.JSON)
}

func passed(proof []byte) bool {
	var x struct {
		Passed bool `json:"passed"`
	}
	return json.Unmarshal(proof, &x) == nil && x.Passed
}

// proofSignature is the object next to a proof that says who made it. It has the outcome of the drill, so that it is known without an identity, too.
type proofSignature struct {
	Format     int       `json:"format"`
	Repository string    `json:"repository"`
	Backup     string    `json:"backup"`
	Time       string    `json:"time"` // as in the key
	Passed     bool      `json:"passed"`
	Sum        string    `json:"sum"` // SHA-256 of the proof, before it is packed, hex
	Key        PublicKey `json:"key"`
	Signature  string    `json:"signature"` // base64
}

func (s *proofSignature) message() []byte {
	return fmt.Appendf(nil, "risso proof signature %d\n%s\n%s\n%s\n%t\n%s\n%s\n", s.Format, s.Repository, s.Backup, s.Time, s.Passed, s.Sum, s.Key)
}

// AddProof stores what a drill found, signed by the repository's signer if it has one. The signature is put first: else others would
// see an unsigned proof.
func (r *Repo) AddProof(ctx context.Context, p Proof) error {
	k, err := r.NewKeeper()
	if err != nil {
		return err
	}
	at := p.Time.UTC().Format(proofTime)
	key := proofPrefix + p.Backup + "/" + at
	object, err := k.pack(p.JSON)
	if err != nil {
		return err
	}
	if r.signer != nil {
		sum := sha256.Sum256(p.JSON)
		s := proofSignature{Format: 1, Repository: r.ID, Backup: p.Backup, Time: at, Passed: passed(p.JSON), Sum: hex.EncodeToString(sum[:]), Key: PublicOf(r.signer)}
		s.Signature = signed(r.signer, s.message())
		err = r.putStream(ctx, key+proofSigned, func(w io.Writer) error {
			return writePlain(w, func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
		})
	}
	if err == nil {
		err = r.store.Put(ctx, key, bytes.NewReader(object))
	}
	if err != nil {
		return fmt.Errorf("store the proof of %s: %w", p.Backup, err)
	}
	return nil
}

// proofSigner reads the signature of a proof; nil if there is none.
func (r *Repo) proofSigner(ctx context.Context, id, at string) (*proofSignature, error) {
	var s proofSignature
	err := r.readPlain(ctx, proofPrefix+id+"/"+at+proofSigned, "its signature", 1<<16, &s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case s.Format != 1:
		return nil, fmt.Errorf("its signature has format %d, this risso reads 1 (take a newer one): %w", s.Format, ErrUnsigned)
	}
	if err := s.Key.check(s.message(), s.Signature); err != nil {
		return nil, err
	}
	if s.Repository != r.ID || s.Backup != id || s.Time != at {
		return nil, fmt.Errorf("its signature belongs to another drill, of backup %s of repository %s: %w: %w", s.Backup, s.Repository, ErrForged, ErrDamaged)
	}
	return &s, nil
}

// maxProof bounds a proof that is read.
const maxProof = 256 << 20

// Proofs hands over what drills found, of a backup or of all ("") in the order of their IDs; an older drill of a backup
// comes first. Of those that count for nothing Doubt says why.
func (r *Repo) Proofs(ctx context.Context, backup string, each func(Proof) error) error {
	prefix := proofPrefix
	if backup != "" {
		prefix += backup + "/"
	}
	var keys []string
	err := r.store.List(ctx, prefix, func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the proofs: %w", err)
	}
	for _, key := range keys {
		id, at, _ := strings.Cut(strings.TrimPrefix(key, proofPrefix), "/")
		t, err := time.Parse(proofTime, at)
		if err != nil {
			continue // a signature, or somebody else's file
		}
		p, err := r.proof(ctx, id, at)
		if errors.Is(err, fs.ErrNotExist) { // removed in the meantime
			continue
		}
		if err != nil {
			return err
		}
		p.Time = t
		if err := each(p); err != nil {
			return err
		}
	}
	return nil
}

// proof reads a proof, and who signed it.
func (r *Repo) proof(ctx context.Context, id, at string) (p Proof, err error) {
	key := proofPrefix + id + "/" + at
	p = Proof{Backup: id}
	locked := ErrNoKey
	if r.Readable() {
		p.JSON, err = r.readObject(ctx, "the proof "+key, key)
		if err == nil {
			err = ofBackup(p.JSON, id)
		}
		switch {
		case errors.Is(err, ErrNoKey), errors.Is(err, ErrDamaged):
			p.JSON, locked = nil, err
		case err != nil:
			return p, err
		}
	}
	s, err := r.proofSigner(ctx, id, at)
	if err == nil && s != nil {
		sum := sha256.Sum256(p.JSON)
		if p.JSON != nil && (hex.EncodeToString(sum[:]) != s.Sum || passed(p.JSON) != s.Passed) {
			err = fmt.Errorf("%w: %w", ErrForged, ErrDamaged)
		} else {
			p.Signer, p.said = s.Key, s.Passed
		}
	}
	if err == nil && r.policy != nil {
		err = r.policy.Counts(r.ID, p.Signer)
	}
	if err == nil && p.JSON == nil && (s == nil || r.Readable()) {
		err = locked
	}
	if err != nil && !told(err) {
		return p, fmt.Errorf("the proof %s: %w", key, err)
	}
	p.Doubt = err
	return p, nil
}

// ofBackup makes sure that a proof is one, and is about this backup.
func ofBackup(proof []byte, id string) error {
	var x struct {
		Backup string `json:"backup"`
	}
	err := json.Unmarshal(proof, &x)
	switch {
	case err != nil:
		return fmt.Errorf("the proof of %s: %w: %w", id, ErrDamaged, err)
	case x.Backup != "" && x.Backup != id:
		return fmt.Errorf("the proof of %s belongs to %s: %w", id, x.Backup, ErrDamaged)
	}
	return nil
}

// readObject reads a small object whole.
func (r *Repo) readObject(ctx context.Context, name, key string) ([]byte, error) {
	rc, err := r.store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	o, err := r.openObject(name, rc)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	b, err := io.ReadAll(io.LimitReader(o, maxProof+1))
	if err == nil && len(b) > maxProof {
		err = fmt.Errorf("%s: over %d bytes: %w", name, maxProof, ErrDamaged)
	}
	return b, err
}
