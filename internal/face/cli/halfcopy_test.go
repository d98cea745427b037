package cli

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/face/web"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// TestHalfCopied: of a place that was copied in part list, check, verify, prune and restore say what is so: what is missing, and nothing good of a
// backup that cannot be restored.
func TestHalfCopied(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	place := t.TempDir()
	ids := keepBackups(t, place, 2, repo.Keys{})
	proveIt(t, place, ids[0], repo.Keys{}, true)
	proveIt(t, place, ids[0], repo.Keys{}, true)
	proofs, err := filepath.Glob(filepath.Join(place, "proofs", ids[0], "*Z"))
	if err != nil || len(proofs) != 2 {
		t.Fatal(proofs, err)
	}
	backup := func(id, what string) string { return filepath.Join(place, "backups", id, what) }
	says := func(what string, want int, words string, args ...string) {
		t.Helper()
		if code, out, err := said(t, append(args, "--from", place)...); code != want || !strings.Contains(out+err, words) {
			t.Errorf("%s: %v: %d, nothing of %q in %s%s", what, args, code, words, out, err)
		}
	}
	// without does something while a file is not there, or cut.
	without := func(path string, cut bool, do func()) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err == nil && cut {
			err = os.WriteFile(path, b[:len(b)/2], 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		do()
		os.Remove(path)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says("whole", checkOK, "proven", "check", "backup")
	for _, proof := range proofs[1:] {
		without(proof, true, func() {
			const what = "a proof that was cut"
			says(what, exitOK, "A drill of "+ids[0]+" counts for nothing: ", "backup", "list")
			says(what, checkOK, "proven", "check", "backup") // by the other
			says(what, exitFailed, "proofs/"+ids[0], "verify")
			says(what, exitOK, ids[0]+"  the newest that was proven", "backup", "prune", "--keep-last", "1", "--dry-run")
		})
	}
	for what, cut := range map[string]bool{"a manifest that was cut": true, "a manifest that is missing": false} {
		without(backup(ids[1], "manifest"), cut, func() {
			words := map[bool]string{true: "it was cut", false: "its manifest is not there"}[cut]
			if cut {
				words = "its end is not there"
			}
			says(what, exitOK, words, "backup", "list")
			says(what, checkCritical, "BACKUP CRITICAL - the newest backup, "+ids[1]+", does not count: ", "check", "backup")
			says(what, checkCritical, words, "check", "backup")
			says(what, exitFailed, "backups/"+ids[1]+"/manifest", "verify")
			says(what, exitFailed, "1 backup cannot be restored whole", "verify")
			says(what, exitOK, "Removed 0 backups", "backup", "prune", "--keep-last", "1")
			if !cut {
				says(what, exitOK, ids[1]+" has no manifest", "backup", "prune", "--keep-last", "1")
				says(what, exitOK, "Would remove 1 backup", "backup", "prune", "--remove", ids[1], "--dry-run")
			}
		})
	}
	// An older one that is damaged is told by verify, and makes no alarm of age.
	without(backup(ids[0], "manifest"), false, func() {
		says("an older manifest", checkWarning, "BACKUP WARNING - no backup was ever proven", "check", "backup")
		says("an older manifest", exitFailed, ids[0], "verify")
	})
	without(backup(ids[1], "head"), true, func() {
		says("a head that was cut", checkCritical, ids[1]+", does not count: ", "check", "backup")
		says("a head that was cut", exitFailed, "backups/"+ids[1]+"/head", "verify")
	})
	without(filepath.Join(place, "risso.json"), false, func() {
		for _, args := range [][]string{{"backup", "list"}, {"verify"}, {"backup", "prune", "--keep-last", "1"}, {"drill"}} {
			says("without risso.json", exitFailed, "its risso.json is lost", args...)
		}
		says("without risso.json", checkUnknown, "its risso.json is lost", "check", "backup")
	})
	says("whole again", exitOK, "", "verify")
}

// TestServeWithoutIdentity: a server that serves without an identity knows by their signatures which backups drills elsewhere proved, and says that
// it does not know of a proof that nobody signed; and that the newest backup is damaged.
func TestServeWithoutIdentity(t *testing.T) {
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	k, err := repoKeys([]string{who.Recipient().String()}, "")
	if err != nil {
		t.Fatal(err)
	}
	ids := keepBackups(t, place, 2, k)
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "risso.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	p := &protect{facts: facts, logger: slog.New(slog.DiscardHandler), newest: map[string]verdict.Uncounted{}, doubt: map[string]string{}, kept: map[string]map[web.BackupKey]web.Kept{}}
	s := watched{instance: fleet.Instance{ID: "db1", Name: "db1"}, protect: &protection{protectConfig: protectConfig{Place: place}}}
	says := func(words string, proven bool, fails error) {
		t.Helper()
		if err := p.catalogue(t.Context(), s); !errors.Is(err, fails) {
			t.Error(err)
		}
		list, err := facts.Protections(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		v := verdict.Judge(verdict.Facts{Protection: list[0]}, &verdict.Want{Place: place, Newest: p.newest["db1"], Doubt: p.doubt["db1"]}, time.Now())
		said := ""
		for _, f := range v.Findings {
			said += f.Words + "\n"
		}
		if !strings.Contains(said, words) || (list[0].LastProven != nil) != proven {
			t.Errorf("nothing of %q: %+v, proven %t", words, v, list[0].LastProven != nil)
		}
	}
	says("no backup was ever proven: it is unknown", false, nil)
	proveIt(t, place, ids[1], k, false)
	says("the newest proof does not count:  it is not signed", false, nil)
	proveIt(t, place, ids[1], k, true)
	says("", true, nil)
	drills, err := facts.Drills(t.Context(), "db1", 0)
	if err != nil || len(drills) != 1 || !drills[0].Passed || !strings.Contains(drills[0].Text, "cannot be read without an identity") {
		t.Errorf("%+v, %v", drills, err)
	}
	says("", true, nil)
	if again, err := facts.Drills(t.Context(), "db1", 0); err != nil || len(again) != 1 {
		t.Errorf("noted twice: %+v, %v", again, err)
	}
	manifest := filepath.Join(place, "backups", ids[1], "manifest")
	if err := errors.Join(os.Chmod(manifest, 0o600), os.Truncate(manifest, 100)); err != nil {
		t.Fatal(err)
	}
	says("the newest backup, "+ids[1]+", does not count: ", true, repo.ErrDamaged) // what is known of it stays known
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	says("the newest backup, "+ids[1]+", does not count: its manifest is not there", false, nil)
}
