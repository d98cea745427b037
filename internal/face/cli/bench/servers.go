package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/compare/matrix"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
)

// localServers provides a matrix with throw-away servers of this machine.
type localServers struct{}

func (localServers) Check(ctx context.Context, spec string, options []string) (err error) {
	if matrix.Postgres(spec) {
		if _, err = postgres.Find(spec); err == nil {
			if err := postgres.CheckSettings(options); err != nil {
				return fmt.Errorf("%w: %w", workload.ErrUsage, err)
			}
		}
	} else {
		_, err = sandbox.Find(ctx, spec)
	}
	if errors.Is(err, sandbox.ErrNoServer) {
		return fmt.Errorf("%w: %w", workload.ErrUsage, err)
	}
	return err
}

func (localServers) Up(ctx context.Context, name, spec string, options []string) (matrix.Server, error) {
	if matrix.Postgres(spec) {
		s, err := postgres.Up(ctx, postgres.Options{Spec: spec, Name: name, Settings: options})
		if err != nil {
			return nil, err
		}
		return postgresServer{s}, nil
	}
	b, err := sandbox.Up(ctx, sandbox.Options{Name: name, Servers: []string{spec}, Settings: options})
	if err != nil {
		return nil, err
	}
	return sandboxServer{b}, nil
}

func (localServers) Remove(ctx context.Context, name string) error {
	if err := postgres.Remove(ctx, name); err != nil {
		return err
	}
	list, err := sandbox.List("")
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.Name == name {
			return b.Down(ctx)
		}
	}
	return nil
}

// runFile has a client run a file of SQL; its error is the first that the client tells of.
func runFile(cmd *exec.Cmd, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	var said strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, nil, &said
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		first := max(0, slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "ERROR") }))
		return fmt.Errorf("load %s: %w: %s", path, err, lines[first])
	}
	return nil
}

// sandboxServer is a sandbox of one server.
type sandboxServer struct{ box *sandbox.Sandbox }

func (s sandboxServer) Version() string { return s.box.Primary().Version }

func (s sandboxServer) Target(database string) (drive.Target, error) {
	t, err := mysql.ParseTarget(s.box.Primary().DSN)
	if err != nil {
		return nil, err
	}
	return drive.ForMySQL(t.WithDatabase(database)), nil
}

func (s sandboxServer) Load(ctx context.Context, path string) error {
	cmd, err := s.box.Primary().Client(ctx, nil)
	if err != nil {
		return err
	}
	return runFile(cmd, path)
}

func (s sandboxServer) Environment(ctx context.Context) *environ.Environment {
	t, err := mysql.ParseTarget(s.box.Primary().DSN)
	if err != nil {
		return nil
	}
	e, err := environ.Take(ctx, environ.MySQL(t))
	if err != nil {
		return nil // a run needs none
	}
	return e
}

func (s sandboxServer) Stop(ctx context.Context) error  { return s.box.Primary().Stop(ctx) }
func (s sandboxServer) Start(ctx context.Context) error { return s.box.Primary().Start(ctx) }
func (s sandboxServer) Down(ctx context.Context) error  { return s.box.Down(ctx) }

// postgresServer is a PostgreSQL.
type postgresServer struct{ *postgres.Server }

func (s postgresServer) Version() string { return "PostgreSQL " + s.Server.Version }

func (s postgresServer) Target(database string) (drive.Target, error) {
	return drive.ForPostgres(s.URL(database))
}

func (s postgresServer) Load(ctx context.Context, path string) error {
	return runFile(exec.CommandContext(ctx, filepath.Join(s.Bin, "psql"), "-q", "-v", "ON_ERROR_STOP=1", s.URL("")), path)
}

func (s postgresServer) Environment(ctx context.Context) *environ.Environment {
	t, err := s.Target("")
	if err != nil {
		return nil
	}
	e, err := environ.Take(ctx, environ.Postgres(t))
	if err != nil {
		return nil // a run needs none
	}
	return e
}
