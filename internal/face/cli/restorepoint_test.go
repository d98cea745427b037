package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRestorePoints: a backup from after the requested moment is refused, and the one from before it named; times are in the given zone
// and printed in UTC. What of mirrored logs was cut, has no index or is a stranger's is reported by all commands that read them, and none takes
// the rest for all.
func TestRestorePoints(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := &restoreStory{t: t, spec: "mariadb", here: n, place: filepath.Join(t.TempDir(), "bk")}
	sql := func(q string) string { return strings.Trim(s.sql(n, q), "[]") }
	follow := []string{"binlog", "follow", "--dsn", n.DSN, "--to", s.place, "--once"}
	sql("CREATE DATABASE f; CREATE TABLE f.t (id INT PRIMARY KEY); INSERT INTO f.t VALUES (1)")
	mustRun(t, "backup", "--dsn", n.DSN, "--to", s.place)
	s.between()
	sql("INSERT INTO f.t VALUES (2)")
	first := s.last()
	until := s.between()
	sql("INSERT INTO f.t VALUES (3); FLUSH BINARY LOGS")
	s.between()
	mustRun(t, "backup", "--dsn", n.DSN, "--to", s.place)
	sql("INSERT INTO f.t VALUES (4); FLUSH BINARY LOGS; INSERT INTO f.t VALUES (5)")
	mustRun(t, follow...)
	r, done, err := flags.Source{From: s.place}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	backups, err := r.Backups(t.Context())
	if err != nil || len(backups) != 2 {
		t.Fatalf("got %d backups: %v; want 2", len(backups), err)
	}
	older, newer := backups[0], backups[1]
	if older.Began.After(newer.Began) {
		older, newer = newer, older
	}
	restore := func(more ...string) []string {
		return append([]string{"restore", "--from", s.place, "--into", n.DSN, "--table", "f.t", "--rename", "f.t=f.old"}, more...)
	}
	late := []string{"the backup is from a later time than the one to stop at", newer.ID + " is from ", "--backup " + older.ID + " is the last", "nothing was changed"}
	for _, more := range [][]string{nil, {"--dry-run"}, {"--logs-dsn", n.DSN}, {"--series", strings.SplitN(filepath.Base(seriesDir(t, s.place)), ".", 2)[0]}} {
		s.says(s.refused(fault.Failed, restore(append(more, "--to-time", until)...)...), late...)
	}
	s.says(s.refused(fault.Failed, restore("--to-time", "2001-01-01")...), "there is no earlier backup of that server here")
	s.says(s.refused(fault.Failed, restore("--to-gtid", first)...), "the position is past the point to stop at", "--backup names an older one", "nothing was changed")
	s.says(s.refused(fault.Failed, restore("--before", first)...), "the position is past the point to stop at", "nothing was changed")
	if got := sql("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('f', 'risso_restore')"); got != "1" {
		t.Fatalf("%s tables, want \"1\"", got)
	}
	at, err := time.Parse("2006-01-02 15:04:05", until)
	if err != nil {
		t.Fatal(err)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "America/New_York") // neither the host's zone nor the server's is meant
	sql("SET GLOBAL time_zone = '-05:00'")
	for _, when := range [][]string{{until}, {until + "Z"}, {at.In(tokyo).Format("2006-01-02 15:04:05"), "--timezone", "Asia/Tokyo"}, {at.In(tokyo).Format(time.RFC3339)}} {
		s.says(mustRun(t, append(restore("--backup", older.ID, "--dry-run", "--to-time"), when...)...), ": 1 transaction, ", "ends before the first transaction from "+at.Format(time.RFC3339)+" on")
	}
	mustRun(t, restore("--backup", older.ID, "--to-time", until)...)
	if got := sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM f.old"); got != "1 2" && got != "1,2" {
		t.Errorf("the rows are %s", got)
	}
	if help := mustRun(t, "restore", "--help"); !strings.Contains(help, `time zone of times written without one: UTC, Local, Europe/Berlin (default "UTC")`) {
		t.Errorf("help does not tell the zone: got %s, want \"time zone of times written without one: UTC, Local, Europe/Berlin (default \\\"UTC\\\")\" in it",
			help)
	}
	s.damagedMirror()
}

// seriesDir is the folder of the only series of a place.
func seriesDir(t *testing.T, place string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(place, "binlog", "[0-9]*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v; want length 1", found, err)
	}
	return found[0]
}

