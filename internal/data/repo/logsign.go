package repo

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
)

// LogClaim is what is signed of a mirrored binary log. Its JSON is part of what is signed: fields are only ever added under another
// format.
type LogClaim struct {
	Repository string `json:"repository"` // the ID of the repository in the log's place; "": there was none
	Series     string `json:"series"`
	Name       string `json:"name"`     // as the server calls it
	Complete   bool   `json:"complete"` // all of the log is here; else it grows
	Size       int64  `json:"size"`     // bytes of the log, from its beginning on, that are signed
	Sum        string `json:"sum"`      // of them: SHA-256, in an encrypted repository HMAC-SHA-256 under the key of names, hex
	Stored     string `json:"stored"`   // of a complete log that is encrypted: SHA-256 of what is stored, hex
	Before     string `json:"before"`   // of a complete log: the GTIDs that the server had when it began it
}

func (c LogClaim) String() string { return "mirrored log " + c.Series + "/" + c.Name }

// MirroredLog is what the index of a complete log says about its bytes; data/binlog writes it.
type MirroredLog struct {
	Name         string        `json:"name"`
	Size         int64         `json:"size"`
	SHA256       string        `json:"sha256"`
	HMAC         string        `json:"hmac"`   // of an encrypted one
	Stored       int64         `json:"stored"` // bytes in the place; 0: it is where it is mirrored
	StoredSHA256 string        `json:"stored_sha256"`
	Before       string        `json:"gtids_before"`
	Signature    *LogSignature `json:"signature"`
}

// Claim is what is signed of it; repository is the ID of that in the log's place.
func (l MirroredLog) Claim(repository, series string) LogClaim {
	return LogClaim{Repository: repository, Series: series, Name: l.Name, Complete: true, Size: l.Size, Sum: l.SHA256 + l.HMAC, Stored: l.StoredSHA256, Before: l.Before}
}

// LogSignature says who mirrored a binary log.
type LogSignature struct {
	Format     int       `json:"format"`
	Repository string    `json:"repository,omitempty"` // repository of the signed claim
	Key        PublicKey `json:"key"`
	Signature  string    `json:"signature"` // base64
}

const logFormat = 1

func (s *LogSignature) message(c LogClaim) ([]byte, error) {
	c.Repository = s.Repository
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "risso binary log signature %d\n%s\n%s\n", s.Format, b, s.Key), nil
}

// SignLog signs what is claimed of a log.
func SignLog(key ed25519.PrivateKey, c LogClaim) (*LogSignature, error) {
	s := &LogSignature{Format: logFormat, Repository: c.Repository, Key: PublicOf(key)}
	m, err := s.message(c)
	if err != nil {
		return nil, err
	}
	s.Signature = signed(key, m)
	return s, nil
}

// Check says who signed a claim: ErrForged if nobody signed this one. c names the repository in whose place the log is; a log
// that was signed before there was one may be in any. Without a signature the signer is "".
func (s *LogSignature) Check(c LogClaim) (signer PublicKey, err error) {
	switch {
	case s == nil:
		return "", nil
	case s.Format > logFormat:
		return "", fmt.Errorf("its signature has format %d, this risso reads %d: take a newer one", s.Format, logFormat)
	case s.Repository != "" && s.Repository != c.Repository:
		return "", fmt.Errorf("its signature belongs to repository %s: %w: %w", s.Repository, ErrForged, ErrDamaged)
	}
	m, err := s.message(c)
	if err != nil {
		return "", err
	}
	if err := s.Key.check(m, s.Signature); err != nil {
		return "", err
	}
	return s.Key, nil
}

// Accept checks who signed a claim, and asks a policy, which may be nil, whether the log may be read; id is by what that knows the place.
func (s *LogSignature) Accept(p Policy, id string, c LogClaim) error {
	signer, err := s.Check(c)
	if err == nil && p != nil {
		err = p.Accept(id, c.String(), signer)
	}
	return err
}
