package repo

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHollow: which backups are compared with which, and by what.
func TestHollow(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	var list []Entry
	add := func(id, server string, tables, rows int64, change ...func(*Entry)) {
		at = at.Add(time.Minute)
		e := Entry{ID: id, Whole: true, Header: Header{ID: id, Kind: Logical, Began: at, Tables: tables, Rows: rows, Server: Server{Identity: server}}}
		for _, c := range change {
			c(&e)
		}
		list = append(list, e)
	}
	part := func(e *Entry) { e.Header.Partial = []string{"shop"} }
	physical := func(from uint64) func(*Entry) {
		return func(e *Entry) {
			e.Header.Kind, e.Header.Stream, e.Header.Bytes = Physical, &Stream{FromLSN: from}, e.Header.Rows
		}
	}
	add("0-empty", "s", 0, 0)
	add("1-first", "s", 10, 1000)
	add("2-other server", "o", 1, 1)
	add("3-part", "s", 1, 1, part)
	add("4-half", "s", 5, 500)
	add("5-few", "s", 2, 500)
	add("6-no rows", "s", 5, 49)
	add("7-not whole", "s", 0, 0, func(e *Entry) { e.Whole = false })
	add("8-as the full one", "s", 5, 100)
	add("9-empty", "s", 0, 0)
	add("a-accepted", "s", 1, 0, func(e *Entry) { e.Accepted = true })
	add("b-as accepted", "s", 1, 0)
	add("c-said beforehand", "s", 0, 0, func(e *Entry) { e.Header.Smaller = true })
	add("d-physical", "s", 0, 1000, physical(0))
	add("e-incremental", "s", 0, 1, physical(7))
	add("f-physical", "s", 0, 99, physical(0))
	add("g-physical", "s", 0, 100, physical(0))
	got := Hollow(list)
	var ids []string
	for id := range got {
		ids = append(ids, id[:1])
	}
	slices.Sort(ids)
	if s := strings.Join(ids, ""); s != "0569f" {
		t.Errorf("hollow are %s: %v, want \"0569f\"", s, got)
	}
	if got["5-few"] != "it has 2 tables, 4-half had 5" || got["6-no rows"] != "it has 49 rows, 4-half had 500" {
		t.Errorf("got %v; want got[\"5-few\"] \"it has 2 tables, 4-half had 5\", got[\"6-no rows\"] \"it has 49 rows, 4-half had 500\"", got)
	}
}

// TestPruneHollow: under any rules, empty backups replace no full one, until they are accepted.
func TestPruneHollow(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	now := time.Now().Add(-time.Hour)
	rows := map[string][]string{"s.a": {"1"}, "s.b": {"2"}}
	var ids []string
	for i, tables := range []map[string][]string{rows, rows, nil, {}} {
		ids = append(ids, back(t, r, now.Add(time.Duration(i)*time.Minute), tables))
		// As if an older Risso had proven them all.
		if err := r.AddProof(t.Context(), Proof{Backup: ids[i], Time: now, JSON: []byte(`{"passed":true}`)}); err != nil {
			t.Fatal(err)
		}
	}
	o := PruneOptions{Retention: Retention{Last: 1}}
	p, err := r.Prune(t.Context(), o)
	if err != nil || !slices.Equal(p.Removed, []string{ids[0], ids[2]}) {
		t.Fatalf("got %+v, %v; want Removed []string{ids[0], ids[2]}", p, err)
	}
	for _, d := range p.Decisions {
		said := strings.Join(d.Reasons, "; ")
		if d.ID == ids[1] && !strings.Contains(said, "the last full one; "+ids[2]+" after it is none: it has no tables") || d.ID == ids[3] && !strings.Contains(said, "it replaces no full one: it has no tables") {
			t.Errorf("%+v", d)
		}
	}
	if p, err := r.Prune(t.Context(), PruneOptions{Remove: []string{ids[1]}}); err != nil || len(p.Removed) != 0 {
		t.Errorf("the last full one goes: got %+v, %v; want none", p, err)
	}
	to := t.TempDir()
	if _, err := r.CopyTo(t.Context(), folder(to), CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(t.Context(), "", "t"); err != nil {
		t.Fatal(err)
	}
	if h, err := r.Hollow(t.Context()); err != nil || len(h) != 0 {
		t.Errorf("accepted, and hollow: got %v, %v; want none", h, err)
	}
	if _, err := r.CopyTo(t.Context(), folder(to), CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if h, err := opened(t, to, Keys{}).Hollow(t.Context()); err != nil || len(h) != 0 {
		t.Errorf("accepted, and hollow in its copy: got %v, %v; want none", h, err)
	}
	if p, err := r.Prune(t.Context(), o); err != nil || !slices.Equal(p.Removed, []string{ids[1]}) {
		t.Errorf("got %+v, %v; want Removed []string{ids[1]}", p, err)
	}
	whole(t, r, ids[3])
}
