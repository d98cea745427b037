package alter

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

const before = "CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `a` int DEFAULT NULL,\n  `b` bigint unsigned NOT NULL DEFAULT '0',\n  `c` varchar(50) DEFAULT NULL,\n  `e` enum('x','y') DEFAULT NULL,\n" +
	"  PRIMARY KEY (`id`),\n  UNIQUE KEY `ub` (`b`),\n  KEY `ka` (`a`)\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4"

// with is a definition with some of its text replaced: "old" by "new", in pairs.
func with(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(before) }

func facts(t *testing.T, version, comment string) *Facts {
	t.Helper()
	table, err := define.ParseTable("s", before)
	if err != nil {
		t.Fatal(err)
	}
	return &Facts{Server: mysql.Of(fleet.ServerOf(version, comment)), Table: table, Rows: 1_000_000, Data: 800 << 20, Index: 200 << 20, Versions: -1, Variables: map[string]string{"binlog_format": "ROW", "log_bin": "ON"},
		Session: map[string]string{}, Replicas: Replicas{Known: true}, Place: Place{Here: true, DataFree: 10 << 30, TmpFree: 10 << 30, TmpDir: "/tmp"}, Login: Login{Host: "db1", Port: 3306, File: "/c"}}
}

func statement(t *testing.T, text string) Statement {
	t.Helper()
	s, err := Parse(mysql.Of(fleet.ServerOf("8.0.36", "")).Dialect(), text)
	if err != nil {
		t.Fatal(err)
	}
	return s.In("s")
}

