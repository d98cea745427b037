package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/state"
)

// TestJudgeBackups: the check says what the page says, in its words, with its states.
func TestJudgeBackups(t *testing.T) {
	now := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	const hour, day = time.Hour, 24 * time.Hour
	// facts are of a server with backups that ended so long ago, the newest first, and drills of the newest.
	facts := func(backups []time.Duration, mirrors []state.Mirror, drills ...state.Drill) backupFacts {
		f := backupFacts{backups: len(backups)}
		var list []state.Backup
		for i, ago := range backups {
			list = append(list, state.Backup{Place: "/b", ID: fmt.Sprint(9 - i), Kind: "logical", Began: now.Add(-ago), Ended: now.Add(-ago + time.Minute), Bytes: 3 << 30, Stored: 1 << 20})
			f.First = list[i].Ended
		}
		if lines := state.Protect(list, drills, mirrors, nil, nil, now); len(lines) > 0 {
			f.Protection = lines[0]
		}
		f.Mirrors = mirrors
		return f
	}
	drill := func(ago time.Duration, passed bool) state.Drill {
		return state.Drill{Place: "/b", Backup: "9", Ended: now.Add(-ago), Passed: passed, Recovery: 12.3456, Text: "shop.a differs | by a row"}
	}
	mirror := []state.Mirror{{Place: "/b", First: now.Add(-100 * hour), Last: now.Add(-10 * time.Minute)}}
	off := levels{ageLimit(verdict.Never), ageLimit(verdict.Never)}
	for _, c := range []struct {
		name  string
		facts backupFacts
		flags checkBackupFlags
		want  int
		say   string
	}{
		{"nothing", backupFacts{}, checkBackupFlags{}, Critical, "BACKUP CRITICAL - never backed up | backups=0;;;0"},
		{"good", facts([]time.Duration{2 * hour, day}, nil, drill(day, true)), checkBackupFlags{}, OK,
			"BACKUP OK - backed up 2 h ago, proven 24 h ago, back within 12.3 s | age=7200s;93600;187200;0 size=3221225472B;;;0 stored=1048576B;;;0 backups=2;;;0 proven=86400s;2592000;;0 recovery=12.346s;;;0"},
		{"hollow", backupFacts{newest: verdict.Uncounted{ID: "9", Why: "it has no tables"}}, checkBackupFlags{}, Critical, "BACKUP CRITICAL - the newest backup, 9, does not count: it has no tables; never backed up"},
		{"damaged", backupFacts{newest: verdict.Uncounted{ID: "9", Why: "it was cut", Kind: verdict.Broken}}, checkBackupFlags{}, Critical, "BACKUP CRITICAL - the newest backup, 9, does not count: it was cut; no backup counts | backups=0;;;0"},
		{"damaged, behind a whole one", func() backupFacts {
			f := facts([]time.Duration{2 * hour}, nil, drill(day, true))
			f.newest = verdict.Uncounted{ID: "10", Why: "it was cut", Kind: verdict.Broken}
			return f
		}(), checkBackupFlags{}, Critical, "BACKUP CRITICAL - the newest backup, 10, does not count: it was cut | age=7200s"},
		{"a part", backupFacts{newest: verdict.Uncounted{ID: "9", Why: "holds only shop", Kind: verdict.Part}}, checkBackupFlags{}, Critical, "BACKUP CRITICAL - never backed up as a whole, the newest backup, 9, holds only shop | backups=0;;;0"},
		{"a stranger's", func() backupFacts {
			f := facts([]time.Duration{2 * hour}, nil, drill(day, true))
			f.newest = verdict.Uncounted{ID: "10", Why: "it is not signed", Kind: verdict.Strange}
			return f
		}(), checkBackupFlags{}, Warning, "BACKUP WARNING - the newest backup, 10, does not count: it is not signed | age=7200s"},
		{"a stranger's proof", func() backupFacts {
			f := facts([]time.Duration{2 * hour}, nil)
			f.doubt = "it is not signed"
			return f
		}(), checkBackupFlags{}, Warning, "BACKUP WARNING - no backup was ever proven by a trusted key, the newest proof does not count: it is not signed | "},
		{"a stranger's newer proof", func() backupFacts {
			f := facts([]time.Duration{2 * hour}, nil, drill(31*day, true))
			f.doubt = "100 % odd"
			return f
		}(), checkBackupFlags{}, Warning, "BACKUP WARNING - the last proof that counts is 31 d old, and a newer one does not count: 100 % odd | "},
		{"dated ahead", facts([]time.Duration{-300 * hour, 27 * hour}, nil), checkBackupFlags{}, Warning, "the last backup is 27 h old: the one due at 17:00 is missing"},
		{"one dated ahead", facts([]time.Duration{-300 * hour, 2 * hour}, nil, drill(hour, true)), checkBackupFlags{}, Warning, "BACKUP WARNING - backup 9 is dated 13 d in the future: a clock was wrong, and it does not count | age=7200s"},
		{"all dated ahead", facts([]time.Duration{-300 * hour, -100 * hour}, nil, drill(hour, true)), checkBackupFlags{}, Critical, "BACKUP CRITICAL - all backups are dated in the future, the last by 13 d: a clock is wrong, and their age is unknown"},
		{"proof dated ahead", facts([]time.Duration{hour}, nil, drill(-300*hour, true)), checkBackupFlags{}, Warning, "BACKUP WARNING - the last proof that a backup restores is dated 13 d in the future: a clock was wrong"},
		{"mirror dated ahead", facts([]time.Duration{hour}, []state.Mirror{{Place: "/b", First: now.Add(-100 * hour), Last: now.Add(300 * hour)}}, drill(hour, true)), checkBackupFlags{}, Warning, "BACKUP WARNING - the newest mirrored event is dated 13 d in the future: a clock is wrong"},
		{"old", facts([]time.Duration{27 * hour}, nil, drill(day, true)), checkBackupFlags{}, Warning, "BACKUP WARNING - the last backup is 27 h old: the one due at 17:00 is missing"},
		{"very old", facts([]time.Duration{53 * hour}, nil, drill(day, true)), checkBackupFlags{}, Critical, "BACKUP CRITICAL - the last backup is 2 d old | age=190800s"},
		{"own levels", facts([]time.Duration{3 * hour}, nil, drill(day, true)), checkBackupFlags{age: levels{ageLimit(2 * hour), ageLimit(3 * hour)}}, Warning, "age=10800s;7200;10800;0"},
		{"never proven", facts([]time.Duration{hour}, nil), checkBackupFlags{}, Warning, "BACKUP WARNING - no backup was ever proven: it is unknown whether they can be restored |"},
		{"long unproven", facts([]time.Duration{hour, 16 * day}, nil), checkBackupFlags{proven: levels{0, ageLimit(15 * day)}}, Critical, "BACKUP CRITICAL - no backup was ever proven"},
		{"proven long ago", facts([]time.Duration{hour}, nil, drill(31*day, true)), checkBackupFlags{}, Warning, "BACKUP WARNING - the last proof that a backup restores is 31 d old"},
		{"failed since", facts([]time.Duration{hour, 30 * hour}, nil, drill(hour/2, false), drill(2*day, true)), checkBackupFlags{}, Critical,
			"BACKUP CRITICAL - the last drill failed at 17:30: shop.a differs / by a row |"},
		{"two things", facts([]time.Duration{27 * hour}, nil, drill(hour/2, false)), checkBackupFlags{}, Critical, "by a row; the last backup is 27 h old: "},
		{"mended", facts([]time.Duration{hour}, nil, drill(hour/2, true), drill(2*day, false)), checkBackupFlags{}, OK, "BACKUP OK"},
		{"mirror", facts([]time.Duration{hour}, mirror, drill(hour, true)), checkBackupFlags{}, OK, "any moment of the last 59 min can be restored |"},
		{"mirror behind", facts([]time.Duration{hour}, mirror, drill(hour, true)), checkBackupFlags{mirror: levels{ageLimit(5 * time.Minute), ageLimit(30 * time.Minute)}}, Warning,
			"BACKUP WARNING - the mirror of binary logs is 10 min behind | "},
		{"mirror behind, in numbers", facts([]time.Duration{hour}, mirror, drill(hour, true)), checkBackupFlags{mirror: levels{ageLimit(5 * time.Minute), ageLimit(30 * time.Minute)}}, Warning, "mirror=600s;300;1800;0 gap=0;;;0"},
		{"off", facts([]time.Duration{99 * day}, nil), checkBackupFlags{age: off, proven: off}, OK, "BACKUP OK - backed up 99 d ago | age=8553600s;;;0"},
	} {
		want, _, err := c.flags.want()
		if err != nil {
			t.Fatal(err)
		}
		state, line := judgeBackups(c.facts, want, now)
		if state != c.want || !strings.Contains(line, c.say) || strings.Count(line, "|") != 1 || strings.Contains(line, "\n") {
			t.Errorf("%s: got %d %s; want state %d, %q in it, strings.Count(line, \"|\") 1, no \"\\n\" in it", c.name, state, line, c.want, c.say)
		}
		want.Newest, want.Doubt = c.facts.newest, c.facts.doubt // as serve's catalogue says
		if v := verdict.Judge(c.facts.Facts, &want, now); len(c.facts.Mirrors) == 0 && !strings.Contains(line, noBar(v.Words)) {
			t.Errorf("%s: the page says %q, the check %q", c.name, v.Words, line)
		}
	}
	f := facts([]time.Duration{hour}, mirror, drill(hour, true))
	f.Short = true
	if state, line := judgeBackups(f, verdict.Want{}, now); state != Critical || !strings.Contains(line, "before the last backup") {
		t.Errorf("got %v, %v; want state Critical, \"before the last backup\" in it", state, line)
	}
	f.Short, f.Gap = false, "between binlog.000006 and binlog.000008"
	if state, line := judgeBackups(f, verdict.Want{Behind: off.limits()}, now); state != Warning || !strings.Contains(line, "binary logs are missing: between") {
		t.Errorf("got %v, %v; want state Warning, \"binary logs are missing: between\" in it", state, line)
	}
}

