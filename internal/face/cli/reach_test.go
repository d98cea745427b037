package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/cli/watch"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// reachTime is how long a command may take to say that a server cannot be reached, on a machine that does much else.
const reachTime = 2 * time.Minute

// heard takes what a command writes, and ends the command when all of its words have come.
type heard struct {
	mu    sync.Mutex
	text  strings.Builder
	words string
	end   func()
}

// Write never fails.
func (s *heard) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if s.end != nil && strings.Contains(s.text.String(), s.words) {
		s.end()
	}
	return len(p), nil
}

// TestNoServer asks every command that takes a server for one whose host is unknown, one where nothing listens, and one that does not
// accept the password: each ends with 1 and says so; serve, which waits for servers, says so and waits.
func TestNoServer(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	n := sandboxtest.Up(t, "mariadb")
	place := t.TempDir()
	mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
	mustRun(t, "bench", "prepare", "point_select", "--table-size", "100", "--yes", "--dsn", n.DSN+"test")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	ln.Close()
	words := map[string]string{ // by the DSN, what has to be said
		"x@tcp(nosuch.invalid)/":              "nosuch.invalid",
		"x@tcp(" + closed + ")/":              "refuse",
		"root:s3cret@unix(" + n.Socket + ")/": "Access denied",
	}
	postgres := map[string]string{"postgres://x:s3cret@nosuch.invalid/x": "nosuch.invalid", "postgres://x:s3cret@" + closed + "/x": "refuse"}
	// D is the server that cannot be reached, GOOD for one that can, BENCH for its tables, and TMP for a folder.
	commands := []string{
		"top --no-host --dsn D", "top --no-host --count 1 -o json --dsn D", "serve --no-host --data TMP --listen 127.0.0.1:0 --dsn D",
		"doctor --no-host --data TMP --listen 127.0.0.1:0 --dsn D", "grants --dsn D", "health --ask /up --dsn D", "agent --once --group g --member m --server http://127.0.0.1:1 --dsn D", "explain SELECT+1 --dsn D", "digest --for 1s --dsn D",
		"trace --dsn D", "trace 4711 --for 1s --dsn D", "trace --latest --dsn D",
		"accounts --dsn D", "accounts rotate x@y --state TMP --dry-run --dsn D", "advise --dsn D", "advise prove index.redundant:a.b.c --state TMP --dsn D", "size --dsn D",
		"topology --dsn D", "lag --dsn D", "semisync status --dsn D", "semisync status --dsn GOOD --replica D", "semisync on --dry-run --state TMP --dsn GOOD --replica D", "semisync off --dry-run --state TMP --dsn GOOD --replica D", "semisync on --dry-run --state TMP --dsn D",
		"semisync off --dry-run --state TMP --dsn D", "map --faults --dsn D", "galera --dsn D", "galera bootstrap --dsn D", "gtid errant --dsn D", "gtid where 0-1-1 --dsn D", "gtid repair --source GOOD --dry-run --dsn D", "gtid back --state TMP --dsn D",
		"group add g --data TMP --dsn D", "group set-access g --data TMP --dsn D", "group create g --data TMP --dsn good=GOOD --dsn D", "replica move a --below b --state TMP --dsn D", "replica attach a --state TMP --dsn D", "replica detach a --state TMP --dsn D", "replica delay a 1h --state TMP --dsn D", "replica skip a --state TMP --dsn D", "replica rebuild a --state TMP --dsn D", "replica back --state TMP --dsn D",
		"alter plan ALTER+TABLE+a.b+FORCE --dsn D", "alter run ALTER+TABLE+a.b+FORCE --dry-run --dsn D", "alter status --dsn D", "index retire a.b.c --state TMP --dry-run --dsn D",
		"backup --to TMP --dsn D", "backup --dry-run --to TMP --dsn D", "backup --physical --to TMP --state TMP --dsn D", "backup --to TMP --dsn GOOD --max-lag 1s --replica D", "backup --physical --to TMP --state TMP --dsn GOOD --max-lag 1s --replica D",
		"restore --from PLACE --into D", "restore --from PLACE --dry-run --into D", "restore --forget --into D",
		"restore --from PLACE --dry-run --into GOOD --schema test --rename test=other --to-time 2100-01-01 --logs-dsn D",
		"checksum --dsn D", "checksum --dsn GOOD --replica D", "checksum --dsn GOOD --against D",
		"appliers --dsn D", "appliers --live --for 1s --dsn D", "binlog list --dsn D", "binlog search --table a.b --dsn D", "binlog undo --gtid 0-1-1 --dsn D", "binlog apply --start binlog.000001:4 --into GOOD --dsn D",
		"binlog apply --start binlog.000001:4 --into D --dsn GOOD", "binlog follow --to TMP --dsn D", "binlog follow --once --to TMP --dsn D",
		"bench prepare point_select --dsn D", "bench cleanup point_select --dsn D", "bench check tpcc --dsn D", "bench run point_select --for 1s --dsn D",
		"bench run point_select --for 1s --dsn D --failover GOOD",
		"bench scale point_select --for 1s --threads 1,2 --dsn D", "bench compare point_select --for 1s --dsn-a D --dsn-b BENCH", "bench compare point_select --table-size 100 --for 1s --runs 1 --dsn-a BENCH --dsn-b D",
		"bench compare point_select --for 1s --set-a max_connections=100 --set-b max_connections=101 --dsn D",
	}
	for _, command := range commands {
		bad := words
		if strings.HasPrefix(command, "bench ") && !strings.Contains(command, "--set-a") && !strings.Contains(command, "--failover") {
			bad = map[string]string{}
			for _, m := range []map[string]string{words, postgres} {
				for dsn, w := range m {
					bad[dsn] = w
				}
			}
		}
		for dsn, says := range bad {
			t.Run(command+" "+says, func(t *testing.T) {
				t.Parallel()
				unreachable(t, strings.Fields(command), map[string]string{"D": dsn, "GOOD": n.DSN, "BENCH": n.DSN + "test", "PLACE": place}, says)
			})
		}
	}
	every(newRoot(screen.Streams{}), func(cmd *cobra.Command) {
		for _, flag := range []string{"dsn", "dsn-a", "dsn-b", "into", "against", "replica", "logs-dsn"} {
			if !cmd.Runnable() || cmd.Flags().Lookup(flag) == nil {
				continue
			}
			path := strings.TrimPrefix(cmd.CommandPath(), "risso ")
			if slices.Contains([]string{"index check --dsn", "index check --replica", "index back --dsn", "index drop --dsn", "index retire --replica"}, path+" --"+flag) {
				continue // they ask only where an index is retired, after its server was
			}
			if path == "check" || path == "check accounts" { // it ends as plug-ins do: tests/scenario/check_test.go
				continue
			}
			if !slices.ContainsFunc(commands, func(c string) bool {
				return strings.HasPrefix(c, path+" ") && strings.Contains(c+" ", " --"+flag+" D ")
			}) {
				t.Errorf("%s --%s is not tried", path, flag)
			}
		}
	})
}

