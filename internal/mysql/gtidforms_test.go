package mysql

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestGTIDSetText: sets as servers write them, read and written again in one form.
func TestGTIDSetText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " , \n,": "", "A:1": "A:1", "A:1-1": "A:1", "A:1-2": "A:1-2", "A:1:2:3": "A:1-3", "A:3:1:2": "A:1-3", "A:1-5:3-9": "A:1-9", "A:5-9:1-3": "A:1-3:5-9", "A:5-9:1-4": "A:1-9", "A:1:3:5:2-4": "A:1-5", "A:10-20:1-5:7:6-9": "A:1-20",
		"B:1,A:1": "A:1,B:1", "A:1,A:2": "A:1-2", "A : 1 - 3": "A:1-3", "A: 1-3 : 7": "A:1-3:7", "A:1:t:1:u:2,B:t:9": "A:1:t:1:u:2,B:t:9", "A:t:1,A:1": "A:1:t:1", "A:9223372036854775806": "A:9223372036854775806", "A:9223372036854775807": "bad", "A:9223372036854775808": "bad", "A:1-9223372036854775808": "bad",
		"A:_t:1": "A:_t:1", "A:1t:1": "bad", "A:t-u:1": "bad", "A:" + strings.Repeat("t", 32) + ":1": "A:" + strings.Repeat("t", 32) + ":1", "A:" + strings.Repeat("t", 33) + ":1": "bad", "A:0-5": "bad", "A:5-4": "bad", "A:5-5": "A:5", "A": "bad", "A:": "bad", ":1": "bad",
		"0-1-5": "0-1-5", "1-1-1,0-2-7": "0-2-7,1-1-1", "0-1-5,0-2-4": "0-1-5", "0-1-5,0-2-5": "0-2-5", "4294967295-4294967295-18446744073709551615": "4294967295-4294967295-18446744073709551615", "4294967296-1-1": "bad", "1-4294967296-1": "bad", "1-1-18446744073709551616": "bad", "0-0-0": "", "0-1-0": "0-1-0",
		"A:1,0-1-1": "bad", "0-1": "bad", "0-1-1-1": "bad",
	} {
		names := strings.NewReplacer("A", uuidA, "B", uuidB)
		got, err := ParseGTIDSet(names.Replace(in))
		if want == "bad" {
			if !errors.Is(err, ErrGTID) || !got.Empty() {
				t.Errorf("%q: got %s, %v; want an error", in, got, err)
			}
			continue
		}
		if err != nil || got.String() != names.Replace(want) {
			t.Errorf("%q: got %s, %v; want %s", in, got, err, want)
		}
		if got.ByDomain() != (want != "" && !strings.Contains(want, ":")) || got.Empty() != (want == "") {
			t.Errorf("%q: got by domain %v, empty %v; want got.ByDomain() want != \"\" && !strings.Contains(want, \":\"), got.Empty() %v",
				in, got.ByDomain(), got.Empty(), want == "")
		}
		text, err := json.Marshal(got)
		var again GTIDSet
		if err = errors.Join(err, json.Unmarshal(text, &again)); err != nil || !again.Equal(got) {
			t.Errorf("%q as JSON: got %s, %v", in, again, err)
		}
	}
}

// TestGTIDText: single ones, and whose they are.
func TestGTIDText(t *testing.T) {
	for in, want := range map[string]GTID{
		uuidA + ":1": {Source: uuidA, Number: 1}, uuidA + ":tag:2": {Source: uuidA + ":tag", Number: 2}, " 1-2-3\n": {Domain: 1, Server: 2, Number: 3}, "0-0-0": {},
	} {
		got, err := ParseGTID(in)
		if err != nil || got != want || got.ByDomain() != strings.Contains(in, "1-2-3") || got.IsZero() != (want == GTID{}) {
			t.Errorf("%q: got %+v, %v, by domain %v; want %+v", in, got, err, got.ByDomain(), want)
		}
		var again GTID
		text, err := json.Marshal(got)
		if err = errors.Join(err, json.Unmarshal(text, &again)); err != nil || again != got {
			t.Errorf("%q as JSON: got %v, %v; want %v", in, again, err, got)
		}
	}
	for _, bad := range []string{uuidA + ":0", uuidA + ":9223372036854775808", uuidA + ":1tag:1", uuidA, "x:1", uuidA + "::1"} {
		if got, err := ParseGTID(bad); !errors.Is(err, ErrGTID) || !got.IsZero() {
			t.Errorf("%q: got %v, %v; want an error", bad, got, err)
		}
	}
}

