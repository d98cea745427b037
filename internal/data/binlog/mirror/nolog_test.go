package mirror

import (
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNoLog: a mirror of a server that writes no binary log ends with the remedy; an error that only contains that error's number is
// not mistaken for it.
func TestNoLog(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, kind, "skip-log-bin")
			err := Follow(t.Context(), Options{Target: target(t, n), Dir: t.TempDir(), Once: true, Note: func(Note) {}, Status: func(Status) {}})
			if !errors.Is(err, errNoLog) {
				t.Errorf("without a binary log: got %v, want errNoLog", err)
			}
		})
	}
	n := sandboxtest.Up(t, "mariadb")
	exec1(t, open(t, n), "CREATE USER u1381@localhost")
	to, err := mysql.ParseTarget("u1381@unix(" + n.Socket + ")/")
	if err != nil {
		t.Fatal(err)
	}
	if err := Follow(t.Context(), Options{Target: to, Dir: t.TempDir(), Once: true, Note: func(Note) {}, Status: func(Status) {}}); err == nil || errors.Is(err, errNoLog) {
		t.Errorf("an account without rights whose name has the number of another error: %v", err)
	}
}
