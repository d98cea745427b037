package advice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func finding(id, object string, s fleet.Severity) advise.Finding {
	return advise.Finding{ID: id, Object: object, Severity: s, What: id + " of " + object}
}

func missing(what ...string) (list []fleet.Trouble) {
	for _, w := range what {
		list = append(list, fleet.Trouble{What: w, Why: "no privilege"})
	}
	return list
}

// TestFollows: what is found again keeps since when, what is not found ended only if a look would have found it.
func TestFollows(t *testing.T) {
	row := func(id, object string, blind ...string) state.AdviceRow {
		if blind == nil {
			blind = []string{}
		}
		body, err := json.Marshal(finding(id, object, fleet.SeverityWarning))
		if err != nil {
			t.Fatal(err)
		}
		return state.AdviceRow{Instance: "a", ID: id, Object: object, Severity: fleet.SeverityWarning, First: noon.Add(-48 * time.Hour), Seen: noon.Add(-24 * time.Hour), Blind: blind, Body: body}
	}
	worse := finding("schema.no_pk", "s.t", fleet.SeverityCritical)
	early := finding("schema.no_pk", "s.t", fleet.SeverityWarning)
	early.Since = noon.Add(-240 * time.Hour)
	gone := row("schema.no_pk", "s.t")
	gone.Ended = noon.Add(-time.Hour)
	for _, c := range []struct {
		name   string
		kept   []state.AdviceRow
		seen   seen
		rows   string // ID, object, first seen, ended
		events string
	}{
		{"new", nil, seen{found: []advise.Finding{early}}, "schema.no_pk s.t first 0h", "advice: schema.no_pk of s.t"},
		{"again", []state.AdviceRow{row("schema.no_pk", "s.t")}, seen{found: []advise.Finding{early}}, "schema.no_pk s.t first 48h", ""},
		{"worse", []state.AdviceRow{row("schema.no_pk", "s.t")}, seen{found: []advise.Finding{worse}}, "schema.no_pk s.t first 48h", "advice: schema.no_pk of s.t"},
		{"gone", []state.AdviceRow{row("schema.no_pk", "s.t")}, seen{}, "schema.no_pk s.t first 48h ended", "advice: ended after 2 d: schema.no_pk of s.t"},
		{"gone before", []state.AdviceRow{gone}, seen{}, "", ""},
		{"back", []state.AdviceRow{gone}, seen{found: []advise.Finding{early}}, "schema.no_pk s.t first 0h", "advice: schema.no_pk of s.t"},
		{"not readable now", []state.AdviceRow{row("fk.x", "s.t.f")}, seen{missing: missing("foreign keys")}, "", ""},
		{"not readable then either", []state.AdviceRow{row("fk.x", "s.t.f", "foreign keys")}, seen{missing: missing("foreign keys")}, "fk.x s.t.f first 48h ended", "advice: ended after 2 d: fk.x of s.t.f"},
		{"its table not readable", []state.AdviceRow{row("index.redundant", "s.t.k"), row("index.redundant", "s.t2.k")}, seen{missing: missing("table `s`.`t`")}, "index.redundant s.t2.k first 48h ended", "advice: ended after 2 d: index.redundant of s.t2.k"},
		{"its table in quotes", []state.AdviceRow{row("schema.no_pk", "d`'é.t")}, seen{missing: missing("table `d``'é`.`t`")}, "", ""},
		{"twice in one look", nil, seen{found: []advise.Finding{worse, early}}, "schema.no_pk s.t first 0h", "advice: schema.no_pk of s.t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.seen.instance, c.seen.at = "a", noon
			put, more, events, err := follows(c.kept, c.seen)
			if err != nil || len(more) > 0 {
				t.Fatalf("got more %v, %v; want none", more, err)
			}
			var rows, texts []string
			for _, r := range put {
				text := fmt.Sprintf("%s %s first %.0fh", r.ID, r.Object, noon.Sub(r.First).Hours())
				if !r.Ended.IsZero() {
					text += " ended"
				}
				rows = append(rows, text)
			}
			for _, e := range events {
				texts = append(texts, strings.ReplaceAll(e.Text, "\u00a0", " "))
			}
			if got := strings.Join(rows, ", "); got != c.rows {
				t.Errorf("got rows %q, want %q", got, c.rows)
			}
			if got := strings.Join(texts, ", "); got != c.events {
				t.Errorf("got events %q, want %q", got, c.events)
			}
		})
	}
}

// TestFlood: of 10,000 findings of one kind the worst are kept, the rest is counted, and one event tells of them; none of them ends because
// it is not among those that are kept.
func TestFlood(t *testing.T) {
	var found []advise.Finding
	for i := range 10000 {
		found = append(found, finding("schema.no_pk", fmt.Sprintf("s.t%05d", i), fleet.SeverityWarning))
	}
	put, more, events, err := follows(nil, seen{instance: "a", at: noon, first: true, found: found})
	if err != nil {
		t.Fatal(err)
	}
	if len(put) != mostOfKind || more["schema.no_pk"] != 10000-mostOfKind || len(events) != 1 || !strings.Contains(events[0].Text, "first look found 10,000 findings: 10,000 of schema.no_pk") {
		t.Errorf("got %d rows, more %v, events %+v", len(put), more, events)
	}
	_, _, events, err = follows(nil, seen{instance: "a", at: noon, found: found})
	if err != nil || len(events) != 1 || !strings.HasSuffix(events[0].Text, "1,000 findings began: 1,000 of schema.no_pk; 9,000 more were found and not kept: too many of one kind") {
		t.Errorf("a later look: got %+v, %v", events, err)
	}
	slices.Reverse(found)
	again, _, _, err := follows(put, seen{instance: "a", at: noon.Add(24 * time.Hour), found: found})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range again {
		if !r.Ended.IsZero() {
			t.Fatalf("%s ended, which was found", r.Object)
		}
	}
	if len(again) > 2*mostOfKind {
		t.Errorf("got %d rows to keep, want no more than twice %d", len(again), mostOfKind)
	}
	_, _, events, err = follows(put, seen{instance: "a", at: noon.Add(24 * time.Hour)})
	if err != nil || len(events) != 1 || !strings.Contains(events[0].Text, "1,000 findings ended") {
		t.Errorf("got %+v, %v; want one event that 1,000 ended", events, err)
	}
}

