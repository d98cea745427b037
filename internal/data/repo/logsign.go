package repo

import (
	"crypto/ed25519"
	"encoding/base64"
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

// LogSignature says who mirrored a binary log.
type LogSignature struct {
	Format     int       `json:"format"`
	Repository string    `json:"repository,omitempty"` // of the claim
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
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, m))
	return s, nil
}

// Check says who signed a claim: ErrForged when nobody signed this one. c names the repository in whose place the log lies; a log
// that was signed before there was one may lie in any. Of no signature the signer is "".
func (s *LogSignature) Check(c LogClaim) (signer PublicKey, err error) {
	if s == nil {
		return "", nil
	}
	key := s.Key.bytes()
	raw, err := base64.StdEncoding.DecodeString(s.Signature)
	switch {
	case s.Format > logFormat:
		return "", fmt.Errorf("its signature has format %d, this risso reads %d: take a newer one", s.Format, logFormat)
	case err != nil || key == nil:
		return "", fmt.Errorf("its signature: %w", ErrDamaged)
	case s.Repository != "" && s.Repository != c.Repository:
		return "", fmt.Errorf("its signature is of repository %s: %w: %w", s.Repository, ErrForged, ErrDamaged)
	}
	m, err := s.message(c)
	if err != nil {
		return "", err
	}
	if !ed25519.Verify(key, m, raw) {
		return "", fmt.Errorf("%w: %w", ErrForged, ErrDamaged)
	}
	return s.Key, nil
}
