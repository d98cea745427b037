package state

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestTopologies(t *testing.T) {
	s := newStore(t)
	day := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return day.Add(time.Duration(minute) * time.Minute) }
	if row, next, err := s.TopologyAt(t.Context(), day); row != nil || next != nil || err != nil {
		t.Fatalf("of nothing: %v, %v, %v", row, next, err)
	}
	var before int64
	for i := range 3 {
		r := TopologyRow{Run: day, First: at(10 * i), Last: at(10 * i), Words: []string{fmt.Sprint("change ", i)}, Body: fmt.Appendf(nil, `{"n":%d}`, i)}
		id, err := s.AddTopology(t.Context(), before, at(10*i-1), r, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		before = id
	}
	if err := s.SawTopology(t.Context(), before, at(25)); err != nil {
		t.Fatal(err)
	}
	row, next, err := s.TopologyAt(t.Context(), at(12))
	if err != nil || row == nil || next == nil {
		t.Fatalf("%v, %v, %v", row, next, err)
	}
	if string(row.Body) != `{"n":1}` || !row.First.Equal(at(10)) || !row.Last.Equal(at(19)) || string(next.Body) != `{"n":2}` || !next.Last.Equal(at(25)) {
		t.Errorf("at 03:12: %+v, then %+v", row, next)
	}
	list, err := s.Topologies(t.Context(), at(15), at(22), 10)
	if err != nil || len(list) != 2 || !slices.Equal(list[0].Words, []string{"change 2"}) || !slices.Equal(list[1].Words, []string{"change 1"}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTopologiesBound looks at what is forgotten: what is too old, and what is too much.
func TestTopologiesBound(t *testing.T) {
	s := newStore(t)
	day := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	noise := make([]byte, 9<<20) // which gzip does not make smaller
	_, _ = rand.Read(noise)
	for i := range 9 {
		at := day.Add(time.Duration(i) * time.Hour)
		if _, err := s.AddTopology(t.Context(), 0, at, TopologyRow{Run: day, First: at, Last: at, Body: noise}, day.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Topologies(t.Context(), day, day.AddDate(0, 0, 1), 100)
	if err != nil || len(list) != 7 || !list[6].First.Equal(day.Add(2*time.Hour)) {
		t.Errorf("%d are left, the oldest %v; %v", len(list), list[len(list)-1].First, err)
	}
	row, _, err := s.TopologyAt(t.Context(), day.AddDate(0, 0, 1))
	if err != nil || row == nil || !bytes.Equal(row.Body, noise) {
		t.Errorf("the newest did not come back whole: %v", err)
	}
}
