package fence

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// The environment of a process that fences a server and is killed amid that.
const (
	childDSN  = "RISSO_TEST_FENCE_DSN"
	childKeep = "RISSO_TEST_FENCE_KEEP" // sessions that it leaves
)

// TestFenceChild is the process that TestKilled kills.
func TestFenceChild(t *testing.T) {
	dsn := os.Getenv(childDSN)
	if dsn == "" {
		t.Skip("it is for TestKilled")
	}
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Epoch: 1, Limit: 4 * time.Second}
	for _, text := range strings.Fields(os.Getenv(childKeep)) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		o.Keep = append(o.Keep, id)
	}
	_, err = Fence(t.Context(), target, o)
	t.Fatalf("it was not killed: %v", err)
}

// TestKilled: a process that is killed while it waits for a server to be read-only leaves a statement there, behind which all writes wait. It ends by itself soon.
func TestKilled(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			root, locker := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
			run(t, root, "CREATE TABLE test.t (id INT PRIMARY KEY)", "CREATE TABLE test.held (id INT PRIMARY KEY)")
			run(t, locker, "LOCK TABLES test.held WRITE")
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFenceChild$")
			child.Env = append(os.Environ(), childDSN+"="+n.DSN, childKeep+"="+fmt.Sprint(locker.Server.ConnectionID, " ", root.Server.ConnectionID))
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			waits := func() bool {
				list, err := read.Clients(t.Context(), root)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range list {
					if mysql.AwaitsLock(c.State) {
						return true
					}
				}
				return false
			}
			await.Until(t, waits, "it waits to be read-only")
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait() // it was killed
			if !waits() {
				t.Fatal("the statement of a process that is gone does not wait: there is nothing to show")
			}
			writer := sandboxtest.Connect(t, n)
			ctx, cancel := context.WithTimeout(t.Context(), plenty)
			defer cancel()
			if err := writer.Exec(ctx, "INSERT INTO test.t VALUES (1)"); err != nil {
				t.Errorf("a write after that: %v", err)
			}
		})
	}
}
