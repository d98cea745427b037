package incident

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/ring"
)

// pileUp is a moment in which a session keeps n others waiting for a row.
func pileUp(tick int64, n int) *Moment {
	m := &Moment{Tick: tick, Connected: n + 3, Sleeping: 2, Numbers: map[string]float64{"threads_running": float64(n + 1), "questions_per_second": 12.3}}
	blocker := read.Blocker{ID: 811, User: "app", Host: "web2", Command: "Sleep", Seconds: 41, Statement: "UPDATE orders SET state = 'paid' WHERE id = 17", Open: 41}
	m.Sessions = append(m.Sessions, Session{ID: 811, User: "app", Host: "web2", Command: "Sleep", Wait: Idle, Seconds: 41, Statement: blocker.Statement})
	m.Transactions = append(m.Transactions, read.Transaction{Session: 811, Trx: "420", State: "RUNNING", Seconds: 41, RowsLocked: 1, RowsModified: 1})
	for i := range int64(n) {
		m.Sessions = append(m.Sessions, Session{ID: 812 + i, User: "app", Host: "web3", Schema: "shop", Command: "Query", State: "updating", Wait: "running", Seconds: 4.2, Statement: fmt.Sprintf("UPDATE orders SET n = %d WHERE id = 17", i)})
		m.Locks = append(m.Locks, read.LockWait{Waiter: 812 + i, Kind: read.LockRow, Type: "RECORD", Schema: "shop", Name: "orders", Index: "PRIMARY", Data: "17", Mode: "X", Held: "X", Blocker: blocker})
	}
	m.normal()
	return m
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRecords: moments come back as they were written, those of a later block, too; what they share is written once.
func TestRecords(t *testing.T) {
	t.Parallel()
	var w Writer
	list := []*Moment{pileUp(100, 9), pileUp(101, 9), {Tick: 102, Down: "refuses connections", Numbers: map[string]float64{}}, pileUp(103, 0)}
	list[2].normal()
	for range 2 {
		var records []ring.Record
		for i, m := range list {
			records = append(records, ring.Record{At: m.Tick, Payload: w.Append(m, i == 0)})
		}
		got, err := Read(records)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if g, want := asJSON(t, got[i]), asJSON(t, list[i]); g != want {
				t.Errorf("moment %d: got %s\nwant %s", i, g, want)
			}
		}
		if a, b := len(records[0].Payload), len(records[1].Payload); b*2 > a {
			t.Errorf("the second moment takes %d bytes, the first %d: want less than half", b, a)
		}
	}
}

// TestDamagedRecords: whatever bytes a record has, it is read or refused, and what came before it is there.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	var w Writer
	first, second := w.Append(pileUp(100, 3), true), w.Append(pileUp(101, 4), false)
	for i := range second {
		for _, harmed := range [][]byte{second[:i], slices.Concat(second[:i], []byte{second[i] ^ 0xff}, second[i+1:])} {
			got, err := Read([]ring.Record{{At: 100, Payload: first}, {At: 101, Payload: harmed}})
			if len(got) < 1 || got[0].Tick != 100 {
				t.Fatalf("byte %d: the moment before is gone", i)
			}
			if err == nil && len(got) != 2 {
				t.Fatalf("byte %d: a moment is missing without an error", i)
			}
		}
	}
}

// TestMomentWords: who blocks is at the root, waits have their class and their blocker, transactions their rows.
func TestMomentWords(t *testing.T) {
	t.Parallel()
	m := pileUp(100, 9)
	if b := m.Blockers; len(b) != 1 || b[0].ID != 811 || b[0].Blocks != 9 || b[0].Ends != "KILL 811" {
		t.Errorf("blockers %+v, want connection 811 with 9, ended by KILL 811", b)
	}
	if s := m.Sessions[1]; s.Wait != "row_lock" || s.Blocker != 811 {
		t.Errorf("a waiter is %+v, want a row lock of 811", s)
	}
	if s := m.Sessions[0]; s.Transaction != 41 || s.RowsModified != 1 || s.Trx != "420" {
		t.Errorf("the blocker is %+v, want its transaction", s)
	}
	if m.Running() != 9 || m.Blocked() != 9 || m.InLocks() != 9 {
		t.Errorf("%d run, %d blocked, %d in locks; want 9 each", m.Running(), m.Blocked(), m.InLocks())
	}
}

// TestRedacted: no literal is left, wherever it stood.
func TestRedacted(t *testing.T) {
	t.Parallel()
	m := pileUp(100, 2)
	m.report = "2026-11-24 17:28:07 0x7f\n*** (1) TRANSACTION:\nTRANSACTION 1, ACTIVE 3 sec\nMySQL thread id 5, OS thread handle 1, query id 9 localhost root updating\nupdate l set v='paid' where id=17\n*** WE ROLL BACK TRANSACTION (1)"
	m.normal()
	m.Redact()
	text := asJSON(t, m)
	for _, secret := range []string{"paid", "= 17", "=17", `"17"`} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is left in %s", secret, text)
		}
	}
}

// TestErrorsWithoutValues: what is told without literals has none of an error that a server wrote either.
func TestErrorsWithoutValues(t *testing.T) {
	t.Parallel()
	what := "replication is stopped: error 1062: Duplicate entry 's3cret o'clock' for key 'PRIMARY', Error_code: 1062"
	f := &File{Incident: Incident{ID: "i", Why: WhyAlert, What: what, Title: what, Began: time.Unix(100, 0)},
		Events: []fleet.Event{{Time: time.Unix(90, 0), Kind: fleet.EventNote, Text: "Incorrect integer value: 's3cret' for column 'a' at row 1"}, {Time: time.Unix(101, 0), Kind: fleet.EventFinding, Severity: fleet.SeverityCritical, Text: what},
			{Time: time.Unix(91, 0), Instance: "i", Kind: fleet.EventAction, Text: "connection 4 keeps 2 others waiting for a row lock in the index PRIMARY of shop.t, record 's3cret-4', 2 (X,REC_NOT_GAP) since 10:00, and connection 5 for the user lock 's3cret'"},
			{Time: time.Unix(92, 0), Kind: fleet.EventAction, Text: "alerts of server other were silenced"}}}
	var w Writer
	for tick := range int64(20) {
		f.Add(&w, &Moment{Tick: 95 + tick})
	}
	told, err := Tell(f, true)
	if err != nil {
		t.Fatal(err)
	}
	if text := asJSON(t, told); strings.Contains(text, "s3cret") || !strings.Contains(text, "Duplicate entry ? for key 'PRIMARY'") {
		t.Errorf("got %s, want the errors without values", text)
	} else if !strings.Contains(text, "record ? (X,REC_NOT_GAP) since") || strings.Contains(text, "other were silenced") {
		t.Errorf("got %s, want the lock without its key, and nothing of other servers", text)
	}
	if told, err = Tell(f, false); err != nil || !strings.Contains(asJSON(t, told), "s3cret") {
		t.Errorf("got %v, want the values with literals", err)
	}
}
