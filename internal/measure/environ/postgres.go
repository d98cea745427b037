package environ

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/measure/drive"
)

// Postgres is a PostgreSQL server; it is asked over a separate session.
func Postgres(t drive.Target) Source { return &postgresSource{at: t} }

// postgresFlavour is how an environment calls it.
const postgresFlavour = "PostgreSQL"

type postgresSource struct {
	at   drive.Target
	addr string // inet_server_addr(): empty for a socket
	pid  int    // of the postmaster's child that answered
	here bool
}

// The queries. pg_settings.source says where a value comes from; what the program or the session itself brought is no
// setting of the server. pg_stat_ssl is 9.5 and newer.
const (
	pgFacts = `SELECT /* risso: what server is this? */ version(), current_setting('server_version'), coalesce(host(inet_server_addr()), ''),
  coalesce(inet_server_port()::text, current_setting('port')), coalesce(current_setting('data_directory', true), ''), pg_backend_pid()::text,
  coalesce((SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), '')`
	pgFactsUnprivileged = `SELECT /* risso: what server is this? */ version(), current_setting('server_version'), coalesce(host(inet_server_addr()), ''),
  coalesce(inet_server_port()::text, current_setting('port')), '', pg_backend_pid()::text,
  coalesce((SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), '')`
	pgChanged = `SELECT /* risso: what is set here? */ name, coalesce(setting, '') || coalesce(unit, ''), source FROM pg_settings
  WHERE source NOT IN ('default', 'override', 'client', 'session') AND name NOT IN ('config_file', 'hba_file', 'ident_file', 'data_directory',
    'unix_socket_directories', 'port', 'listen_addresses', 'external_pid_file', 'cluster_name', 'log_timezone', 'application_name') ORDER BY name`
)

func (s *postgresSource) local() bool {
	return s.addr == "" || s.here
}

func (s *postgresSource) ask(ctx context.Context, e *Environment) error {
	var stop drive.Stop
	c, err := s.at.Open(ctx, &stop)
	if err != nil {
		return err
	}
	defer c.Close()
	release := context.AfterFunc(ctx, func() { stop.Set() })
	defer release()
	rows, err := texts(c, pgFacts)
	if err != nil {
		rows, err = texts(c, pgFactsUnprivileged)
	}
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return errors.New("the server did not say what it is")
	}
	r := rows[0]
	e.Server = Server{Flavour: postgresFlavour, Version: r[1], Comment: r[0], DataDir: r[4], Changed: []Variable{}}
	e.Server.Port, _ = strconv.Atoi(r[3])
	s.addr = r[2]
	s.pid, _ = strconv.Atoi(r[5])
	s.here = s.addr != "" && ownAddress(s.addr)
	e.Connection = Connection{Kind: "TCP", Address: s.addr + ":" + r[3], TLS: r[6]}
	if s.addr == "" {
		e.Connection = Connection{Kind: "socket", Address: s.at.String()}
	}
	changed, err := texts(c, pgChanged)
	if err != nil {
		e.unknown("changed settings", err, "")
	}
	for _, v := range changed {
		if pgSecret(v[0]) && v[1] != "" {
			v[1] = "(hidden)"
		}
		e.Server.Changed = append(e.Server.Changed, Variable{Name: v[0], Value: v[1], Source: v[2]})
	}
	return nil
}

// pgSecret reports whether a setting may hold a password or a command with one.
func pgSecret(name string) bool {
	for _, w := range []string{"conninfo", "passphrase", "password", "_command", "secret", "krb_"} {
		if strings.Contains(name, w) && name != "password_encryption" {
			return true
		}
	}
	return false
}

// texts runs a query and returns its rows as texts.
func texts(s drive.Session, query string) ([][]string, error) {
	r, err := drive.Ask(s, query)
	if err != nil {
		return nil, err
	}
	if r.Columns <= 0 || int64(len(r.Values)) != r.Rows*int64(r.Columns) {
		return nil, fmt.Errorf("%d values in %d rows", len(r.Values), r.Rows)
	}
	var out [][]string
	for i := 0; i < len(r.Values); i += r.Columns {
		row := make([]string, r.Columns)
		for j, v := range r.Values[i : i+r.Columns] {
			switch {
			case v.Null:
			case v.Text != nil:
				row[j] = string(bytes.Clone(v.Text))
			default:
				row[j] = strconv.FormatInt(v.Int, 10)
			}
		}
		out = append(out, row)
	}
	return out, nil
}

// find takes the postmaster's number from its pid file, or goes up from the process that answered.
func (s *postgresSource) find(h *host.Host, sv Server) (int, *fleet.Trouble, error) {
	if sv.DataDir != "" {
		if b, err := os.ReadFile(filepath.Join(sv.DataDir, "postmaster.pid")); err == nil {
			first, _, _ := strings.Cut(string(b), "\n")
			if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && pid > 0 && h.Command(pid) == "postgres" {
				return pid, nil, nil
			}
		}
	}
	if parent := h.Parent(s.pid); h.Command(parent) == "postgres" {
		return parent, nil, nil
	}
	return 0, nil, host.ErrNotFound
}