// unreachable runs one of them.
func unreachable(t *testing.T, args []string, stands map[string]string, says string) {
	t.Helper()
	for i, a := range args {
		if s, ok := stands[a]; ok {
			args[i] = s
		} else if a == "TMP" {
			args[i] = t.TempDir()
		} else {
			args[i] = strings.ReplaceAll(a, "+", " ")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), reachTime)
	defer cancel()
	waits := args[0] == "serve" && says != "Access denied"
	var out heard
	out.words = says
	if waits {
		out.words, out.end = "ready on", cancel
	}
	code := Main(ctx, args, screen.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	text := out.text.String()
	switch {
	case context.Cause(ctx) == context.DeadlineExceeded:
		t.Errorf("it does not end; it says %s; want context.Cause(ctx) not context.DeadlineExceeded", text)
	case !strings.Contains(text, says), strings.Contains(text, "s3cret"), !waits && code != fault.Failed, waits && !strings.Contains(text, "keep trying"):
		t.Errorf("exit %d: %s", code, text)
	}
}

// TestTopWaits: a server that goes away while top looks is shown as down, and again when it is back.
func TestTopWaits(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"top", "--no-host", "-o", "json", "--dsn", n.DSN}, screen.Streams{In: strings.NewReader(""), Out: w, Err: io.Discard})
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	until := func(state string, down bool) {
		t.Helper()
		for lines.Scan() {
			var a watch.TopAnswer
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			if len(a.Instances) == 1 && (a.Instances[0].State == "down") == down && a.Instances[0].State != "new" {
				return
			}
		}
		t.Fatalf("it ends before the server is %s: %v", state, lines.Err())
	}
	until("seen", false)
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	until("gone", true)
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
	until("back", false)
	cancel()
	r.Close()
	if c := <-code; c != fault.OK {
		t.Errorf("exit %d, want fault.OK", c)
	}
}
