package trace

import "testing"

// TestTornRows: a row of a ring that is half another connection's, with numbers far ahead, hides nothing of what follows it.
func TestTornRows(t *testing.T) {
	long, own := &source{kind: KindStatement, table: "events_statements_history_long"}, &source{kind: KindStatement, table: "events_statements_current"}
	p := &poller{events: map[uint64][]Event{}, open: map[uint64]Kind{}, seen: map[uint64]int{}, over: map[uint64]bool{}, sources: []*source{long, own}}
	e := func(id, end uint64) Event {
		return Event{Kind: KindStatement, ID: id, End: end, Name: "statement/sql/select"}
	}
	p.before(long, e(3, 4))
	p.before(long, e(900, 950)) // torn
	p.before(own, e(5, 6))
	for _, k := range []struct {
		e    Event
		want bool
	}{{e(3, 4), false}, {e(5, 6), false}, {e(900, 950), false}, {e(7, 8), true}, {e(9, 0), true}, {e(9, 12), true}} {
		if got := p.add(k.e); got != k.want {
			t.Errorf("event %d to %d: new %t, want %t", k.e.ID, k.e.End, got, k.want)
		}
	}
	long.since, own.since = 950, 8
	if p.trustRings(); long.since != 8 {
		t.Errorf("the ring is read from %d, want 8", long.since)
	}
	p.sure = map[string]Total{"statement/sql/select": {Count: 12}, "wait/io/socket": {Count: 99}}
	if got := p.countedOnly(map[string]Total{"statement/sql/select": {Count: 8}}); got != 2 {
		t.Errorf("4 counted, 2 told of: %d missing, want 2", got)
	}
}
