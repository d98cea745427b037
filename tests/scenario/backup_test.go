package scenario_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
)

// ran is what a program that has ended said.
type ran struct {
	code     int
	out, err string
}

func runProgram(t *testing.T, program string, args ...string) ran {
	t.Helper()
	r := launchProgram(t, program, nil, args...)
	code := r.code(t)
	return ran{code, r.out.String(), r.err.String()}
}

// place is a repository in a folder, as the command line sees it.
type place struct {
	dir, dsn string
}

// into is what a backup answers.
type into struct {
	Backup struct {
		ID     string
		Tables int
		Rows   int64
	}
	NewChunks int `json:"new_chunks"`
}

func (p place) backup(t *testing.T, program string) (b into) {
	t.Helper()
	r := runProgram(t, program, "backup", "--dsn", p.dsn, "--to", p.dir, "--output", "json")
	if r.code != 0 || r.err != "" {
		t.Fatalf("exit code %d; it said %s; want r.code 0, r.err \"\"", r.code, r.err)
	}
	if err := json.Unmarshal([]byte(r.out), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// whole are the IDs of the backups that are listed as whole.
func (p place) whole(t *testing.T) (ids []string) {
	t.Helper()
	r := runProgram(t, binary, "backup", "list", "--from", p.dir, "--output", "json")
	var list struct{ Backups []struct{ ID, State string } }
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v: got %s; want 0", r.code, err, r.err)
	}
	for _, b := range list.Backups {
		if b.State == "whole" { // one that was killed is said to be running until its lease ends
			ids = append(ids, b.ID)
		}
	}
	return ids
}

func (p place) verify(t *testing.T, program string) ran {
	t.Helper()
	return runProgram(t, program, "verify", "--from", p.dir, "--again")
}

// objects are the chunks in the place, with their sizes.
func (p place) objects(t *testing.T) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	err := filepath.WalkDir(filepath.Join(p.dir, "data"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		st, err := e.Info()
		if err == nil {
			found[path] = st.Size()
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) { // a file on its way to its name
		t.Fatal(err)
	}
	return found
}

// TestBackupCommand: a person takes backups, looks at them, types wrong things, pulls the plug and finds a flipped bit.
func TestBackupCommand(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	var seed strings.Builder
	seed.WriteString("CREATE DATABASE shop; CREATE TABLE shop.prices (id INT PRIMARY KEY, p DOUBLE, f FLOAT, name TEXT); INSERT INTO shop.prices VALUES (1, 0.1, 16777217, 'é'), (2, -1e300, NULL, NULL);")
	for i := range 100 {
		name := "shop.t" + string(rune('a'+i/10)) + string(rune('a'+i%10))
		seed.WriteString("CREATE TABLE " + name + " (id INT PRIMARY KEY, v VARBINARY(2000)); INSERT INTO " + name +
			" WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i, RANDOM_BYTES(1000) FROM n;")
	}
	execSQL(t, n, seed.String())
	p := place{dir: filepath.Join(tempDir(t), "place"), dsn: n.DSN}

	first := p.backup(t, binary)
	if first.Backup.Tables != 101 || first.Backup.Rows != 4002 || first.NewChunks != 101 {
		t.Errorf("the first backup: got %+v; want Backup.Tables 101, Backup.Rows 4002, NewChunks 101", first)
	}
	if ids := p.whole(t); len(ids) != 1 || ids[0] != first.Backup.ID {
		t.Errorf("listed: got %v; want len(ids) 1, ids[0] %v", ids, first.Backup.ID)
	}
	r := runProgram(t, binary, "backup", "show", "--from", p.dir)
	if r.code != 0 || !strings.Contains(r.out, first.Backup.ID) || !strings.Contains(r.out, "shop") {
		t.Errorf("show: exit code %d: got %s%s; want r.code 0, %q in it, \"shop\" in it", r.code, r.out, r.err, first.Backup.ID)
	}
	if r := p.verify(t, binary); r.code != 0 || !strings.Contains(r.out, "Whole    yes") {
		t.Errorf("verify: exit code %d: got %s%s; want r.code 0, \"Whole    yes\" in it", r.code, r.out, r.err)
	}
	t.Run("encoders", func(t *testing.T) { p.bothEncoders(t, n) })
	t.Run("wrong use", func(t *testing.T) { p.wrongUse(t) })
	t.Run("plug", func(t *testing.T) { p.plug(t, n) })
	t.Run("flipped bit", func(t *testing.T) { p.flip(t) })
}

// bothEncoders: builds with libzstd and with the Go encoder read each other's backups, and take each other's chunks for theirs.
func (p place) bothEncoders(t *testing.T, n *sandbox.Node) {
	pure := os.Getenv("RISSO_PURE_BIN")
	if pure == "" {
		lack.Of(t, "RISSO_PURE_BIN names no program built without cgo: run script/test")
	}
	if r := p.verify(t, pure); r.code != 0 {
		t.Errorf("built without cgo, verify ends with %d: got %s%s; want 0", r.code, r.out, r.err)
	}
	if b := p.backup(t, pure); b.NewChunks != 0 || b.Backup.Rows != 4002 {
		t.Errorf("built without cgo it stores the same rows again: got %+v; want NewChunks 0, Backup.Rows 4002", b)
	}
	execSQL(t, n, "UPDATE shop.prices SET p = p + 1; UPDATE shop.tab SET v = REPEAT('word ', 400);")
	if b := p.backup(t, pure); b.NewChunks != 2 {
		t.Errorf("built without cgo: got %+v, want NewChunks 2", b)
	}
	if r := p.verify(t, binary); r.code != 0 {
		t.Errorf("verify of what the build without cgo wrote ends with %d: got %s%s, want 0", r.code, r.out, r.err)
	}
	if b := p.backup(t, binary); b.NewChunks != 0 {
		t.Errorf("it stores the other build's rows again: got %+v, want NewChunks 0", b)
	}
}

// wrongUse: one line that says what is wrong, and its exit code.
func (p place) wrongUse(t *testing.T) {
	before := len(p.whole(t))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "no server", []string{"backup", "--to", p.dir}},
		{2, "no place", []string{"backup", "--dsn", p.dsn}},
		{2, "not a kind of place", []string{"backup", "--dsn", p.dsn, "--to", "ftp://host/dir"}},
		{2, "--compress", []string{"backup", "--dsn", p.dsn, "--to", p.dir, "--compress", "best"}},
		{2, "--threads", []string{"backup", "--dsn", p.dsn, "--to", p.dir, "--threads", "0"}},
		{2, "has no command", []string{"backup", "now", "--dsn", p.dsn, "--to", p.dir}},
		{2, "nosuch", []string{"backup", "--dsn", p.dsn, "--to", p.dir, "--schema", "nosuch"}},
		{1, "no such backup", []string{"backup", "show", "--from", p.dir, "20200101T000000Z-000000"}},
		{1, "no backup repository", []string{"backup", "list", "--from", p.dir + "-elsewhere"}},
		{1, "refuses connections", []string{"backup", "--dsn", "root@unix(" + p.dir + "/no.sock)/", "--to", p.dir}},
		{1, "", []string{"verify", "--from", p.dir + "-elsewhere"}},
	} {
		r := runProgram(t, binary, c.args...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit code %d, not %d: %s; want r.code %d, %q in it", c.args, r.code, c.code, r.err, c.code, c.says)
		}
		oneLine(t, r.err)
	}
	if _, err := os.Stat(p.dir + "-elsewhere"); err == nil {
		t.Error("a place was made by looking at it")
	}
	if ids := p.whole(t); len(ids) != before {
		t.Errorf("%d backups became %v", before, ids)
	}
}

