package places

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
)

// Trust say whose backups a command that reads them whole may read.
type Trust struct {
	Keys          []string
	AllowUnsigned bool
}

// Policy is what the flags say, for a repository in a place. said is called with what is trusted.
func (f Trust) Policy(place string, said func(string)) (*repo.Trust, error) {
	t := &repo.Trust{Dir: home.Keys(), Place: Words(place), Unsigned: f.AllowUnsigned, Said: said}
	var err error
	if t.Keys, err = repo.ReadPublicKeys(f.Keys...); err != nil {
		return nil, fault.Usagef("--trust: %w", err)
	}
	return t, nil
}

// Known are the keys whose backups replace others when a repository is pruned.
func (f Trust) Known(r *repo.Repo, place string) ([]repo.PublicKey, error) {
	t, err := f.Policy(place, nil)
	if err != nil {
		return nil, err
	}
	return t.Known(r.ID)
}

// LogPolicy is what the flags say about the logs that are mirrored in a place.
func (f Trust) LogPolicy(place string, said func(string)) (LogTrust, error) {
	p, err := f.Policy(place, said)
	return LogTrust{p, said}, err
}

// LogTrust says which mirrored logs are read, and reports which are not.
type LogTrust struct {
	Policy repo.Policy
	said   func(string)
}

// Of makes a place that reads only such logs.
func (t LogTrust) Of(p mirror.Place) mirror.Place {
	p.Policy, p.Said = t.Policy, t.said
	return p
}

// ID is the name by which a place without a repository is trusted.
func ID(place string) string {
	sum := sha256.Sum256([]byte("mirror " + Words(place)))
	return hex.EncodeToString(sum[:16])
}

// SignLogs lets the logs that are mirrored into a place be signed by this account, which trusts itself from then on.
func SignLogs(p *mirror.Place, place string) error {
	k, err := Sign(repo.Keys{})
	if err != nil {
		return err
	}
	id := ID(place)
	if p.Repo != nil {
		id = p.Repo.ID
	}
	p.Signer = k.Signer
	return (&repo.Trust{Dir: home.Keys(), Place: Words(place)}).Own(id, repo.PublicOf(k.Signer))
}

// Sign makes keys that sign, by this account's key.
func Sign(k repo.Keys) (_ repo.Keys, err error) {
	k.Signer, err = repo.SigningKey(home.Keys(), true)
	return k, err
}

// Own notes that this account signs backups of a repository.
func Own(r *repo.Repo, place string, k repo.Keys) error {
	return (&repo.Trust{Dir: home.Keys(), Place: Words(place)}).Own(r.ID, repo.PublicOf(k.Signer))
}
