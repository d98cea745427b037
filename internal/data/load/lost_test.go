package load_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
)

// TestLostChunk: nothing is dropped if its chunk is missing, also in a dry run; inner damage is found after a DROP, and then what was dropped is
// reported.
func TestLostChunk(t *testing.T) {
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE lost", "USE lost", "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "CREATE TABLE r (id INT PRIMARY KEY)", "INSERT INTO r VALUES (1)")
	r, dir := emptyRepo(t)
	smallDump(t, node, r, "lost")
	chunks, err := filepath.Glob(filepath.Join(dir, "data", "lost", "t", "*"))
	if err != nil || len(chunks) != 1 {
		t.Fatalf("got %v, %v; want length 1", chunks, err)
	}
	whole, err := os.ReadFile(chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	live := func() string { return ask(t, s, "SELECT * FROM lost.t") + ask(t, s, "SELECT * FROM lost.r") }
	exec(t, s, "DROP TABLE r, t", "CREATE TABLE t (live INT)", "INSERT INTO t VALUES (7)", "CREATE TABLE r (live INT)", "INSERT INTO r VALUES (8)")
	put := func(b []byte) {
		t.Helper()
		os.Remove(chunks[0])
		if b != nil {
			if err := os.WriteFile(chunks[0], b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for how, b := range map[string][]byte{"gone": nil, "shorter": whole[:len(whole)-1], "longer": append(slices.Clone(whole), 'x')} {
		for _, dry := range []bool{true, false} {
			put(b)
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Overwrite: true, DryRun: dry})
			if !errors.Is(err, repo.ErrDamaged) || res.Changed || !strings.Contains(err.Error(), "lost.t") || strings.Contains(err.Error(), "dropped") {
				t.Errorf("got %s, dry %t: %+v, %v; want repo.ErrDamaged, res.Changed false, \"lost.t\" in the error, no \"dropped\" in the error",
					how, dry, res, err)
			}
			if got := live(); got != "7|\n8|\n" {
				t.Fatalf("%s, dry %t: there is %q; want \"7|\\n8|\\n\"", how, dry, got)
			}
		}
	}
	// What is not asked for may be lost.
	put(nil)
	if res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Tables: []string{"lost.r"}, Rename: []string{"lost.r=lost.old"}}); err != nil {
		t.Errorf("the other table: %+v, %v", res, err)
	}
	exec(t, s, "DROP TABLE lost.old")
	bad := slices.Clone(whole)
	bad[len(bad)/2] ^= 4
	put(bad)
	if _, err := restore(t, load.Options{Repo: r, Into: target(t, node), Overwrite: true}); !errors.Is(err, repo.ErrDamaged) || !strings.Contains(err.Error(), "already dropped: ") || !strings.Contains(err.Error(), "table `lost`.`t`") {
		t.Errorf("damaged inside: got %v; want repo.ErrDamaged, \"already dropped: \" in the error, \"table `lost`.`t`\" in the error", err)
	}
	put(whole)
	if res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Overwrite: true}); err != nil || !res.Resumed {
		t.Errorf("mended: got %+v, %v; want Resumed true", res, err)
	}
	if got := live(); got != "1|a|\n2|b|\n1|\n" {
		t.Errorf("at the end there is %q, want \"1|a|\\n2|b|\\n1|\\n\"", got)
	}
	// A backup whose head is damaged is restored by its ID, as verify says.
	v, err := r.Verify(t.Context(), repo.VerifyOptions{})
	if err != nil || len(v.Backups) != 1 {
		t.Fatalf("got %+v, %v; want length 1", v, err)
	}
	head := filepath.Join(dir, "backups", v.Backups[0], "head")
	os.Remove(head)
	if err := os.WriteFile(head, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err = r.Verify(t.Context(), repo.VerifyOptions{}); err != nil || len(v.Problems) != 1 || len(v.Broken) != 0 || !strings.Contains(v.Problems[0].What, "--backup "+v.Backups[0]) {
		t.Errorf("got %+v, %v; want len(Problems) 1, no v.Broken, \"--backup \" + v.Backups[0] in Problems[0].What", v, err)
	}
	exec(t, s, "DROP DATABASE lost")
	if res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Backup: v.Backups[0]}); err != nil || live() != "1|a|\n2|b|\n1|\n" {
		t.Errorf("by its ID: got %+v, %v; want live() \"1|a|\\n2|b|\\n1|\\n\"", res, err)
	}
}
