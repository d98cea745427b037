package bench

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/measure/drive"
)

// open opens a session to the target whose turn it is, and moves the turn on when that fails.
func (r *run) open(ctx context.Context) (s drive.Session, at int, err error) {
	at = int(r.current.Load())
	if s, err = r.targets[at].Open(ctx, &r.stop); err != nil {
		r.leave(at)
	}
	return s, at, err
}

// leave moves the turn on from a target that was lost or takes no writes, if no session has done it yet.
func (r *run) leave(at int) {
	r.current.CompareAndSwap(int32(at), int32((at+1)%len(r.targets)))
}

// askVersion asks the server for its version, and so whether it can be reached at all.
func (r *run) askVersion(ctx context.Context) error {
	var err error
	for range r.targets {
		var s drive.Session
		if s, _, err = r.open(ctx); err != nil {
			continue
		}
		defer s.Close()
		r.transport = drive.Transport(s)
		r.version, err = version(s)
		return err
	}
	return err
}

// version is the server's own word for its version.
func version(s drive.Session) (string, error) {
	sql := "SELECT /* risso: which server is this? */ CONCAT(@@version, ' (', @@version_comment, ')')"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: which server is this? */ current_setting('server_version')"
	}
	r, err := drive.Ask(s, sql)
	if err != nil {
		return "", fmt.Errorf("ask for the server's version: %w", err)
	}
	if len(r.Values) != 1 {
		return "", nil
	}
	if s.Dialect() == drive.Postgres {
		return "PostgreSQL " + string(r.Values[0].Text), nil
	}
	return string(r.Values[0].Text), nil
}
