package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/places/placestest"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/fault"
)

// TestHalfCopied: of a place that was copied in part list, check, verify, prune and restore say what is so: what is missing, and nothing good of a
// backup that cannot be restored.
func TestHalfCopied(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	place := t.TempDir()
	ids := placestest.KeepBackups(t, place, 2, repo.Keys{})
	placestest.Prove(t, place, ids[0], repo.Keys{}, true)
	placestest.Prove(t, place, ids[0], repo.Keys{}, true)
	proofs, err := filepath.Glob(filepath.Join(place, "proofs", ids[0], "*Z"))
	if err != nil || len(proofs) != 2 {
		t.Fatalf("got %v, %v; want length 2", proofs, err)
	}
	backup := func(id, what string) string { return filepath.Join(place, "backups", id, what) }
	says := func(what string, want int, words string, args ...string) {
		t.Helper()
		if code, out, err := said(t, append(args, "--from", place)...); code != want || !strings.Contains(out+err, words) {
			t.Errorf("%s: got %v: %d, nothing of %q in %s%s; want code %d, %q in out + err", what, args, code, words, out, err, want, words)
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
	says("whole", check.OK, "proven", "check", "backup")
	for _, proof := range proofs[1:] {
		without(proof, true, func() {
			const what = "a proof that was cut"
			says(what, fault.OK, "A drill of "+ids[0]+" does not count: ", "backup", "list")
			says(what, check.OK, "proven", "check", "backup") // by the other
			says(what, fault.Failed, "proofs/"+ids[0], "verify")
			says(what, fault.OK, ids[0]+"  the newest proven one", "backup", "prune", "--keep-last", "1", "--dry-run")
		})
	}
	for what, cut := range map[string]bool{"a manifest that was cut": true, "a manifest that is missing": false} {
		without(backup(ids[1], "manifest"), cut, func() {
			words := map[bool]string{true: "it was truncated", false: "its manifest is missing"}[cut]
			if cut {
				words = "its end is missing"
			}
			says(what, fault.OK, words, "backup", "list")
			says(what, check.Critical, "BACKUP CRITICAL - the newest backup, "+ids[1]+", does not count: ", "check", "backup")
			says(what, check.Critical, words, "check", "backup")
			says(what, fault.Failed, "backups/"+ids[1]+"/manifest", "verify")
			says(what, fault.Failed, "1 backup cannot be restored in full", "verify")
			says(what, fault.OK, "Removed 0 backups", "backup", "prune", "--keep-last", "1")
			if !cut {
				says(what, fault.OK, ids[1]+" has no manifest", "backup", "prune", "--keep-last", "1")
				says(what, fault.OK, "Would remove 1 backup", "backup", "prune", "--remove", ids[1], "--dry-run")
			}
		})
	}
	// An older one that is damaged is reported by verify, and raises no alarm of age.
	without(backup(ids[0], "manifest"), false, func() {
		says("an older manifest", check.Warning, "BACKUP WARNING - no backup was ever proven", "check", "backup")
		says("an older manifest", fault.Failed, ids[0], "verify")
	})
	without(backup(ids[1], "head"), true, func() {
		says("a head that was cut", check.Critical, ids[1]+", does not count: ", "check", "backup")
		says("a head that was cut", fault.Failed, "backups/"+ids[1]+"/head", "verify")
	})
	without(filepath.Join(place, "risso.json"), false, func() {
		for _, args := range [][]string{{"backup", "list"}, {"verify"}, {"backup", "prune", "--keep-last", "1"}, {"drill"}} {
			says("without risso.json", fault.Failed, "its risso.json is lost", args...)
		}
		says("without risso.json", check.Unknown, "its risso.json is lost", "check", "backup")
	})
	says("whole again", fault.OK, "", "verify")
}
