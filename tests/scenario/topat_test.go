package scenario_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// atTerminal starts the program at a terminal of 120×40 and returns what its last whole screen shows, and what types keys.
func atTerminal(t *testing.T, args ...string) (screen func() string, types func(keys string)) {
	t.Helper()
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + a + "'"
	}
	cmd := exec.Command("script", "--quiet", "--return", "--command", "stty rows 40 cols 120; exec "+binary+" "+strings.Join(quoted, " "), "/dev/null")
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := launchCommand(t, cmd, environment(tempDir(t), "TERM=xterm", "SHELL=/bin/sh"))
	escapes := regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	screen = func() string {
		frames := strings.Split(r.out.String(), "\x1b[H")
		return escapes.ReplaceAllString(frames[max(len(frames)-2, 0)], "")
	}
	types = func(text string) {
		t.Helper()
		if _, err := io.WriteString(keys, text); err != nil {
			t.Fatal(err)
		}
	}
	return screen, types
}

// TestTopAt: sessions of a real server pile up behind a row lock, and are gone. A terminal shows the lock tree of that second, who held the lock and what
// would have ended it, and that there was none before and after; from the ring that a whole risso serve has kept.
func TestTopAt(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		s := newLockServer(t, kind)
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+s.node.DSN)
		r.awaitTicks(t, "db", 3)
		before := time.Now()
		runAll(t, s.holder, "BEGIN", "UPDATE shop.orders SET note = 'held' WHERE id = 1")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 3)
		for range cap(done) {
			c, _ := s.session(t)
			go func() {
				_, err := c.ExecContext(ctx, "UPDATE shop.orders SET note = 'wanted' WHERE id = 1")
				c.Close()
				done <- err
			}()
		}
		var piled time.Time
		await(t, "the pile-up is told", func() bool {
			return slices.ContainsFunc(r.instance(t, "db").Findings, func(f fleet.Finding) bool {
				piled = time.Now()
				return f.ID == "lock.blocker" && strings.Contains(f.What, "keeps 3 ")
			})
		})
		r.awaitTicks(t, "db", 2)
		runAll(t, s.holder, "ROLLBACK")
		for range cap(done) {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		over := r.awaitTicks(t, "db", 2)

		form := time.RFC3339
		screen, types := atTerminal(t, "top", "--at", piled.UTC().Format(form), "--server", "db", "--url", r.base)
		sees := func(want ...string) {
			t.Helper()
			defer func() {
				if t.Failed() {
					t.Log(screen())
				}
			}()
			await(t, fmt.Sprintf("a screen with %q", want), func() bool {
				text := screen()
				return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) })
			})
		}
		types("2")
		sees(piled.UTC().Format(time.TimeOnly), fmt.Sprint(s.holderID), "keeps 3 waiting", "row lock", "shop.orders", fmt.Sprintf("KILL %d", s.holderID))
		types("k")
		sees("This is the past")
		types("1")
		sees("UPDATE shop.orders SET note = ")
		types("q")
		for _, at := range []time.Time{before.Add(-time.Second), time.Unix(over, 0)} {
			out, said, code := runRisso(t, nil, "top", "--at", at.UTC().Format(form), "--server", "db", "--url", r.base)
			if code != 0 || strings.Contains(out, "keeps ") || !strings.Contains(out, "db") {
				t.Errorf("at %s: code %d, %s%s, want the second without the pile-up", at, code, out, said)
			}
		}
	})
}
