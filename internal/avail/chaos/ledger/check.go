package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Found is what a server has of a book.
type Found struct {
	Server       string `json:"server"`
	Acknowledged int    `json:"acknowledged"` // writes that it was asked for
	Lost         []Ack  `json:"lost,omitempty"`
	// Unacknowledged are rows that are there though the answer never came: nobody was promised them, and nobody was told that they are not there.
	Unacknowledged int `json:"unacknowledged"`
	// Which tells whether two servers have the same of them, in whatever order they were found; "": there are none.
	Which string `json:"which_unacknowledged,omitempty"`
	// Unknown are rows of this run that the book knows nothing of.
	Unknown int `json:"unknown,omitempty"`
}

// Checker looks for the rows of a book on servers, those that it has not seen there yet.
type Checker struct {
	book *Book
	from map[string]map[int]int64 // by server and writer: up to which number everything was found
}

// NewChecker returns one for a book.
func NewChecker(b *Book) *Checker { return &Checker{b, map[string]map[int]int64{}} }

// Check looks on a server for all writes that were acknowledged until a moment and since the last Check of that server; with whole, for all of the book. Rows that were not
// acknowledged are counted only with whole, when nobody writes any more.
func (c *Checker) Check(ctx context.Context, db *sql.DB, server string, until time.Duration, whole bool) (Found, error) {
	book := c.book.Copy()
	byWriter := map[int][]Ack{}
	from := c.from[server]
	if from == nil || whole {
		from = map[int]int64{}
	}
	for _, a := range book.Acks {
		if a.Acked <= until && a.Seq > from[a.Writer] {
			byWriter[a.Writer] = append(byWriter[a.Writer], a)
		}
	}
	doubts := map[[2]int64]bool{}
	for _, d := range book.Doubts {
		doubts[[2]int64{int64(d.Writer), d.Seq}] = true
	}
	writers := slices.Sorted(maps.Keys(byWriter))
	if whole { // also those of which nothing was acknowledged
		for _, d := range book.Doubts {
			if !slices.Contains(writers, d.Writer) {
				writers = append(writers, d.Writer)
			}
		}
	}
	f, next := Found{Server: server}, maps.Clone(from)
	for _, writer := range writers {
		acks := byWriter[writer]
		there, err := numbers(ctx, db, book.Head.Run, writer, from[writer])
		if err != nil {
			return f, fmt.Errorf("look for the acknowledged writes on %s: %w", server, err)
		}
		f.Acknowledged += len(acks)
		for _, a := range acks {
			if !there[a.Seq] {
				f.Lost = append(f.Lost, a)
			}
			delete(there, a.Seq)
			next[writer] = max(next[writer], a.Seq)
		}
		if !whole {
			continue
		}
		for seq := range there {
			if doubts[[2]int64{int64(writer), seq}] {
				f.more(writer, seq)
			} else {
				f.Unknown++
			}
		}
	}
	if !whole && len(f.Lost) == 0 {
		c.from[server] = next
	}
	return f, nil
}

// more counts a row that was never acknowledged.
func (f *Found) more(writer int, seq int64) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d", writer, seq))
	was, _ := hex.DecodeString(f.Which) // it is what this function made of it
	for i := range was {
		sum[i] ^= was[i]
	}
	f.Unacknowledged++
	f.Which = hex.EncodeToString(sum[:])
}

// numbers reads the rows of a writer after a number.
func numbers(ctx context.Context, db *sql.DB, run int64, writer int, after int64) (map[int64]bool, error) {
	rows, err := db.QueryContext(ctx, "SELECT /* risso chaos: are all acknowledged writes there? */ number FROM "+Schema+".ledger WHERE run=? AND writer=? AND number>?", run, writer, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	there := map[int64]bool{}
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		there[n] = true
	}
	return there, rows.Err()
}

// Mark is a write that replicas have to reach: the newest one of some writer that was acknowledged by a server.
func (b *Book) Mark(server string) (Ack, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.Acks) - 1; i >= 0; i-- {
		if b.Acks[i].Server == server {
			return b.Acks[i], true
		}
	}
	return Ack{}, false
}

// Has reports whether a server has the row of a write.
func (b *Book) Has(ctx context.Context, db *sql.DB, a Ack) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, "SELECT /* risso chaos: does this replica follow? */ COUNT(*) FROM "+Schema+".ledger WHERE run=? AND writer=? AND number=?", b.Head.Run, a.Writer, a.Seq).Scan(&n)
	return n > 0, err
}
