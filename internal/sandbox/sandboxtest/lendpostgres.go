package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
)

// LendPostgres is Lend for PostgreSQL, which is made as Postgres makes it: databases, schemas and roles of the test before are gone,
// the log goes on.
func LendPostgres(t testing.TB, settings ...string) *postgres.Server {
	t.Helper()
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		lack.Of(t, "PostgreSQL is not installed: run script/setup")
	}
	return lend(t, strings.Join(append([]string{"postgres"}, settings...), "\n"), func() (*lentPostgres, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		s, err := postgres.Up(ctx, postgres.Options{Settings: append([]string{"fsync=off"}, settings...)})
		return &lentPostgres{s}, err
	}).Server
}

type lentPostgres struct{ *postgres.Server }

func (l *lentPostgres) down() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return l.Down(ctx)
}

func (l *lentPostgres) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, l.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for _, what := range []struct{ list, drop, behind string }{
		{"SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'", "DROP DATABASE ", " WITH (FORCE)"},
		{"SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'", "DROP SCHEMA ", " CASCADE"},
		{"SELECT rolname FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%' AND rolname <> current_user", "DROP ROLE ", ""},
	} {
		rows, err := c.Query(ctx, what.list)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := c.Exec(ctx, what.drop+pgx.Identifier{name}.Sanitize()+what.behind); err != nil {
				return err
			}
		}
	}
	_, err = c.Exec(ctx, "CREATE SCHEMA public")
	return err
}
