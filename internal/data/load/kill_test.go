package load_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

// childEnv makes the test program a restore that can be killed: DSN and place.
const childEnv = "RISSO_LOAD_TEST_CHILD"

func TestMain(m *testing.M) {
	if v := os.Getenv(childEnv); v != "" {
		if err := child(v); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(sandboxtest.Main(m))
}

// lend lends a server that earlier tests used, too.
func lend(t *testing.T, spec string) *sandbox.Node {
	t.Helper()
	return sandboxtest.Lend(t, spec, load.LentSettings...)
}

func child(v string) error {
	ctx := context.Background()
	dsn, dir, _ := strings.Cut(v, "\n")
	place, err := blob.Open(ctx, dir, blob.Options{})
	if err != nil {
		return err
	}
	r, err := repo.Open(ctx, repo.On(place))
	if err != nil {
		return err
	}
	into, err := mysql.ParseTarget(dsn)
	if err != nil {
		return err
	}
	res, err := load.Restore(ctx, load.Options{Repo: r, Into: into, Threads: 3, BatchBytes: 20_000, BulkBytes: 1, Confirm: func(load.Plan) error {
		_, err := fmt.Println("begun")
		return err
	}})
	fmt.Println("resumed", res.Resumed)
	return err
}

// many are tables of many chunks, one without a key (one chunk, many transactions), one without transactions.
var many = []string{
	"CREATE DATABASE k", "USE k", "CREATE TABLE seq (n INT PRIMARY KEY)",
	"INSERT INTO seq SELECT a.d + b.d * 10 + c.d * 100 + d.d * 1000 FROM " + digits("a") + ", " + digits("b") + ", " + digits("c") + ", " + digits("d"),
	"CREATE TABLE auto (id BIGINT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(50), w INT, KEY (v), KEY (w))",
	"INSERT INTO auto (v, w) SELECT LEFT(SHA2(n, 224), 40), n FROM seq", "INSERT INTO auto (v, w) SELECT v, w + 1 FROM auto", "INSERT INTO auto (v, w) SELECT v, w + 1 FROM auto",
	"CREATE TABLE nokey (v VARCHAR(100))", "INSERT INTO nokey SELECT SHA2(n % 100, 256) FROM seq",
	"CREATE TABLE old (id INT PRIMARY KEY, v VARCHAR(100)) ENGINE = MyISAM", "INSERT INTO old SELECT n, SHA2(n, 256) FROM seq",
	"CREATE TRIGGER tr BEFORE INSERT ON auto FOR EACH ROW SET NEW.v = 'fired'",
}

func digits(alias string) string {
	return "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) " + alias
}

const manySums = "CHECKSUM TABLE k.seq, k.auto, k.nokey, k.old"

// TestKilled kills a restore again and again at any moment, and the server below another one: each goes on where it was, and
// at the end each row is there once.
func TestKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			node := sandboxtest.Up(t, spec, "local_infile=1")
			s := stream(t, node)
			exec(t, s, many...)
			r, dir := emptyRepo(t)
			smallDump(t, node, r, "k")
			before := ask(t, s, manySums)
			exec(t, s, "USE mysql", "DROP DATABASE k")
			killChildren(t, node, s, dir, random)
			if after := ask(t, s, manySums); after != before {
				t.Fatalf("there was\n%s\nthere is\n%s", before, after)
			}
			if left := ask(t, s, "SHOW DATABASES LIKE 'risso%'"); left != "" {
				t.Errorf("left behind: got %s, want \"\"", left)
			}
			exec(t, s, "DROP DATABASE k")
			killServer(t, node, r, random)
			if after := ask(t, stream(t, node), manySums); after != before {
				t.Fatalf("there was\n%s\nthere is\n%s", before, after)
			}
		})
	}
}

// killChildren restores with processes that are killed, until one completes.
func killChildren(t *testing.T, node *sandbox.Node, s *mysql.Stream, dir string, random *rand.Rand) {
	t.Helper()
	kills, resumed := 0, 0
	for {
		cmd := childOf(t, node, dir)
		out := &output{begun: make(chan struct{})}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		limit := time.Minute
		if kills < 5 {
			select {
			case <-out.begun:
			case <-time.After(time.Minute):
				t.Fatalf("it does not begin: %s", out.String())
			}
			limit = time.Duration(random.IntN(300)+200*kills) * time.Millisecond // later each time: a slow server has to get somewhere
		}
		select {
		case err := <-done:
			if err != nil && kills > 0 && strings.Contains(out.String(), "data in the way") && ask(t, s, "SHOW DATABASES LIKE 'risso%'") == "" {
				t.Logf("the run before had come to its end when it was killed")
				return
			}
			if err != nil {
				t.Fatalf("after %d kills: %v: %s", kills, err, out.String())
			}
			if strings.Contains(out.String(), "resumed true") {
				resumed++
			}
			if kills == 0 || resumed == 0 {
				t.Errorf("%d kills, the last run resumed: %v; it was too quick; want kills not 0, resumed not 0", kills, resumed)
			}
			t.Logf("%d kills", kills)
			return
		case <-time.After(limit):
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			<-done
			kills++
		}
	}
}

// output is what a child writes; begun is closed at the first of it.
type output struct {
	mu    sync.Mutex
	text  strings.Builder
	begun chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() == 0 {
		close(o.begun)
	}
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func childOf(t *testing.T, node *sandbox.Node, dir string) *osexec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+node.DSN+"\n"+dir)
	return cmd
}

// killServer restores while the server crashes twice.
func killServer(t *testing.T, node *sandbox.Node, r *repo.Repo, random *rand.Rand) {
	t.Helper()
	done, begun := make(chan error, 1), make(chan struct{})
	go func() {
		_, err := load.Restore(t.Context(), load.Options{Repo: r, Into: target(t, node), Threads: 3, BatchBytes: 20_000, Confirm: func(load.Plan) error {
			close(begun)
			return nil
		}})
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done:
		t.Fatal(err)
	}
	for range 2 {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		if err := node.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := node.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
