package protect

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/places/placestest"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// TestServeWithoutIdentity: a server that serves without an identity knows by their signatures which backups drills elsewhere proved, and says that
// it does not know about an unsigned proof; and that the newest backup is damaged.
func TestServeWithoutIdentity(t *testing.T) {
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	k, err := places.Keys([]string{who.Recipient().String()}, "")
	if err != nil {
		t.Fatal(err)
	}
	ids := placestest.KeepBackups(t, place, 2, k)
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "risso.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	p := &Guard{facts: facts, logger: slog.New(slog.DiscardHandler), newest: map[string]verdict.Uncounted{}, doubt: map[string]string{}, kept: map[string]map[BackupKey]Kept{}}
	s := config.Watched{Instance: fleet.Instance{ID: "db1", Name: "db1"}, Protect: &config.Protection{Protect: config.Protect{Place: place}}}
	says := func(words string, proven bool, fails error) {
		t.Helper()
		if err := p.catalogue(t.Context(), s); !errors.Is(err, fails) {
			t.Errorf("got %v, want fails", err)
		}
		list, err := facts.Protections(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("got %+v, %v; want length 1", list, err)
		}
		v := verdict.Judge(verdict.Facts{Protection: list[0]}, &verdict.Want{Place: place, Newest: p.newest["db1"], Doubt: p.doubt["db1"]}, time.Now())
		said := ""
		for _, f := range v.Findings {
			said += f.What + "\n"
		}
		if !strings.Contains(said, words) || (list[0].LastProven != nil) != proven {
			t.Errorf("nothing of %q: %+v, proven %t", words, v, list[0].LastProven != nil)
		}
	}
	says("no backup was ever proven: it is unknown", false, nil)
	placestest.Prove(t, place, ids[1], k, false)
	says("the newest proof does not count: it is not signed", false, nil)
	placestest.Prove(t, place, ids[1], k, true)
	says("", true, nil)
	drills, err := facts.Drills(t.Context(), "db1", 0)
	if err != nil || len(drills) != 1 || !drills[0].Passed || !strings.Contains(drills[0].Text, "cannot be read without an identity") {
		t.Errorf("got %+v, %v; want len(drills) 1, drills[0].Passed true, \"cannot be read without an identity\" in drills[0].Text", drills, err)
	}
	says("", true, nil)
	if again, err := facts.Drills(t.Context(), "db1", 0); err != nil || len(again) != 1 {
		t.Errorf("noted twice: got %+v, %v; want length 1", again, err)
	}
	manifest := filepath.Join(place, "backups", ids[1], "manifest")
	if err := errors.Join(os.Chmod(manifest, 0o600), os.Truncate(manifest, 100)); err != nil {
		t.Fatal(err)
	}
	says("the newest backup, "+ids[1]+", does not count: ", true, repo.ErrDamaged) // what is known of it stays known
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	says("the newest backup, "+ids[1]+", does not count: its manifest is missing", false, nil)
}