// TestDecided: what was decided holds for what it is about, until it gets worse or its time is over.
func TestDecided(t *testing.T) {
	on := fleet.Instance{ID: "shop-1", Name: "shop-1"}
	w, c := fleet.SeverityWarning, fleet.SeverityCritical
	d := func(kind, server, id, object string, until time.Time) state.AdviceDecision {
		return state.AdviceDecision{Kind: kind, Server: server, Finding: id, Object: object, Severity: w, Until: until}
	}
	const acc, post, sil = state.AdviceAccepted, state.AdvicePostponed, state.AdviceSilenced
	for _, x := range []struct {
		name     string
		list     []state.AdviceDecision
		severity fleet.Severity
		want     string
	}{
		{"nothing", nil, w, ""},
		{"everywhere", []state.AdviceDecision{d(acc, "", "a.b", "s.t", time.Time{})}, w, acc},
		{"here", []state.AdviceDecision{d(acc, "shop-1", "a.b", "s.t", time.Time{})}, w, acc},
		{"elsewhere", []state.AdviceDecision{d(acc, "shop-2", "a.b", "s.t", time.Time{})}, w, ""},
		{"another table", []state.AdviceDecision{d(acc, "", "a.b", "s.t2", time.Time{})}, w, ""},
		{"worse since", []state.AdviceDecision{d(acc, "", "a.b", "s.t", time.Time{})}, c, ""},
		{"not over", []state.AdviceDecision{d(post, "", "a.b", "s.t", noon.Add(time.Second))}, w, post},
		{"over", []state.AdviceDecision{d(post, "", "a.b", "s.t", noon)}, w, ""},
		{"silenced", []state.AdviceDecision{d(sil, "shop-*", "a.*", "s.*", time.Time{})}, c, sil},
		{"silenced, all objects", []state.AdviceDecision{d(sil, "", "a.b", "", time.Time{})}, w, sil},
		{"silenced elsewhere", []state.AdviceDecision{d(sil, "web-*", "a.b", "", time.Time{})}, w, ""},
		{"the nearest", []state.AdviceDecision{d(sil, "", "a.b", "", time.Time{}), d(acc, "", "a.b", "s.t", time.Time{}), d(post, "shop-1", "a.b", "s.t", noon.Add(time.Hour))}, w, post},
	} {
		got := ""
		if d := decided(x.list, on, "a.b", "s.t", x.severity, noon); d != nil {
			got = d.Kind
		}
		if got != x.want {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
	}
}

// TestDue: a look a day at the quiet hour, soon after a start what was missed, later what failed.
func TestDue(t *testing.T) {
	const h = time.Hour
	started := noon
	for _, c := range []struct {
		name          string
		looked, tried time.Time
		every, at     time.Duration
		from, to      time.Duration // since noon
	}{
		{"never", time.Time{}, time.Time{}, 24 * h, 3 * h, 2 * time.Minute, 5 * time.Minute},
		{"this morning", noon.Add(-9 * h), noon.Add(-9 * h), 24 * h, 3 * h, 15 * h, 16*h + 30*time.Minute},
		{"a moment ago, by hand", noon.Add(time.Minute), noon.Add(time.Minute), 24 * h, 3 * h, 15 * h, 16*h + 30*time.Minute},
		{"by hand shortly before", noon.Add(14 * h), noon.Add(14 * h), 24 * h, 3 * h, 39 * h, 40*h + 30*time.Minute},
		{"by hand in the evening", noon.Add(5 * h), noon.Add(5 * h), 24 * h, 3 * h, 15 * h, 16*h + 30*time.Minute},
		{"days ago", noon.Add(-100 * h), noon.Add(-100 * h), 24 * h, 3 * h, 2 * time.Minute, 5 * time.Minute},
		{"failed", noon.Add(-100 * h), noon.Add(10 * time.Minute), 24 * h, 3 * h, 70 * time.Minute, 70 * time.Minute},
		{"each hour", noon.Add(time.Minute), noon.Add(time.Minute), h, 3 * h, 61 * time.Minute, 61 * time.Minute},
		{"each week", noon.Add(-9 * h), noon.Add(-9 * h), 7 * 24 * h, 3 * h, (5*24 + 15) * h, (6*24+16)*h + 30*time.Minute},
	} {
		for _, id := range []string{"a", "db1", "db2", "shop"} {
			got := due(id, c.looked, c.tried, started, c.every, c.at).Sub(noon)
			if got < c.from || got > c.to {
				t.Errorf("%s, %s: got %s after noon, want %s to %s", c.name, id, got, c.from, c.to)
			}
		}
	}
}