// damagedMirror changes one file of the mirror after the other, and puts it back.
func (s *restoreStory) damagedMirror() {
	t, dir := s.t, seriesDir(s.t, s.place)
	search := []string{"binlog", "search", "--from", s.place, "--table", "f.*"}
	roll := []string{"binlog", "apply", "--from", s.place, "--start", "binlog.000001:4", "--dry-run"}
	probe := []string{"check", "backup", "--from", s.place}
	list := []string{"binlog", "list", "--from", s.place}
	mustRun(t, search...)
	mustRun(t, roll...)
	s.says(s.refused(check.Warning, probe...), "was ever proven")
	s.says(mustRun(t, list...), "binlog.000002")
	packed, index, growing := filepath.Join(dir, "binlog.000002.zst"), filepath.Join(dir, "binlog.000002.json"), filepath.Join(dir, "binlog.000003")
	type say struct {
		args  []string
		code  int
		words string
	}
	not := []string{"not all of these logs could be searched"}
	for _, c := range []struct {
		name, file string
		change     func(b []byte) []byte // nil: the file goes
		says       []say
	}{
		{"a log that is cut", packed, func(b []byte) []byte { return b[:len(b)-20] }, []say{{search, fault.Failed, not[0]}, {roll, fault.Failed, "binlog.000002"}, {append(list, "--verify"), fault.Failed, "binlog.000002 is damaged"}}},
		{"one with a bit that is another", packed, func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, []say{{search, fault.Failed, "binlog.000002"}, {roll, fault.Failed, "binlog.000002"}, {append(list, "--verify"), fault.Failed, "binlog.000002 is damaged"}}},
		{"one that is gone", packed, nil, []say{{search, fault.Failed, "binlog.000002"}, {roll, fault.Failed, "binlog.000002"}}},
		{"one without its index", index, nil, []say{{search, fault.Failed, "1 log is there (binlog.000002) without an index"}, {roll, fault.Failed, "the log between binlog.000001 and binlog.000003 is missing"}, {list, fault.OK, "LOST: of series"}, {[]string{"verify", "--from", s.place}, fault.Failed, "binlog.000002: it has no index"}}},
		{"one that is not signed", index, func(b []byte) []byte { return bytes.Replace(b, []byte(`"signature"`), []byte(`"nothing"`), 1) },
			[]say{{probe, check.Warning, "1 mirrored binary log does not count (series "}, {probe, check.Warning, "it is not signed, so it is unknown who made it"}, {roll, fault.Failed, "--allow-unsigned"}, {append(probe, "--allow-unsigned"), check.Warning, "was ever proven: it is unknown whether they can be restored |"}}},
		{"one that grows and lost its end", growing, lessOne, []say{{search, fault.Failed, "were mirrored: it has been truncated since"}, {roll, fault.Failed, "binlog.000003"}, {probe, check.Warning, "1 mirrored binary log does not count (series "}}},
	} {
		was, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(c.file); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			err = os.WriteFile(c.file, c.change(slices.Clone(was)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, say := range c.says {
			if code, out, errs := call(t, say.args...); code != say.code || !strings.Contains(out+errs, say.words) {
				t.Errorf("%s: %v: %d, not %d with %q: %s%s", c.name, say.args, code, say.code, say.words, out, errs)
			}
		}
		os.Remove(c.file)
		if err := os.WriteFile(c.file, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.lostAtTheEnd()
	// A mirror goes on, and what was cut is whole again.
	if err := os.Truncate(growing, 300); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "binlog", "follow", "--dsn", s.here.DSN, "--to", s.place, "--once")
	mustRun(t, search...)
	mustRun(t, roll...)
}

// lostAtTheEnd: logs that end because the next one has no index do not end.
func (s *restoreStory) lostAtTheEnd() {
	lost := filepath.Join(seriesDir(s.t, s.place), "binlog.000004.zst")
	if err := os.WriteFile(lost, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	restore := []string{"restore", "--from", s.place, "--into", s.here.DSN, "--table", "f.t", "--rename", "f.t=f.lost", "--dry-run", "--to-time", "2100-01-01"}
	apply := []string{"binlog", "apply", "--from", s.place, "--start", "binlog.000001:4", "--dry-run"}
	for _, args := range [][]string{restore, append(apply, "--to-time", "2100-01-01")} {
		s.says(s.refused(fault.Failed, args...), "they end before the time to stop at, and of series ", "1 log is there (binlog.000004) without an index")
	}
	s.says(mustRun(s.t, apply...), "note: of series ", "1 log is there (binlog.000004)")
	if err := os.Remove(lost); err != nil {
		s.t.Fatal(err)
	}
	s.says(mustRun(s.t, restore...), "ends where the logs end, before the time to stop at, 2100-01-01T00:00:00Z")
}

// lessOne is a log without its last event.
func lessOne(b []byte) []byte {
	for at := 4; ; {
		next := at + int(uint32(b[at+9])|uint32(b[at+10])<<8|uint32(b[at+11])<<16|uint32(b[at+12])<<24)
		if next >= len(b) {
			return b[:at]
		}
		at = next
	}
}
