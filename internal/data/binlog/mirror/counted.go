package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
)

// Counted is what counts of a series for a reader: the newest run of logs that are signed, as far as their indexes say, by keys that
// the place's policy trusts. No restore reads the others. Bytes are not looked at; Verify does that. doubt says what does not count,
// and why; "": all does, as without a policy.
func (s Series) Counted(ctx context.Context, place Place, dir string) (counted Series, doubt string, err error) {
	if place.Policy == nil {
		return s, "", nil
	}
	strange, newest, end := 0, "", len(s.Logs)
	var why error
	counted = Series{Key: s.Key, Lost: s.Lost}
	for i := len(s.Logs) - 1; i >= 0; i-- {
		err := place.strange(ctx, s.Key, dir, s.Logs[i])
		if err == nil {
			continue
		}
		switch {
		case errors.Is(err, errNotYet):
		case !repo.Untrusted(err) && !errors.Is(err, repo.ErrForged) && !errors.Is(err, repo.ErrDamaged):
			return counted, "", err
		default:
			if strange++; strange == 1 {
				newest, why = s.Logs[i].Name, err
			}
		}
		if len(counted.Logs) == 0 {
			counted.Logs = s.Logs[i+1 : end]
			end = i
		}
	}
	if len(counted.Logs) == 0 { // all after the newest foreign one, or all of them
		counted.Logs = s.Logs[:end]
	}
	if strange > 0 {
		doubt = fmt.Sprintf("%s (series %s, the newest %s): %v", digits.Plural(strange, "mirrored binary log does not count", "mirrored binary logs do not count"), s.Key, newest, why)
	}
	return counted, doubt, nil
}

// errNotYet says that a log was begun and its mirror has not signed anything of it: it does not count, and nothing is wrong.
var errNotYet = errors.New("none of it is signed yet")

// strange says why a log counts for nothing; nil: it counts.
func (p Place) strange(ctx context.Context, key, dir string, l Log) error {
	signature, claim := l.Signature, p.complete(key, l.Index)
	if !l.Finished {
		parts, err := p.signedParts(key, filepath.Join(dir, root, key, l.Name))
		switch {
		case err != nil:
			return err
		case len(parts) > 0 && parts[0].Size > l.Size && !l.Locked:
			return fmt.Errorf("%d of its %d bytes are there: %w", l.Size, parts[0].Size, repo.ErrDamaged)
		case len(parts) > 0:
			signature, claim = parts[0].Signature, p.grown(key, l.Name, parts[0])
		default: // it may have been finished since the list was made
			x, err := readIndex(ctx, p, root+key+"/"+l.Name+extIndex)
			if errors.Is(err, fs.ErrNotExist) {
				if _, err := os.Stat(filepath.Join(dir, root, key, l.Name+extSigned)); err == nil {
					return errNotYet
				}
			} else if err != nil {
				return err
			}
			signature, claim = x.Signature, p.complete(key, x)
		}
	}
	signer, err := signature.Check(claim)
	if err != nil {
		return err
	}
	return p.Policy.Counts(cmp.Or(p.repository(), p.Name), signer)
}
