package advise_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

var usageNow = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// counting is a server that has counted since a time.
func counting(version string, since time.Time) *advise.Server {
	return &advise.Server{Server: mysql.Of(fleet.ServerOf(version, "")), Now: usageNow, Counting: advise.Counting{By: "performance_schema", Since: since, After: 24 * time.Hour}}
}

func unusedOf(s *advise.Server, t *advise.Table) (out []advise.Finding) {
	for _, f := range advise.OfTable(s, t) {
		if f.ID == "index.unused" {
			out = append(out, f)
		}
	}
	return out
}

func TestUnusedIndexes(t *testing.T) {
	for _, c := range []struct {
		name, keys, used, want string
		hint                   string
		refs                   []advise.Reference
	}{
		{name: "one", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kb` (`b`)", used: "ka", want: "kb"},
		{name: "unique", keys: "PRIMARY KEY (`id`), UNIQUE KEY `ka` (`a`), KEY `kb` (`b`)", want: "kb"},
		{name: "not counted", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `unknown` (`b`)", want: "ka"},
		{name: "a hint", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kb` (`b`)", hint: "ka", want: "kb"},
		{name: "hidden", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`) IGNORED, KEY `kb` (`b`) /*!80000 INVISIBLE */"},
		{name: "full text", keys: "PRIMARY KEY (`id`), FULLTEXT KEY `f` (`d`)"},
		{name: "a foreign key", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)"},
		{name: "a foreign key has two: one goes", keys: "PRIMARY KEY (`id`), KEY `kab` (`a`,`b`), KEY `kac` (`a`,`c`), CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)", want: "kac"},
		{name: "a foreign key has a hidden one", keys: "PRIMARY KEY (`id`), KEY `kab` (`a`,`b`) IGNORED, KEY `kac` (`a`,`c`), CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)"},
		{name: "referred to", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`)", refs: []advise.Reference{{ForeignKey: define.ForeignKey{To: []string{"a"}}}}},
		{name: "does the work of a redundant one", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kab` (`a`,`b`)", used: "ka"},
		{name: "AUTO_INCREMENT", keys: "`n` int NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`), KEY `kn` (`n`)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := table(t, columns+c.keys)
			tab.Use = &advise.Use{Reads: map[string]float64{}, Inserted: 2400}
			for _, k := range tab.Keys {
				if k.Name != "unknown" {
					tab.Use.Reads[k.Name] = 0
				}
				if k.Name == c.used {
					tab.Use.Reads[k.Name] = 5
				}
			}
			s := counting("9.7.0", usageNow.AddDate(0, 0, -40))
			s.Hinted, s.References = map[string]string{c.hint: "view d.v"}, map[mysql.TableName][]advise.Reference{{Schema: "d", Name: "t"}: c.refs}
			var got []string
			for _, f := range unusedOf(s, tab) {
				name := strings.TrimPrefix(f.Object, "d.t.")
				got = append(got, name)
				if want := "ALTER TABLE `d`.`t` ALTER INDEX `" + name + "` INVISIBLE"; f.Statement != want || f.Severity != fleet.SeverityWarning || f.Sure != advise.Likely {
					t.Errorf("got %+v, want %s, a warning that is likely", f, want)
				}
			}
			if slices.Sort(got); strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnusedSince: what is said depends on for how long was counted, and by whom.
func TestUnusedSince(t *testing.T) {
	for _, c := range []struct {
		since   time.Time
		kept    bool
		created time.Time
		want    string
	}{
		{since: usageNow.Add(-time.Hour)},
		{since: usageNow.AddDate(0, 0, -3), want: "info likely for 3 d"},
		{since: usageNow.AddDate(0, 0, -40), want: "warning likely for 40 d, an end of a month included"},
		{since: usageNow.AddDate(0, 0, -40), kept: true, want: "warning certain for 40 d, an end of a month included"},
		{since: usageNow.AddDate(0, 0, -40), created: usageNow.AddDate(0, 0, -2), want: "info likely for 2 d"},
		{since: usageNow.AddDate(0, 0, -40), created: usageNow.Add(-time.Hour)},
		{want: "info likely since when is not known"},
	} {
		tab := table(t, columns+"PRIMARY KEY (`id`), KEY `ka` (`a`)")
		tab.Use, tab.Created = &advise.Use{Reads: map[string]float64{"ka": 0}}, c.created
		s := counting("11.8.1-MariaDB", c.since)
		s.Counting.Kept = c.kept
		got := ""
		for _, f := range unusedOf(s, tab) {
			what := strings.TrimLeft(strings.TrimPrefix(f.What, "nothing used index ka of d.t"), "; ")
			got = f.Severity.String() + " " + string(f.Sure) + " " + what
			if f.Statement != "ALTER TABLE `d`.`t` ALTER INDEX `ka` IGNORED" {
				t.Errorf("got %s", f.Statement)
			}
		}
		if got != c.want {
			t.Errorf("since %s, kept %t, created %s: got %q, want %q", c.since, c.kept, c.created, got, c.want)
		}
	}
}

func TestUnusedEverywhere(t *testing.T) {
	since := usageNow.AddDate(0, 0, -40)
	unused := func(object string, since time.Time) advise.Finding {
		return advise.Finding{ID: "index.unused", Object: object, Statement: "x", Since: since}
	}
	found := [][]advise.Finding{{unused("d.t.ka", since), unused("d.t.kb", since)}, {unused("d.t.kb", usageNow)}}
	got := advise.UnusedEverywhere([]advise.Seen{{Server: "a", Counts: true}, {Server: "b", Counts: true, Used: map[string]bool{"d.t.ka": true}}}, found)
	if len(got[0]) != 1 || got[0][0].Object != "d.t.kb" || !got[0][0].Since.Equal(usageNow) || got[0][0].Statement == "" || len(got[1]) != 1 {
		t.Errorf("got %+v; want kb, since the later time", got)
	}
	got = advise.UnusedEverywhere([]advise.Seen{{Server: "a", Counts: true}, {Server: "b"}}, found)
	if f := got[0][0]; f.Statement != "" || !strings.Contains(f.Doubt, "on b is not known") {
		t.Errorf("got %+v; want no statement where one server does not count", f)
	}
}
