package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/repo"
)

func TestJudgeBackups(t *testing.T) {
	now := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	backup := func(ago time.Duration) repo.Header {
		return repo.Header{ID: now.Add(-ago).Format("20060102T150405Z"), Kind: repo.Logical, Ended: now.Add(-ago), Bytes: 3 << 30, Stored: 1 << 20}
	}
	proof := func(ago time.Duration, passed bool) drill.Proof {
		p := drill.Proof{Ended: now.Add(-ago), Passed: passed, Recovery: 12.3456}
		if !passed {
			p.Failures = []string{"shop.a differs | by a row"}
		}
		return p
	}
	const hour, day = time.Hour, 24 * time.Hour
	for _, c := range []struct {
		name  string
		facts backupFacts
		want  int
		say   string
	}{
		{"nothing", backupFacts{}, checkCritical, "BACKUP CRITICAL - there is no whole backup | backups=0;;;0"},
		{"good", backupFacts{backups: []repo.Header{backup(day), backup(2 * hour)}, proofs: []drill.Proof{proof(day, true)}}, checkOK,
			"BACKUP OK - newest backup 2 h 0 min old (logical, 3.00 GiB), one proven 24 h 0 min ago, restored in 12.3 s | age=7200s;93600;180000;0 size=3221225472B;;;0 stored=1048576B;;;0 backups=2;;;0 proven=86400s;691200;1296000;0 recovery=12.346s;;;0"},
		{"old", backupFacts{backups: []repo.Header{backup(26 * hour)}, proofs: []drill.Proof{proof(day, true)}}, checkWarning, "BACKUP WARNING - newest backup 26 h 0 min old"},
		{"very old", backupFacts{backups: []repo.Header{backup(50 * hour)}, proofs: []drill.Proof{proof(day, true)}}, checkCritical, "BACKUP CRITICAL - newest backup 2 d 2 h old"},
		{"never proven", backupFacts{backups: []repo.Header{backup(hour)}}, checkWarning, "BACKUP WARNING - none was ever proven (risso drill), newest"},
		{"long unproven", backupFacts{backups: []repo.Header{backup(16 * day), backup(hour)}}, checkCritical, "BACKUP CRITICAL - none was ever proven"},
		{"proven long ago", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(9*day, true)}}, checkWarning, "BACKUP WARNING - one proven 9 d 0 h ago"},
		{"failed since", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(2*day, true), proof(hour, false)}}, checkCritical, "the last drill failed: shop.a differs / by a row, newest"},
		{"mended", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(2*day, false), proof(hour, true)}}, checkOK, "BACKUP OK"},
		{"mirror", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(hour, true)}, mirror: &mirrorFacts{last: now.Add(-10 * time.Second)}}, checkOK, "newest mirrored event 10 s old | "},
		{"mirror behind", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(hour, true)}, mirror: &mirrorFacts{last: now.Add(-10 * time.Minute)}}, checkWarning, "mirror=600s;300;1800;0 gap=0;;;0"},
		{"mirror short", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(hour, true)}, mirror: &mirrorFacts{last: now, short: true}}, checkCritical, "BACKUP CRITICAL - the mirrored logs end before the newest backup"},
		{"gap", backupFacts{backups: []repo.Header{backup(hour)}, proofs: []drill.Proof{proof(hour, true)}, mirror: &mirrorFacts{last: now, gap: "binlog.000007"}}, checkCritical, "BACKUP CRITICAL - gap in the mirrored logs: binlog.000007, "},
	} {
		state, line := judgeBackups(c.facts, levels{ageLimit(26 * hour), ageLimit(50 * hour)}, levels{ageLimit(8 * day), ageLimit(15 * day)}, levels{ageLimit(5 * time.Minute), ageLimit(30 * time.Minute)}, now)
		if state != c.want || !strings.Contains(line, c.say) || strings.Count(line, "|") != 1 || strings.Contains(line, "\n") {
			t.Errorf("%s: %d %s", c.name, state, line)
		}
	}
	// Levels that are switched off.
	if state, line := judgeBackups(backupFacts{backups: []repo.Header{backup(99 * day)}}, levels{}, levels{}, levels{}, now); state != checkOK || !strings.Contains(line, "age=8553600s;;;0") {
		t.Error(state, line)
	}
}

func TestAgeLimit(t *testing.T) {
	for text, want := range map[string]string{"26h": "26h", "90m": "1h30m", "8d": "8d", "1.5d": "36h", "0": "0s", "24h": "24h", "45s": "45s", "100m": "1h40m", "60m": "1h"} {
		var a ageLimit
		if err := a.Set(text); err != nil || a.String() != want {
			t.Errorf("%s: %s, %v", text, a.String(), err)
		}
	}
	for _, text := range []string{"", "x", "-1h", "-1d", "5", "1e9d"} {
		var a ageLimit
		if err := a.Set(text); err == nil {
			t.Errorf("%q is %s", text, a.String())
		}
	}
}
