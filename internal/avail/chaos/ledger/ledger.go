// Package ledger writes rows into a group of servers as its clients do, and keeps a book of those that were acknowledged: which server took each, when it was sent and
// when the answer came, by one clock. By the book it is known afterwards what was lost, how long nobody could write, and whether there ever were two writers.
//
// Two kinds of writers keep it. Those that follow ask where the primary is, as applications do. Those that are direct never ask: each tries to write to one member
// all the time, from that member's own side of the network, whatever the others think of it. What a member takes that it should not is in the book like everything else.
package ledger

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Ack is a write that a server acknowledged.
type Ack struct {
	Writer int           `json:"w"`           // the writer's number
	Seq    int64         `json:"n"`           // counts the writes of a writer, also those that failed
	Server string        `json:"s"`           // the member that took it
	Epoch  uint64        `json:"e,omitempty"` // of the primary that the writer knew; 0: not told
	Direct bool          `json:"d,omitempty"` // its writer does not ask where the primary is
	Began  time.Duration `json:"b"`           // when it was sent, since the beginning of the book
	Acked  time.Duration `json:"a"`           // when the answer came
}

// Row names the row of a write.
func (a Ack) Row() string { return fmt.Sprintf("writer %d, number %d", a.Writer, a.Seq) }

// Reign is a server as the primary that clients are told of, from a moment on.
type Reign struct {
	Server string        `json:"server"`
	Epoch  uint64        `json:"epoch,omitempty"` // 0: who tells where the primary is tells no epoch
	Seen   time.Duration `json:"seen"`
}

// Head begins a book.
type Head struct {
	Version int       `json:"version"`
	Run     int64     `json:"run"` // in each row of this book
	Group   string    `json:"group"`
	Began   time.Time `json:"began"`
	Members []string  `json:"members"`
}

// Doubt is a write of which the answer never came: its row may be there, or not.
type Doubt struct {
	Writer int           `json:"w"`
	Seq    int64         `json:"n"`
	Server string        `json:"s,omitempty"`
	Direct bool          `json:"d,omitempty"`
	Began  time.Duration `json:"b"`
	Ended  time.Duration `json:"a"`
	Error  string        `json:"error"`
}

// line is one of the file: exactly one field is set.
type line struct {
	Head  *Head           `json:"head,omitempty"`
	Ack   *Ack            `json:"ack,omitempty"`
	Doubt *Doubt          `json:"doubt,omitempty"`
	Reign *Reign          `json:"reign,omitempty"`
	Note  json.RawMessage `json:"note,omitempty"` // of whoever runs it
}

// Book is a ledger: in memory, and as a file of JSON lines in which each acknowledged write stands before its writer sends the next.
type Book struct {
	Head   Head
	Acks   []Ack
	Doubts []Doubt
	Reigns []Reign
	Notes  []json.RawMessage

	mu    sync.Mutex
	f     *os.File
	start time.Time // with its monotonic reading
	count int       // of acknowledgements to writers that follow
	last  time.Duration
	err   error // of the first line that could not be written
}

// version is that of the file's form.
const version = 1

// Create begins a book in a new file.
func Create(path, group string, members []string) (*Book, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("begin the ledger: %w", err)
	}
	now := time.Now()
	b := &Book{f: f, start: now, Head: Head{Version: version, Run: now.UnixMicro(), Group: group, Began: now.UTC(), Members: members}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(line{Head: &b.Head})
	return b, b.err
}

// Now is the time by the book's clock.
func (b *Book) Now() time.Duration { return time.Since(b.start) }

// Err is why the book is not whole; nil if it is.
func (b *Book) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// write appends a line. The caller has the lock.
func (b *Book) write(l line) {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = b.f.Write(append(text, '\n'))
	}
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("write the ledger: %w", err)
	}
}

// acked enters a write that was acknowledged.
func (b *Book) acked(a Ack) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Acks = append(b.Acks, a)
	if !a.Direct {
		b.count, b.last = b.count+1, max(b.last, a.Acked)
	}
	b.write(line{Ack: &a})
	return b.err
}

// doubted enters a write of which the answer never came.
func (b *Book) doubted(d Doubt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Doubts = append(b.Doubts, d)
	b.write(line{Doubt: &d})
}

// reigned enters who is the primary now, if that is new.
func (b *Book) reigned(r Reign) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.Reigns); n > 0 && b.Reigns[n-1].Server == r.Server && b.Reigns[n-1].Epoch == r.Epoch {
		return
	}
	b.Reigns = append(b.Reigns, r)
	b.write(line{Reign: &r})
}

// Note enters something of whoever runs it: a fault that begins, a verdict.
func (b *Book) Note(what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Notes = append(b.Notes, text)
	b.write(line{Note: text})
	return b.err
}

// Count is how many writes were acknowledged to writers that follow until now, and when the last answer came.
func (b *Book) Count() (count int, last time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.last
}

// Copy is the book as it is now, without its file.
func (b *Book) Copy() *Book {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Book{Head: b.Head, Acks: b.Acks[:len(b.Acks):len(b.Acks)], Doubts: b.Doubts[:len(b.Doubts):len(b.Doubts)], Reigns: b.Reigns[:len(b.Reigns):len(b.Reigns)],
		Notes: b.Notes[:len(b.Notes):len(b.Notes)], start: b.start}
}

// Close ends the file, which is then on disk.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.err, b.f.Sync(), b.f.Close())
}

// Read reads a book again, and the SHA-256 of its file in hexadecimal.
func Read(path string) (*Book, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	b := &Book{}
	r := bufio.NewReader(io.TeeReader(f, sum))
	for number := 1; ; number++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		var l line
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err == nil && number == 1 && (l.Head == nil || l.Head.Version != version) {
			err = errors.New("it does not begin as a ledger does")
		}
		if err != nil {
			return nil, "", fmt.Errorf("read the ledger: %s, line %d: %w", path, number, err)
		}
		switch {
		case l.Head != nil:
			b.Head = *l.Head
		case l.Ack != nil:
			b.Acks = append(b.Acks, *l.Ack)
		case l.Doubt != nil:
			b.Doubts = append(b.Doubts, *l.Doubt)
		case l.Reign != nil:
			b.Reigns = append(b.Reigns, *l.Reign)
		case l.Note != nil:
			b.Notes = append(b.Notes, l.Note)
		}
	}
	return b, hex.EncodeToString(sum.Sum(nil)), nil
}