// TestCheckConfig: the schedule of the config file says what is late.
func TestCheckConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "risso.yaml")
	text := "servers:\n  - name: shop\n    dsn: root@tcp(db1:3306)/\n    password_file: /not/for/us\n    protect: {place: /backup/shop, schedule: daily at 02:00, max_age: 7h}\n  - name: crm\n    dsn: root@tcp(db2:3306)/\n"
	write := func(more string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	f := checkBackupFlags{config: file, age: levels{0, ageLimit(9 * time.Hour)}}
	want, names, err := f.want()
	if err != nil || f.From != "/backup/shop" || want.Backup.String() == "" || want.Age != (verdict.Limits{Late: 7 * time.Hour, Lost: 9 * time.Hour}) || want.Place != f.From || len(names) != 2 || names[0] != "shop" || names[1] != "db1:3306" {
		t.Errorf("got %+v %q %v; want f.From \"/backup/shop\", Backup.String() not \"\", Age verdict.Limits{Late: 7 * time.Hour, Lost: 9 * time.Hour}, Place %v, len(names) 2, names[0] \"shop\", names[1] \"db1:3306\"",
			want, names, err, f.From)
	}
	for server, say := range map[string]string{"crm": `protects no server called "crm"`, "": "protects 2 servers: name one with --server"} {
		write("    \n  - name: idle\n    protect: {place: /backup/idle}\n")
		g := checkBackupFlags{config: file, server: server}
		if _, _, err := g.want(); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: got %v; want an error, %q in the error", server, err, say)
		}
	}
}

