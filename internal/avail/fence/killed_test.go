package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// killedArg makes the test's program one that fences a server and is killed amid that.
const killedArg = "fence-and-be-killed"

// killed fences. args are the DSN, and the sessions that it leaves.
func killed(args []string) int {
	target, err := mysql.ParseTarget(args[0])
	o := Options{Epoch: 1, Limit: 4 * time.Second}
	for _, text := range args[1:] {
		id, ierr := strconv.ParseInt(text, 10, 64)
		err = errors.Join(err, ierr)
		o.Keep = append(o.Keep, id)
	}
	if err == nil {
		_, err = Fence(context.Background(), target, o)
	}
	fmt.Fprintln(os.Stderr, "it was not killed:", err)
	return 1
}

// TestKilled: a process that is killed while it waits for a server to be read-only leaves a statement there, behind which all writes wait. It ends by itself soon.
func TestKilled(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			root, locker := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
			run(t, root, "CREATE TABLE test.t (id INT PRIMARY KEY)", "CREATE TABLE test.held (id INT PRIMARY KEY)")
			run(t, locker, "LOCK TABLES test.held WRITE")
			child := exec.CommandContext(t.Context(), os.Args[0], killedArg, n.DSN, fmt.Sprint(locker.Server.ConnectionID), fmt.Sprint(root.Server.ConnectionID))
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