// TestDataTests: what holds afterwards and did not before is tested, and nothing else.
func TestDataTests(t *testing.T) {
	for _, c := range []struct {
		text, after string
		want        []string
	}{
		{"ALTER TABLE t ADD n INT", with("  PRIMARY", "  `n` int DEFAULT NULL,\n  PRIMARY"), nil},
		{"ALTER TABLE t ADD UNIQUE ua (a, c(10))", with("KEY `ka`", "UNIQUE KEY `ua` (`a`,`c`(10)),\n  KEY `ka`"), []string{"SELECT `a`, LEFT(`c`, 10), COUNT(*) FROM `s`.`t` WHERE `a` IS NOT NULL AND LEFT(`c`, 10) IS NOT NULL GROUP BY `a`, LEFT(`c`, 10) HAVING COUNT(*) > 1 LIMIT 10"}},
		{"ALTER TABLE t ADD UNIQUE ua (a, b)", with("KEY `ka`", "UNIQUE KEY `ua` (`a`,`b`),\n  KEY `ka`"), nil}, // b is unique already
		{"ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", with("(`id`)", "(`a`)", "`a` int DEFAULT NULL", "`a` int NOT NULL"), []string{"SELECT `a`, COUNT(*) FROM `s`.`t` GROUP BY `a` HAVING COUNT(*) > 1 LIMIT 10", "SELECT COUNT(*) AS nulls FROM `s`.`t` WHERE `a` IS NULL HAVING COUNT(*) > 0"}},
		{"ALTER TABLE t MODIFY a INT NOT NULL", with("`a` int DEFAULT NULL", "`a` int NOT NULL"), []string{"SELECT COUNT(*) AS nulls FROM `s`.`t` WHERE `a` IS NULL HAVING COUNT(*) > 0"}},
		{"ALTER TABLE t CHANGE a z SMALLINT", with("`a` int DEFAULT NULL", "`z` smallint DEFAULT NULL", "(`a`)", "(`z`)"), []string{"SELECT `a` FROM `s`.`t` WHERE `a` NOT BETWEEN -32768 AND 32767 LIMIT 10"}},
		{"ALTER TABLE t MODIFY a BIGINT", with("`a` int DEFAULT", "`a` bigint DEFAULT"), nil},
		{"ALTER TABLE t MODIFY b BIGINT NOT NULL", with("bigint unsigned", "bigint"), []string{"SELECT `b` FROM `s`.`t` WHERE `b` NOT BETWEEN -9223372036854775808 AND 9223372036854775807 LIMIT 10"}},
		{"ALTER TABLE t MODIFY a INT UNSIGNED", with("`a` int DEFAULT", "`a` int unsigned DEFAULT"), []string{"SELECT `a` FROM `s`.`t` WHERE `a` NOT BETWEEN 0 AND 4294967295 LIMIT 10"}},
		{"ALTER TABLE t MODIFY c VARCHAR(20)", with("varchar(50)", "varchar(20)"), []string{"SELECT `c` FROM `s`.`t` WHERE CHAR_LENGTH(`c`) > 20 LIMIT 10"}},
		{"ALTER TABLE t MODIFY c VARCHAR(60)", with("varchar(50)", "varchar(60)"), nil},
		{"ALTER TABLE t MODIFY c VARCHAR(50) CHARACTER SET latin1", with("varchar(50)", "varchar(50) CHARACTER SET latin1"), []string{"SELECT `c` FROM `s`.`t` WHERE CONVERT(CONVERT(`c` USING latin1) USING utf8mb4) <> BINARY `c` LIMIT 10"}},
		{"ALTER TABLE t MODIFY e ENUM('x','y','z')", with("enum('x','y')", "enum('x','y','z')"), nil},
		{"ALTER TABLE t MODIFY e ENUM('x')", with("enum('x','y')", "enum('x')"), []string{""}},
		{"ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (k)", with("KEY `ka` (`a`)", "KEY `ka` (`a`),\n  CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`k`)"), []string{"SELECT t.`a` FROM `s`.`t` t WHERE t.`a` IS NOT NULL AND NOT EXISTS (SELECT 1 FROM `s`.`p` p WHERE p.`k` = t.`a`) LIMIT 10"}},
		{"ALTER TABLE t ADD CHECK (a > 0)", with("KEY `ka` (`a`)", "KEY `ka` (`a`),\n  CONSTRAINT `t_chk_1` CHECK ((`a` > 0))"), []string{"SELECT * FROM `s`.`t` WHERE NOT ((`a` > 0)) LIMIT 10"}},
	} {
		var got []string
		for _, d := range dataTests(facts(t, "8.0.36", ""), statement(t, c.text), c.after) {
			got = append(got, d.Select)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
}

// TestUndo: the statement gives back each part of the definition, and says what it cannot.
func TestUndo(t *testing.T) {
	for _, c := range []struct{ text, after, want, lost string }{
		{"ALTER TABLE t ADD n INT, ADD INDEX kn (n)", with("  PRIMARY", "  `n` int DEFAULT NULL,\n  PRIMARY", "KEY `ka` (`a`)", "KEY `ka` (`a`),\n  KEY `kn` (`n`)", "AUTO_INCREMENT=7 ", ""), "ALTER TABLE `s`.`t` DROP INDEX `kn`, DROP COLUMN `n`", ""},
		{"ALTER TABLE t DROP c", with("  `c` varchar(50) DEFAULT NULL,\n", ""), "ALTER TABLE `s`.`t` ADD COLUMN `c` varchar(50) DEFAULT NULL AFTER `b`", "c"},
		{"ALTER TABLE t CHANGE a z INT", with("`a` int DEFAULT NULL", "`z` int DEFAULT NULL", "(`a`)", "(`z`)"), "ALTER TABLE `s`.`t` DROP INDEX `ka`, ADD KEY `ka` (`a`), CHANGE COLUMN `z` `a` int DEFAULT NULL AFTER `id`", ""},
		{"ALTER TABLE t MODIFY a BIGINT", with("`a` int DEFAULT", "`a` bigint DEFAULT"), "ALTER TABLE `s`.`t` MODIFY COLUMN `a` int DEFAULT NULL AFTER `id`", "a"},
		{"ALTER TABLE t ENGINE=MyISAM", with("InnoDB", "MyISAM"), "ALTER TABLE `s`.`t` ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", ""},
		{"ALTER TABLE t RENAME TO t2", strings.Replace(before, "`t`", "`t2`", 1), "ALTER TABLE `s`.`t2` RENAME TO `s`.`t`", ""},
		{"ALTER TABLE t DROP COLUMN IF EXISTS `a`, ADD a INT, ADD KEY ka (a)", before, "ALTER TABLE `s`.`t` DROP INDEX `ka`, ADD KEY `ka` (`a`), ADD COLUMN `a` int DEFAULT NULL AFTER `id`, DROP COLUMN `a`", "a"},
		{"ALTER TABLE t DROP PARTITION p", before, "", "partitions"},
		{"ALTER TABLE t FORCE", before, "", ""},
	} {
		got, lost := Undo(facts(t, "8.0.36", ""), statement(t, c.text), c.after)
		if got != c.want || (c.lost == "") != (len(lost) == 0) || c.lost != "" && !strings.Contains(lost[0], c.lost) {
			t.Errorf("%s: got %q, %q; want %q, and %q lost", c.text, got, lost, c.want, c.lost)
		}
	}
}

// TestReplicasFirst: only what lets row events through in both directions.
func TestReplicasFirst(t *testing.T) {
	for _, c := range []struct {
		text, after string
		can         bool
	}{
		{"ALTER TABLE t ADD INDEX kc (c)", with("KEY `ka`", "KEY `kc` (`c`),\n  KEY `ka`"), true},
		{"ALTER TABLE t FORCE", before, true},
		{"ALTER TABLE t ADD n INT", with("  PRIMARY", "  `n` int DEFAULT NULL,\n  PRIMARY"), true},
		{"ALTER TABLE t ADD n INT NOT NULL", with("  PRIMARY", "  `n` int NOT NULL,\n  PRIMARY"), false},
		{"ALTER TABLE t ADD n INT NOT NULL DEFAULT 5", with("  PRIMARY", "  `n` int NOT NULL DEFAULT '5',\n  PRIMARY"), true},
		{"ALTER TABLE t ADD n INT FIRST", with("  `id`", "  `n` int DEFAULT NULL,\n  `id`"), false},
		{"ALTER TABLE t DROP c", with("  `c` varchar(50) DEFAULT NULL,\n", ""), false},
		{"ALTER TABLE t MODIFY a BIGINT", with("`a` int DEFAULT", "`a` bigint DEFAULT"), false},
		{"ALTER TABLE t ADD UNIQUE ua (a)", with("KEY `ka`", "UNIQUE KEY `ua` (`a`),\n  KEY `ka`"), false},
		{"ALTER TABLE t ADD CHECK (a > 0)", with("KEY `ka` (`a`)", "KEY `ka` (`a`),\n  CONSTRAINT `t_chk_1` CHECK ((`a` > 0))"), false},
	} {
		f := facts(t, "8.0.36", "")
		p := &Plan{Rebuilds: true}
		if r := replicasFirst(f, statement(t, c.text), p, c.after); r.Can != c.can {
			t.Errorf("%s: got %+v, want %t", c.text, r, c.can)
		}
		f.Variables["binlog_format"] = "STATEMENT"
		if r := replicasFirst(f, statement(t, c.text), p, c.after); r.Can {
			t.Errorf("%s by statement: got %+v, want that it cannot", c.text, r)
		}
	}
}

// TestForecast: the time of the part is scaled by what is larger, without what it takes on an empty table; how far off it may be depends on where it was
// measured.
func TestForecast(t *testing.T) {
	empty := 100 * time.Millisecond
	part := Part{Rows: 50_000, Bytes: 50 << 20, Grown: 60 << 20, Seconds: 2.1}
	timed := func(seconds float64) Part { p := part; p.Seconds = seconds; return p }
	sample := Sample{Parts: []Part{part}}
	for _, c := range []struct {
		plan            Plan
		sample          Sample
		seconds, factor float64
	}{
		{Plan{Kind: KindCopy, Rebuilds: true}, sample, 40.1, 1.5},
		{Plan{Kind: KindCopy, Rebuilds: true}, Sample{Parts: sample.Parts, Elsewhere: true}, 40.1, 4},
		{Plan{Kind: KindCopy, Rebuilds: true}, Sample{Parts: sample.Parts, Elsewhere: true, Reads: []float64{1, 2}}, 80.1, 2},
		{Plan{Kind: KindCopy, Rebuilds: true}, Sample{Parts: []Part{timed(2.6), timed(1.9), timed(2.1)}}, 40.1, 1.5}, // the middle one
		{Plan{Kind: KindCopy, Rebuilds: true}, Sample{Parts: []Part{timed(2.1), timed(4.1), timed(1.9)}}, 40.1, 80.1 / 40.1},
		{Plan{Kind: KindInPlace, Builds: []string{"k"}}, sample, 40.1, 1.5},
	} {
		got := forecast(facts(t, "8.0.36", ""), &c.plan, empty, c.sample)
		if !got.Known || got.Moment || got.Seconds < c.seconds-0.01 || got.Seconds > c.seconds+0.01 || got.High/got.Seconds < c.factor-0.01 || got.High/got.Seconds > c.factor+0.01 {
			t.Errorf("%+v: got %+v, want %g s within %g", c.plan, got, c.seconds, c.factor)
		}
	}
	more := sample
	more.MorePool = 3
	f := facts(t, "8.0.36", "")
	f.Index = 1 << 20
	if got := forecast(f, &Plan{Kind: KindCopy, Rebuilds: true}, empty, more); got.High < 4*got.Seconds || !strings.Contains(got.Basis, "3 times more of the table") {
		t.Errorf("a copy with three times its share of memory: got %+v, want that it may take three times longer, and why", got)
	}
	if got := forecast(f, &Plan{Kind: KindInPlace, Builds: []string{"k"}}, empty, more); got.High > 2*got.Seconds {
		t.Errorf("an index with three times its share of memory: got %+v, want it as usual", got)
	}
	if got := forecast(facts(t, "8.0.36", ""), &Plan{Kind: KindInstant}, empty, Sample{}); !got.Moment {
		t.Errorf("instant: got %+v, want a moment", got)
	}
	if got := forecast(facts(t, "8.0.36", ""), &Plan{Kind: KindCopy, Rebuilds: true}, empty, Sample{Unmeasured: "no sandbox"}); got.Known || got.Basis != "no sandbox" {
		t.Errorf("not measured: got %+v, want that it is not known", got)
	}
	f = facts(t, "8.0.36", "")
	f.Place.DataFree = 100 << 20
	if got := forecast(f, &Plan{Kind: KindCopy, Rebuilds: true}, empty, sample); got.Free == nil || *got.Free {
		t.Errorf("a disk that is nearly full: got %+v, want that it is not enough", got)
	}
}

// TestLarger: rows and bytes both tell how much larger a table is than its part, unless they contradict each other.
func TestLarger(t *testing.T) {
	for _, c := range []struct {
		rows, part  int64
		bytes, want float64
	}{{1000, 100, 10, 10}, {1000, 100, 14.4, 12}, {1000, 100, 40, 40}, {0, 100, 10, 10}, {100, 100, 0.9, 1}, {1000, 0, 10, 10}} {
		if got := larger(&Facts{Rows: c.rows, Data: int64(1000 * c.bytes)}, Part{Rows: c.part, Bytes: 1000}); got < c.want-0.001 || got > c.want+0.001 {
			t.Errorf("%+v: got %g, want %g", c, got, c.want)
		}
	}
}

// TestUsedUp: an instant answer does not hold for a table that has had all its instant changes.
func TestUsedUp(t *testing.T) {
	a := Answer{Tried: true, On: "MySQL 8.0.36", Algorithm: "INSTANT", Attempts: []Attempt{{Algorithm: "INSTANT"}}, After: with("  PRIMARY", "  `n` int DEFAULT NULL,\n  PRIMARY")}
	st := statement(t, "ALTER TABLE t ADD n INT")
	for _, c := range []struct {
		version  string
		versions int
		want     Kind
	}{{"8.0.36", 63, KindInstant}, {"8.0.36", 64, KindInPlace}, {"8.0.28", 64, KindInstant}, {"9.7.0", 64, KindInstant}, {"9.7.0", 255, KindInPlace}, {"8.0.36", -1, KindInstant}} {
		f := facts(t, c.version, "")
		f.Versions = c.versions
		if p := Make(f, st, a, 0, Sample{}); p.Kind != c.want || p.Rebuilds != (c.want == KindInPlace) {
			t.Errorf("%s with %d changes: got %s, want %s", c.version, c.versions, p.Kind, c.want)
		}
	}
}

// TestRefused and what is not known are said as that.
func TestRefused(t *testing.T) {
	p := Make(facts(t, "8.0.36", ""), statement(t, "ALTER TABLE t DROP nothing"), Answer{Tried: true, Error: errors.New("Error 1091: Can't DROP")}, 0, Sample{})
	if p.Kind != KindRefused || p.Runs() || !strings.Contains(p.Lines[0].Text, "1091") {
		t.Errorf("got %+v, want why it is refused", p)
	}
	p = Make(facts(t, "8.0.36", ""), statement(t, "ALTER TABLE t ADD SOMETHING"), Answer{}, 0, Sample{})
	if p.Kind != KindUnknown || p.Runs() {
		t.Errorf("got %+v, want that it is not known", p)
	}
}

// TestDocumented: the manuals' tables, by version.
func TestDocumented(t *testing.T) {
	for _, c := range []struct{ version, text, algorithm string }{
		{"5.7.44-log", "ALTER TABLE t ADD n INT", "INPLACE"},
		{"8.0.11", "ALTER TABLE t ADD n INT", "INPLACE"},
		{"8.0.20", "ALTER TABLE t ADD n INT", "INSTANT"},
		{"8.0.20", "ALTER TABLE t ADD n INT AFTER a", "INPLACE"},
		{"8.0.30", "ALTER TABLE t ADD n INT AFTER a", "INSTANT"},
		{"8.0.30", "ALTER TABLE t ADD n INT, ADD INDEX (n)", "INPLACE"},
		{"8.0.30", "ALTER TABLE t CONVERT TO CHARACTER SET latin1", "COPY"},
		{"8.0.30", "ALTER TABLE t MODIFY a BIGINT", ""},
		{"10.3.39-MariaDB", "ALTER TABLE t ADD n INT AFTER a", "INPLACE"},
		{"10.6.20-MariaDB", "ALTER TABLE t DROP c", "INSTANT"},
		{"10.6.20-MariaDB", "ALTER TABLE t ADD INDEX (c)", "NOCOPY"},
	} {
		f := facts(t, c.version, "")
		if a := Documented(f, statement(t, c.text)); a.Algorithm != c.algorithm || a.Tried {
			t.Errorf("%s: %s: got %+v, want %q", c.version, c.text, a, c.algorithm)
		}
	}
}
