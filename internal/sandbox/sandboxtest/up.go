package sandboxtest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
)

// Up starts one server for a test and ends it with the test. settings are "key=value" for its option file.
func Up(t testing.TB, spec string, settings ...string) *sandbox.Node {
	t.Helper()
	Need(t, spec)
	dir := shortDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := sandbox.Up(ctx, sandbox.Options{Name: "t", Dir: dir, Servers: []string{spec}, Settings: settings, StartTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return s.Primary()
}

// shortDir is a folder whose name leaves room for the path of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Postgres starts a PostgreSQL of its own and ends it with the test, which is skipped where PostgreSQL is not installed. It
// does not wait for its disk, unless settings ("name=value") say otherwise.
func Postgres(t testing.TB, settings ...string) *postgres.Server {
	t.Helper()
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		t.Skip("PostgreSQL is not installed: run script/setup")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := postgres.Up(ctx, postgres.Options{Settings: append([]string{"fsync=off"}, settings...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return s
}
