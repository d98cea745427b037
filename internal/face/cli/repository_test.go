package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/places/placestest"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/backup"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// said is call of a command that says one line at most.
func said(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	code, out, err = call(t, args...)
	if strings.Count(err, "\n") > 1 {
		t.Errorf("%q says more than a line: %s, want strings.Count(err, \"\\n\") at most 1", args, err)
	}
	return code, out, err
}

// TestRepositoryCommands: list, show, verify, prune and copy in one story, over folders and S3, encrypted and not.
func TestRepositoryCommands(t *testing.T) {
	s3 := blobtest.S3(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(identity, []byte(who.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		place, second string
		recipients    []string
	}{
		"folder":        {t.TempDir(), s3.Place(t, "second", "copy"), nil},
		"encrypted, s3": {s3.Place(t, "first", "backups/db1"), t.TempDir() + "/not/yet", []string{who.Recipient().String()}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := places.Keys(c.recipients, "")
			if err != nil {
				t.Fatal(err)
			}
			ids := placestest.KeepBackups(t, c.place, 4, k)
			if code, out, e := said(t, "backup", "list", "--from", c.place); code != 0 || strings.Count(out, "\n") != 5 || strings.Count(out, "whole") != 4 || !strings.Contains(out, ids[2]) {
				t.Errorf("list: got %d %s%s; want code 0, strings.Count(out, \"\\n\") 5, strings.Count(out, \"whole\") 4, ids[2] in it", code, out, e)
			}
			if code, out, _ := said(t, "backup", "show", "--from", c.place, "--all", "--identity", identity); code != 0 || strings.Contains(out, "\x1b") || !strings.Contains(out, "shop.a") || !strings.Contains(out, ids[3]) {
				t.Errorf("show: got %d %q; want code 0, no \"\\x1b\" in it, \"shop.a\" in it, ids[3] in it", code, out)
			}
			code, out, _ := said(t, "backup", "show", "--from", c.place, ids[0], "-o", "json", "--identity", identity)
			var shown struct {
				Header  repo.Header
				Tables  []backup.ShownTable
				Schemas []backup.ShownSchema
			}
			if err := json.Unmarshal([]byte(out), &shown); code != 0 || err != nil || shown.Header.ID != ids[0] || len(shown.Tables) != 2 || len(shown.Schemas) != 2 {
				t.Errorf("show: got %d %s: %v; want code 0, shown.Header.ID ids[0], len(shown.Tables) 2, len(shown.Schemas) 2", code, out, err)
			}
			if code, out, e := said(t, "verify", "--from", c.place, "--identity", identity); code != 0 || !strings.Contains(out, "4 backups") || !strings.Contains(out, "5 objects") || !strings.Contains(out, "Whole    yes") {
				t.Errorf("verify: got %d %s%s; want code 0, \"4 backups\" in it, \"5 objects\" in it, \"Whole    yes\" in it", code, out, e)
			}
			if code, out, e := said(t, "backup", "copy", "--from", c.place, "--to", c.second); code != 0 || !strings.Contains(out, "Copied 4 backups, 5 objects") {
				t.Errorf("copy: got %d %s%s; want code 0, \"Copied 4 backups, 5 objects\" in it", code, out, e)
			}
			if code, out, e := said(t, "backup", "prune", "--from", c.place, "--keep-last", "2", "--dry-run"); code != 0 || strings.Count(out, "\nremove")+strings.Count(out[:6], "remove") != 2 || !strings.Contains(out, "Would remove 2 backups of 4, 2 objects") {
				t.Errorf("prune, dry: %d %s%s", code, out, e)
			}
			code, out, _ = said(t, "backup", "prune", "--from", c.place, "--keep-last", "2", "-o", "json")
			var pruned struct {
				Removed []string
				Objects int64
			}
			if err := json.Unmarshal([]byte(out), &pruned); code != 0 || err != nil || len(pruned.Removed) != 2 || pruned.Objects != 2 {
				t.Errorf("prune: got %d %s: %v; want code 0, len(pruned.Removed) 2, pruned.Objects 2", code, out, err)
			}
			if code, out, _ := said(t, "verify", "--from", c.place, "-o", "json"); code != 0 || !strings.Contains(out, `"whole": true`) {
				t.Errorf("verify after prune: got %d %s; want code 0, \"\\\"whole\\\": true\" in it", code, out)
			}
			if code, out, _ := said(t, "verify", "--from", c.second, "--quick"); code != 0 || !strings.Contains(out, "4 backups") {
				t.Errorf("verify the copy: got %d %s; want code 0, \"4 backups\" in it", code, out)
			}
		})
	}
}

// TestVerifyTellsDamage: a flipped bit is reported with the backups that it affects, and the exit code says so.
func TestVerifyTellsDamage(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	ids := placestest.KeepBackups(t, dir, 2, repo.Keys{})
	list, _ := filepath.Glob(filepath.Join(dir, "data", "odd*", "*", "*"))
	if len(list) != 1 {
		t.Fatalf("got %v, want length 1", list)
	}
	b, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 8
	if err := os.WriteFile(list[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, e := said(t, "verify", "--from", dir)
	if code != 1 || !strings.Contains(out, "damaged") || !strings.Contains(out, "Broken   "+ids[0]+", "+ids[1]) || !strings.Contains(e, "1 problem, 2 backups cannot be restored in full") {
		t.Errorf("got %d %s%s; want code 1, \"damaged\" in it, \"Broken \" + ids[0] + \", \" + ids[1] in it, \"1 problem, 2 backups cannot be restored in full\" in it",
			code, out, e)
	}
	if code, out, _ := said(t, "verify", "--from", dir, "-o", "json"); code != 1 || !strings.Contains(out, `"whole": false`) || !json.Valid([]byte(out)) {
		t.Errorf("got %d %s; want code 1, \"\\\"whole\\\": false\" in it, json.Valid([]byte(out)) true", code, out)
	}
	if code, _, _ := said(t, "verify", "--from", dir, "--quick"); code != 0 {
		t.Errorf("--quick reads objects: got %v, want 0", code)
	}
	if code, _, e := said(t, "backup", "copy", "--from", dir, "--to", t.TempDir()); code != 1 || !strings.Contains(e, "damaged") {
		t.Errorf("copy: got %d %s; want code 1, \"damaged\" in it", code, e)
	}
}

// TestVerifyOtherIdentity: an identity that opens nothing is one line, and nothing of the place is touched, on the host that made it, too.
func TestVerifyOtherIdentity(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "identity")
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	k, err := places.Keys([]string{who.Recipient().String()}, "")
	if err != nil {
		t.Fatal(err)
	}
	placestest.KeepBackups(t, dir, 2, k)
	for id, want := range map[*age.X25519Identity]int{other: 1, who: 0} {
		if err := os.WriteFile(file, []byte(id.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, e := said(t, "verify", "--from", dir, "--identity", file, "--set-aside")
		if code != want || want == 1 && (out != "" || strings.Count(e, "\n") != 1 || !strings.Contains(e, "no identity opens it: the given identity belongs to none")) {
			t.Errorf("%d %s%s", code, out, e)
		}
		if list, _ := filepath.Glob(filepath.Join(dir, "damaged", "*")); len(list) > 0 {
			t.Errorf("it set aside %q, want none", list)
		}
	}
}

// TestVerifyHints: what verify says of a damaged part of a physical backup, and of a damaged head, is so.
func TestVerifyHints(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, second := t.TempDir(), t.TempDir()
	ids := placestest.KeepBackups(t, dir, 2, repo.Keys{})
	r, closePlace, err := places.Make(t.Context(), dir, repo.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	defer closePlace()
	h, d := repo.Header{Format: repo.Format, ID: repo.NewID(time.Now()), Kind: repo.Physical, Began: time.Now(), Stream: &repo.Stream{Form: "xbstream"}}, repo.NewDraft()
	defer d.Close()
	k, err := r.NewKeeper()
	if err == nil {
		err = r.Begin(t.Context(), h, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	part, err := k.KeepPart(t.Context(), h.ID, 0, []byte(strings.Repeat("files", 100)))
	if err == nil {
		err = d.Add(repo.Line{Part: &part})
	}
	if err == nil {
		err = r.Finish(t.Context(), h, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, out, e := said(t, "backup", "copy", "--from", dir, "--to", second); code != 0 {
		t.Fatalf("got %v, %v; want code 0", out, e)
	}
	spoil := func(key string) {
		t.Helper()
		name := filepath.Join(dir, filepath.FromSlash(key))
		st, err := os.Stat(name)
		if err == nil {
			err = os.Chmod(name, 0o600)
		}
		if err == nil {
			err = os.Truncate(name, st.Size()-40)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	spoil("physical/" + h.ID + "/000000")
	if code, out, e := said(t, "verify", "--from", dir); code != 1 || strings.Contains(e, "the next backup") || !strings.Contains(e, "can only come from a second place") || !strings.Contains(out, "Broken   "+h.ID) {
		t.Errorf("a part: got %d %s%s; want code 1, no \"the next backup\" in it, \"can only come from a second place\" in it, %q in it",
			code, out, e, "Broken "+h.ID)
	}
	said(t, "verify", "--from", dir, "--set-aside")
	said(t, "backup", "copy", "--from", second, "--to", dir)
	if code, out, e := said(t, "verify", "--from", dir); code != 0 {
		t.Errorf("the remedy: got %d %s%s, want 0", code, out, e)
	}
	spoil("backups/" + ids[1] + "/head")
	if code, out, e := said(t, "verify", "--from", dir); code != 1 || strings.Contains(e, "set-aside") || !strings.Contains(out, "needed by "+ids[1]) || !strings.Contains(out, "can still be restored by its ID (--backup "+ids[1]+")") {
		t.Errorf("a head: got %d %s%s; want code 1, no \"set-aside\" in it, \"needed by \" + ids[1] in it, \"can still be restored by its ID (--backup \" + ids[1] + \")\" in it",
			code, out, e)
	}
}

// TestRepositoryWrongUse: one line, exit code 2, or 1 if something is missing in the place.
func TestRepositoryWrongUse(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	empty := t.TempDir()
	placestest.KeepBackups(t, dir, 1, repo.Keys{})
	for args, want := range map[string]string{
		"verify": "2 give the place of the backups", "verify --from s3:x": "2 s3://", "verify --from ftp://x": "2 not a kind of place", "verify --from " + empty: "1 risso backup --to makes one",
		"verify --from " + dir + " --backup x": "1 no such backup", "verify --from " + dir + " --identity /nowhere": "2 --identity", "verify --from " + dir + " -o xml": "2 there are text, json", "verify --from " + dir + " extra": "2 ",
		"verify --from " + dir + " --threads -1": "2 --threads", "backup list": "2 give the place of the backups", "backup lst": "2 has no command", "backup show --from " + dir + " nothing": "1 no such backup",
		"backup show --from " + dir + " ../../etc": "1 ", "backup prune --from " + dir + " --keep-within 5x": "2 --keep-within", "backup prune --from " + dir + " --keep-within -5d": "2 --keep-within",
		"backup prune --from " + dir + " --keep-last -1": "2 cannot be -1", "backup prune --from " + dir + " --remove x": "1 no such backup", "backup prune --from " + dir + " --remove x --keep-last 1": "2 exclude each other",
		"backup copy --from " + dir: "2 --to", "backup copy --from " + dir + " --to " + dir: "2 one place", "backup copy --from " + empty + " --to " + dir: "1 no backup repository", "backup copy --from " + dir + " --to gs://x": "2 not a kind",
		"backup copy --to " + empty: "2 give the place of the backups",
	} {
		code, _, e := said(t, strings.Fields(args)...)
		if got := fmt.Sprintf("%d %s", code, e); !strings.HasPrefix(got, want[:2]) || !strings.Contains(e, strings.TrimSpace(want[2:])) || strings.Count(e, "\n") != 1 {
			t.Errorf("%s: %s; want %s", args, got, want)
		}
	}
	if code, out, _ := said(t, "backup", "prune", "--from", dir); code != 0 || !strings.Contains(out, "no rule was given") {
		t.Errorf("got %d %s; want code 0, \"no rule was given\" in it", code, out)
	}
}

// TestCopyTold: a copy names what it refuses and what is otherwise there, copies the others, and ends with 1.
func TestCopyTold(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	from, second := t.TempDir(), t.TempDir()
	ids := placestest.KeepBackups(t, from, 3, repo.Keys{})
	signature := filepath.Join(from, "backups", ids[1], "signature")
	if err := os.Remove(signature); err != nil {
		t.Fatal(err)
	}
	code, out, e := said(t, "backup", "copy", "--from", from, "--to", second)
	if code != 1 || !strings.Contains(out, "refused    backup "+ids[1]) || !strings.Contains(out, "not signed") || !strings.Contains(out, "Copied 2 backups") || !strings.Contains(e, "--allow-unsigned") {
		t.Errorf("unsigned: got %d %s%s; want code 1, \"refused backup \" + ids[1] in it, \"not signed\" in it, \"Copied 2 backups\" in it, \"--allow-unsigned\" in it",
			code, out, e)
	}
	if code, out, _ = said(t, "backup", "copy", "--from", from, "--to", second, "--allow-unsigned"); code != 0 || !strings.Contains(out, "Copied 1 backup") {
		t.Errorf("allowed: got %d %s; want code 0, \"Copied 1 backup\" in it", code, out)
	}
	head := filepath.Join(from, "backups", ids[0], "manifest")
	good, err := os.ReadFile(filepath.Join(second, "backups", ids[0], "manifest"))
	if err == nil {
		err = errors.Join(os.Chmod(head, 0o600), os.Truncate(head, 10))
	}
	if err != nil {
		t.Fatal(err)
	}
	code, out, e = said(t, "backup", "copy", "--from", from, "--to", second)
	if code != 1 || !strings.Contains(out, fmt.Sprintf("different  backups/%s/manifest: 10 bytes here, damaged; %d bytes there, its seal matches", ids[0], len(good))) || !strings.Contains(e, "left unchanged") || !strings.Contains(e, "--set-aside") {
		t.Errorf("otherwise there: got %d %s%s; want code 1, fmt.Sprintf(\"different backups/%%s/manifest: 10 bytes here, damaged; %%d bytes there, its seal matches\", ids[0], len(good)) in it, \"left unchanged\" in it, \"--set-aside\" in it",
			code, out, e)
	}
	var c repo.Copied
	if code, out, _ = said(t, "backup", "copy", "--from", from, "--to", second, "-o", "json"); code != 1 || json.Unmarshal([]byte(out), &c) != nil || len(c.Different) != 1 || c.Different[0].There.Bytes != int64(len(good)) {
		t.Errorf("json: got %d %s; want code 1, json.Unmarshal nil, len(c.Different) 1, c.Different[0].There.Bytes %v", code, out, int64(len(good)))
	}
}