// plug: Ctrl-C and kill -9 in the middle leave nothing that looks whole; what was stored serves the next run.
func (p place) plug(t *testing.T, n *sandbox.Node) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		var change strings.Builder
		for i := range 100 {
			change.WriteString("UPDATE shop.t" + string(rune('a'+i/10)) + string(rune('a'+i%10)) + " SET v = RANDOM_BYTES(1000);")
		}
		execSQL(t, n, change.String())
		before, ids := p.objects(t), p.whole(t)
		// At this rate it would take over a minute.
		r := launch(t, nil, "backup", "--dsn", p.dsn, "--to", p.dir, "--max-rate", "50KB")
		await(t, "a chunk of the new backup", func() bool {
			select {
			case <-r.done:
				t.Fatalf("it ended by itself: %s", r.err)
			default:
			}
			return len(p.objects(t)) > len(before)
		})
		if err := r.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		code := r.code(t)
		if sig == syscall.SIGINT && (code != 130 || !strings.Contains(r.err.String(), "this run produced no backup")) {
			t.Errorf("%s: exit code %d: %s", sig, code, r.err)
		}
		if now := p.whole(t); strings.Join(now, " ") != strings.Join(ids, " ") {
			t.Errorf("%s: %v became %v, want strings.Join(now, \" \") %v", sig, ids, now, strings.Join(ids, " "))
		}
		if v := p.verify(t, binary); v.code != 0 {
			t.Errorf("%s: verify ends with %d: %s%s, want 0", sig, v.code, v.out, v.err)
		}
		stored := len(p.objects(t)) - len(before)
		if b := p.backup(t, binary); b.NewChunks < 1 || b.NewChunks > 100-stored {
			t.Errorf("%s: of 100 changed tables %d were stored before, and %d in the next run; want from 1 to %v", sig, stored, b.NewChunks, 100-stored)
		}
		if now := p.whole(t); len(now) != len(ids)+1 {
			t.Errorf("%s: after the next backup: %v, want length %v", sig, now, len(ids)+1)
		}
	}
}

// flip: a bit that changes in a chunk is found and named.
func (p place) flip(t *testing.T) {
	for path, size := range p.objects(t) {
		if !strings.Contains(path, "prices") {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(raw)
		damaged[size/2] ^= 0x10
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := p.verify(t, binary); r.code != 1 || !strings.Contains(r.out+r.err, "prices") {
			t.Errorf("with a flipped bit verify ends with %d: got %s%s; want r.code 1, \"prices\" in r.out + r.err", r.code, r.out, r.err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := p.verify(t, binary); r.code != 0 {
			t.Errorf("with the bit as it was verify ends with %d: %s%s, want 0", r.code, r.out, r.err)
		}
		return
	}
	t.Fatal("no chunk of prices")
}
