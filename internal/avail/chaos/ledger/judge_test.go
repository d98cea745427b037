package ledger

import (
	"path/filepath"
	"testing"
	"time"
)

// story writes a book from a few words: reigns and acknowledgements in milliseconds.
type story struct{ b Book }

func (s *story) reign(server string, seen int) *story {
	s.b.Reigns = append(s.b.Reigns, Reign{Server: server, Epoch: uint64(len(s.b.Reigns) + 1), Seen: time.Duration(seen) * time.Millisecond})
	return s
}

func (s *story) ack(server string, began, acked int) *story {
	s.b.Acks = append(s.b.Acks, Ack{Writer: 1, Seq: int64(len(s.b.Acks) + 1), Server: server, Began: time.Duration(began) * time.Millisecond, Acked: time.Duration(acked) * time.Millisecond})
	return s
}

// TestJudge: who wrote when another one was the primary is found, and nobody else is.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		s       *story
		doubles int
		late    int
	}{
		{"one primary", new(story).reign("a", 0).ack("a", 1, 2).ack("a", 3, 4), 0, 0},
		{"a failover", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 21, 22), 0, 0},
		{"the new one took writes before clients were told", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 15, 16), 0, 0},
		{"the old one goes on", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 21, 22).ack("a", 23, 24), 1, 0},
		{"it goes on at the same time", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 21, 22).ack("a", 22, 24).ack("b", 23, 25).ack("a", 26, 27).ack("b", 28, 29), 1, 1},
		{"an answer that comes late", new(story).reign("a", 0).ack("a", 1, 30).reign("b", 20).ack("b", 21, 22), 0, 1},
		{"and back", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 21, 22).reign("a", 40).ack("a", 35, 36).ack("a", 41, 42), 0, 0},
		{"and back, but the second goes on", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 21, 22).reign("a", 40).ack("a", 41, 42).ack("b", 43, 44), 1, 0},
		{"it wrote before it was the primary again", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).ack("b", 21, 22).ack("a", 25, 26).ack("b", 27, 28).reign("a", 40).ack("a", 41, 42), 1, 0},
		{"a replica took a write", new(story).reign("a", 0).ack("a", 1, 2).ack("c", 3, 4), 1, 0},
		{"three in a row, the first goes on", new(story).reign("a", 0).ack("a", 1, 2).reign("b", 20).reign("c", 30).ack("c", 31, 32).ack("a", 33, 34), 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.s.b.Judge()
			if len(w.Doubles) != c.doubles || w.Late != c.late {
				t.Errorf("got %+v, want %d doubles, %d late", w, c.doubles, c.late)
			}
		})
	}
}

// TestOutage: the longest time without an answer, by whom it ended, and one that did not end.
func TestOutage(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	s := new(story).ack("a", 1, 2).ack("a", 99, 101).ack("b", 1, 600).ack("b", 1, 700)
	if got, want := s.b.Outage(ms(100), ms(720)), (Outage{ms(499), true, "b"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := s.b.Outage(ms(650), ms(2000)), (Outage{ms(1300), false, ""}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.b.Acks = append(s.b.Acks, Ack{Server: "a", Direct: true, Acked: ms(1000)})
	if got := s.b.Outage(ms(650), ms(2000)); got.Ended {
		t.Errorf("a direct writer ended an outage of clients: %+v", got)
	}
}

// TestBook: what was written is read again, and a file that was changed has another sum.
func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b, err := Create(path, "g", []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	b.reigned(Reign{Server: "a", Epoch: 1})
	b.reigned(Reign{Server: "a", Epoch: 1})
	if err := b.acked(Ack{Writer: 1, Seq: 1, Server: "a", Began: 5, Acked: 6}); err != nil {
		t.Fatal(err)
	}
	b.doubted(Doubt{Writer: 1, Seq: 2, Error: "gone"})
	if err := b.Note("hello"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again, sum, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Head.Run != b.Head.Run || len(again.Acks) != 1 || again.Acks[0] != b.Acks[0] || len(again.Doubts) != 1 || len(again.Reigns) != 1 || len(again.Notes) != 1 || len(sum) != 64 {
		t.Errorf("got %+v, sum %s; want what was written", again, sum)
	}
}
