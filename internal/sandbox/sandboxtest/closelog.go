package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// CloseLog lets a MariaDB write no binary log any more, as if its disk had been full when it was to begin another one: a folder is where that would be. What it returns takes the
// folder away: then the server writes a binary log once it is started again.
func CloseLog(t testing.TB, n *sandbox.Node) (mend func()) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.Datadir, "binlog.[0-9]*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the binary logs of %s: %v, %v", n.Name, files, err)
	}
	slices.Sort(files)
	base, number, _ := strings.Cut(files[len(files)-1], "binlog.")
	last := 0
	if _, err := fmt.Sscanf(number, "%d", &last); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(fmt.Sprintf("%sbinlog.%0*d", base, len(number), last+1), "in the way")
	if err := os.MkdirAll(in, 0o777); err != nil {
		t.Fatal(err)
	}
	c := Connect(t, n)
	if err := c.Exec(t.Context(), "FLUSH BINARY LOGS"); err == nil {
		t.Fatalf("%s could begin another binary log", n.Name)
	}
	if rows, err := c.Maps(t.Context(), c.Server.LogStatusStatement()); err != nil || len(rows) > 0 {
		t.Fatalf("%s writes a binary log still: %v, %v", n.Name, rows, err)
	}
	return func() {
		if err := os.RemoveAll(filepath.Dir(in)); err != nil {
			t.Fatal(err)
		}
	}
}
