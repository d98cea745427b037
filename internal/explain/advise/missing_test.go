package advise_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// wants is a class that would like an index: the columns that it compares for equality, a bar, and the range.
func wants(id, columns string) advise.Class {
	equal, ranged, _ := strings.Cut(columns, "|")
	a := plan.Advice{Table: "d.t", Rows: 100_000, Entries: 10, Lookups: 10, Runs: 1, Equality: len(strings.Fields(equal)), Columns: strings.Fields(equal + " " + ranged)}
	if ranged != "" {
		a.Range = 1
	}
	a.Statement = "CREATE INDEX `i" + id + "` ON `d`.`t` (`" + strings.Join(a.Columns, "`, `") + "`)"
	return advise.Class{ID: id, Verb: "select", Tables: []mysql.TableName{{Schema: "d", Name: "t"}}, Cost: fleet.Cost{Calls: 100, Seconds: 10, RowsExamined: 10_000_000, RowsSent: 100}, Indexes: []plan.Advice{a}}
}

func TestMissingIndexes(t *testing.T) {
	for _, c := range []struct {
		name    string
		classes []string
		want    string // the columns of each index, and how many classes it serves
	}{
		{"one", []string{"a"}, "a:1"},
		{"two alike", []string{"a b", "b a"}, "a b:2"},
		{"a narrower one", []string{"a b", "b"}, "b a:2"},
		{"a chain", []string{"a b c", "c", "c a"}, "c a b:3"},
		{"no chain", []string{"a b", "a", "b"}, "a b:2, b:1"},
		{"a range stays behind", []string{"a|r", "a"}, "a r:2"},
		{"ranges that differ", []string{"a|r", "a|s"}, "a r:1, a s:1"},
		{"a range beside a wider equality", []string{"a b", "a|r"}, "a b:1, a r:1"},
	} {
		l := &advise.Load{By: "x", Span: 100 * time.Second, Seconds: 30}
		for i, columns := range c.classes {
			l.Classes = append(l.Classes, wants(string(rune('A'+i)), columns))
		}
		got := map[string]bool{}
		for _, f := range advise.OfLoad(counting("9.7.0", usageNow), l) {
			if f.ID != "index.missing" {
				continue
			}
			_, columns, _ := strings.Cut(f.Statement, "(`")
			n := strings.Count("\n"+strings.Join(f.Evidence, "\n"), "\nclass ")
			got[strings.ReplaceAll(strings.TrimSuffix(columns, "`)"), "`, `", " ")+":"+string(rune('0'+n))] = true
		}
		want := strings.Split(c.want, ", ")
		for _, w := range want {
			if !got[w] || len(got) != len(want) {
				t.Errorf("%s: got %v, want %s", c.name, got, c.want)
			}
		}
	}
}

// TestMissingCosts: what its upkeep costs is weighed against what an index spares.
func TestMissingCosts(t *testing.T) {
	for _, c := range []struct {
		rows      float64
		statement bool
	}{{100, true}, {1e6, false}} {
		l := &advise.Load{By: "x", Span: 100 * time.Second, Seconds: 30, Classes: []advise.Class{wants("A", "a")},
			Writes: map[mysql.TableName]advise.Written{{Schema: "d", Name: "t"}: {Rows: c.rows, Entry: 0.0001, Indexes: 2}}}
		for _, f := range advise.OfLoad(counting("9.7.0", usageNow), l) {
			if f.ID == "index.missing" && (f.Statement != "") != c.statement {
				t.Errorf("%g rows written: got statement %q; want one: %t", c.rows, f.Statement, c.statement)
			}
		}
	}
}