// TestGTIDLast: the last of its source, and of all.
func TestGTIDLast(t *testing.T) {
	for _, c := range []struct {
		set, gtid   string
		last, alone bool
	}{
		{"A:1-5", "A:5", true, true}, {"A:1-5", "A:4", false, false}, {"A:1-5:9", "A:5", false, false}, {"A:1-5:9", "A:9", true, true}, {"A:1-5,B:1", "A:5", true, false}, {"A:1-5:t:1", "A:t:1", true, false}, {"B:1", "A:1", false, false}, {"", "A:1", false, false},
		{"0-1-5", "0-1-5", true, true}, {"0-1-5", "0-2-5", false, false}, {"0-1-5,1-1-1", "0-1-5", true, false}, {"0-1-5", "0-1-4", false, false},
	} {
		g, err := ParseGTID(strings.NewReplacer("A", uuidA, "B", uuidB).Replace(c.gtid))
		if err != nil {
			t.Fatal(err)
		}
		if last, alone := set(t, c.set).Last(g); last != c.last || alone != c.alone {
			t.Errorf("%s in %s: got %v, %v; want %v, %v", c.gtid, c.set, last, alone, c.last, c.alone)
		}
	}
}

// TestGTIDContains: at the edges of intervals; of a domain all up to its last.
func TestGTIDContains(t *testing.T) {
	s := set(t, "A:3-5:9,B:1")
	var in []string
	for n := range uint64(12) {
		if s.Contains(GTID{Source: uuidA, Number: n}) {
			in = append(in, fmt.Sprint(n))
		}
	}
	if got := strings.Join(in, " "); got != "3 4 5 9" {
		t.Errorf("got %s, want 3 4 5 9", got)
	}
	domains := set(t, "7-1-5")
	for g, want := range map[GTID]bool{{Domain: 7, Server: 1, Number: 5}: true, {Domain: 7, Server: 9, Number: 5}: true, {Domain: 7, Server: 1, Number: 6}: false, {Domain: 7, Server: 1, Number: 1}: true, {Domain: 8, Server: 1, Number: 1}: false, {}: false} {
		if got := domains.Contains(g); got != want {
			t.Errorf("%v: got %v, want %v", g, got, want)
		}
	}
	zero := set(t, "0-1-5")
	if zero.Contains(GTID{}) {
		t.Error("a transaction without a GTID: got that it is in a set")
	}
}

// TestGTIDSetsAreValues: nothing but Add changes a set.
func TestGTIDSetsAreValues(t *testing.T) {
	for _, c := range [][2]string{{"A:1-5:9", "A:3:7,B:1"}, {"0-1-5", "0-1-9,1-1-1"}} {
		a, b := set(t, c[0]), set(t, c[1])
		was, other := a.String(), b.String()
		a.Union(b)
		a.Subtract(b)
		copied := a.Clone()
		copied.Add(GTID{Source: uuidA, Number: 6})
		copied.Add(GTID{Domain: 9, Server: 1, Number: 1})
		copied.AddRange(uuidA, 100, 200)
		if a.String() != was || b.String() != other {
			t.Errorf("got %s and %s, want them as they were: %s and %s", a, b, was, other)
		}
	}
	var s GTIDSet
	s.AddRange(uuidA, 0, 5)
	s.AddRange(uuidA, 5, 4)
	s.Add(GTID{})
	if !s.Empty() {
		t.Errorf("ranges that cannot be: got %s, want none", s)
	}
	s.AddRange(uuidA, 1, 1)
	if got := s.Count(); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	if got := set(t, "A:1-5:9-10,B:7").Count(); got != 8 {
		t.Errorf("got %d, want 8", got)
	}
	if got := set(t, "2-1-1,0-1-1,1-1-1").Domains(); !slices.Equal(got, []GTID{{Server: 1, Number: 1}, {Domain: 1, Server: 1, Number: 1}, {Domain: 2, Server: 1, Number: 1}}) {
		t.Errorf("got %v, want them by domain", got)
	}
}

// TestSetGTIDs: what each server takes for it.
func TestSetGTIDs(t *testing.T) {
	for version, want := range map[string]string{
		"5.7.44": "RESET MASTER", "8.0.36": "RESET MASTER", "8.3.0": "RESET MASTER", "8.4.0": "RESET BINARY LOGS AND GTIDS", "9.7.0": "RESET BINARY LOGS AND GTIDS", "10.11.6-MariaDB": "RESET MASTER", "11.8.2-MariaDB": "RESET MASTER",
	} {
		variable := "gtid_purged"
		if strings.Contains(version, "MariaDB") {
			variable = "gtid_slave_pos"
		}
		got := Server{Server: fleet.ServerOf(version, "")}.SetGTIDs("it's")
		if len(got) != 2 || !strings.HasPrefix(got[0], want+" /*") || !strings.Contains(got[1], variable+" = 'it") {
			t.Errorf("%s: got %q, want %s and %s", version, got, want, variable)
		}
	}
}
