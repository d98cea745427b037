package accounts

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Read asks a server for its accounts. What the session's account may not see is in Missing.
func Read(ctx context.Context, target mysql.Target) (*Server, error) {
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stream, err := target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	s := &Server{Server: c.Server, Now: time.Now(), Variables: map[string]string{}}
	if err := stream.ForRows(ctx, c.Server); err != nil {
		return nil, err
	}
	err = stream.Query(ctx, "SHOW /* risso: rules for passwords */ GLOBAL VARIABLES WHERE Variable_name IN ('require_secure_transport', 'max_password_errors', 'default_password_lifetime', 'performance_schema')",
		func(row [][]byte) error { s.Variables[string(row[0])] = string(row[1]); return nil })
	if err != nil {
		return nil, fmt.Errorf("read the rules for passwords: %w", err)
	}
	err = stream.Query(ctx, "SHOW /* risso: since when does it run? */ GLOBAL STATUS LIKE 'Uptime'", func(row [][]byte) error {
		n, err := strconv.ParseInt(string(row[1]), 10, 64)
		s.Uptime = time.Duration(n) * time.Second
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	logins, err := define.Logins(ctx, stream, c.Server)
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		s.Missing = append(s.Missing, fleet.Trouble{What: "accounts", Why: err.Error(), Remedy: "GRANT SELECT ON mysql.* TO " + c.Server.QuotedAccount()})
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	used := s.users(ctx, stream)
	for _, l := range logins {
		a := Account{Login: l}
		if used != nil {
			a.Seen = SeenUnused
			if used[l.User] {
				a.Seen = SeenUsed
			}
		}
		if a.Grants, err = define.GrantsOf(ctx, stream, l); err != nil {
			if stream.Broken() != nil || ctx.Err() != nil {
				return nil, err
			}
			s.Missing = append(s.Missing, fleet.Trouble{What: "privileges of " + l.Name(), Why: err.Error()})
		}
		s.Accounts = append(s.Accounts, a)
	}
	return s, nil
}

// users are those who connected since the server was started; nil: it does not tell.
func (s *Server) users(ctx context.Context, stream *mysql.Stream) map[string]bool {
	out := map[string]bool{}
	err := stream.Query(ctx, "SELECT /* risso: who was here? */ USER FROM performance_schema.users WHERE USER IS NOT NULL", func(row [][]byte) error { out[string(row[0])] = true; return nil })
	if err == nil {
		err = stream.Query(ctx, "SHOW /* risso: was anybody left out? */ GLOBAL STATUS LIKE 'Performance_schema_users_lost'", func(row [][]byte) error {
			if string(row[1]) != "0" {
				out = nil
			}
			return nil
		})
	}
	if err != nil || len(out) == 0 { // this session itself would be there
		return nil
	}
	return out
}