func TestAgeLimit(t *testing.T) {
	for text, want := range map[string]string{"26h": "26h", "90m": "1h30m", "8d": "8d", "1.5d": "36h", "0": "0", "24h": "24h", "45s": "45s", "100m": "1h40m", "60m": "1h"} {
		var a ageLimit
		if err := a.Set(text); err != nil || a.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, a.String(), err, want)
		}
	}
	for _, text := range []string{"", "x", "-1h", "-1d", "5", "1e9d", "0d"} {
		var a ageLimit
		if err := a.Set(text); err == nil {
			t.Errorf("%q is %s", text, a.String())
		}
	}
}

// TestWrongUse: a check that is not configured right is UNKNOWN, never OK, and never CRITICAL, which is the exit code of wrong use elsewhere.
func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "CHECK UNKNOWN - no check is named: see risso check --help\n"},
		{"nosuch --url http://127.0.0.1:1", "RISSO UNKNOWN - ask http://127.0.0.1:1: "},
		{"--all --url http://127.0.0.1:1 --host", "RISSO UNKNOWN - either --url or --dsn"},
		{"--all --host --look 1m", "RISSO UNKNOWN - --look 1m"},
		{"--all --max-age 0s", "CHECK UNKNOWN - "},
		{"repl.lag --all", "CHECK UNKNOWN - either --all or names"},
		{"--nosuch", "CHECK UNKNOWN - unknown flag: --nosuch\n"},
		{"backup nosuch", "BACKUP UNKNOWN - unexpected argument \"nosuch\"\n"},
		{"backup --nosuch", "BACKUP UNKNOWN - unknown flag: --nosuch\n"},
		{"backup --from /nowhere --warning soon", "BACKUP UNKNOWN - "},
	} {
		var out, errs strings.Builder
		cmd := New(screen.Streams{Out: &out, Err: &errs})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(c.args))
		err := cmd.ExecuteContext(t.Context())
		if fault.Code(err) != Unknown || !strings.HasPrefix(out.String(), c.want) || strings.Count(out.String(), "\n") != 1 || errs.String() != "" {
			t.Errorf("check %s: got exit code %d, %q and %q, want %d and %q", c.args, fault.Code(err), &out, &errs, Unknown, c.want)
		}
	}
}
