package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/oneline"
)

// Server is where writes go.
type Server struct {
	Name    string // the member's; "": not told, as behind a proxy
	Address string
	Epoch   uint64 // 0: not told
}

// Config says how a book is written.
type Config struct {
	// Find asks where the primary is now. An error says that there is none.
	Find func(ctx context.Context) (Server, error)
	// Each is how often it is asked. 0: every 50 ms.
	Each time.Duration
	// Open makes a pool for an address, as the clients' account.
	Open func(address string) (*sql.DB, error)
	// Names are the members by the number that each has as server_id.
	Names map[uint64]string
	// Followers is how many writers follow the primary; Pause is how long each waits between two writes.
	Followers int
	Pause     time.Duration
	// Direct is where to write to each member without asking anybody; the pool is the one that OpenDirect makes for its name.
	Direct     []string
	OpenDirect func(member string) (*sql.DB, error)
	// DirectPause is how long a direct writer waits between two tries. 0: 100 ms.
	DirectPause time.Duration
}

// DirectWriters is how many direct writers each member has: while one hangs in a server that does not answer, the other goes on.
const DirectWriters = 2

// retry is how long a writer waits after a try that failed.
const retry = 10 * time.Millisecond

// Schema is where the rows are.
const Schema = "risso_chaos"

// Definition makes the table, and refuses nothing if it is there.
func Definition() []string {
	return []string{
		"CREATE DATABASE /* risso chaos: for rows that are looked for after each fault */ IF NOT EXISTS " + Schema,
		"CREATE TABLE /* risso chaos: for rows that are looked for after each fault */ IF NOT EXISTS " + Schema +
			".ledger (run BIGINT NOT NULL, writer INT NOT NULL, number BIGINT NOT NULL, server VARCHAR(64) CHARACTER SET ascii NOT NULL, at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (run, writer, number)) ENGINE=InnoDB",
	}
}

const insert = "INSERT /* risso chaos: a row that is looked for after each fault */ INTO " + Schema + ".ledger (run, writer, number, server) VALUES (?, ?, ?, ?)"

// pen is a running set of writers.
type pen struct {
	Config
	book *Book

	mu      sync.Mutex
	now     Server
	known   bool
	changed chan struct{} // closed when now is another one
}

// Write writes until ctx ends, and returns when all writers have ended.
func (b *Book) Write(ctx context.Context, c Config) {
	if c.Each <= 0 {
		c.Each = 50 * time.Millisecond
	}
	if c.DirectPause <= 0 {
		c.DirectPause = 100 * time.Millisecond
	}
	p := &pen{Config: c, book: b, changed: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() { p.look(ctx) })
	for i := range c.Followers {
		all.Go(func() { p.follow(ctx, i+1) })
	}
	for i, member := range c.Direct {
		for j := range DirectWriters {
			all.Go(func() { p.insist(ctx, c.Followers+i*DirectWriters+j+1, member) })
		}
	}
	all.Wait()
}

// look asks again and again where the primary is.
func (p *pen) look(ctx context.Context) {
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, time.Second)
		s, err := p.Find(ask)
		cancel()
		p.mu.Lock()
		if err == nil && (s != p.now || !p.known) {
			p.now, p.known = s, true
			close(p.changed)
			p.changed = make(chan struct{})
		}
		p.mu.Unlock()
		if err == nil && s.Name != "" {
			p.book.reigned(Reign{Server: s.Name, Epoch: s.Epoch, Seen: p.book.Now()})
		}
		_ = delay.For(ctx, p.Each)
	}
}

func (p *pen) primary() (s Server, changed <-chan struct{}, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.changed, p.known
}

// follow is a writer that follows the primary: it leaves a server as soon as it is told of another one, also in the midst of a write.
func (p *pen) follow(ctx context.Context, number int) {
	w := writer{pen: p, number: number, pause: p.Pause}
	for ctx.Err() == nil {
		s, changed, known := p.primary()
		if !known {
			_ = delay.For(ctx, retry)
			continue
		}
		reign, leave := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() { // ends with the reign
			defer leave()
			select {
			case <-changed:
			case <-stop:
			}
		}()
		if db, err := p.Open(s.Address); err == nil {
			w.write(reign, db, s)
			db.Close()
		}
		close(stop)
		_ = delay.For(ctx, retry)
	}
}

// insist is a writer that tries to write to one member whatever happens. It has all the patience there is: an answer that comes late is an answer.
func (p *pen) insist(ctx context.Context, number int, member string) {
	w := writer{pen: p, number: number, pause: p.DirectPause, direct: true}
	for ctx.Err() == nil {
		if db, err := p.OpenDirect(member); err == nil {
			s, _, _ := p.primary()
			w.write(ctx, db, Server{Name: member, Epoch: s.Epoch})
			db.Close()
		}
		_ = delay.For(ctx, p.DirectPause)
	}
}

// writer is one of them.
type writer struct {
	*pen
	number int
	seq    int64
	pause  time.Duration
	direct bool
}

// write writes over one connection until something fails.
func (w *writer) write(ctx context.Context, db *sql.DB, s Server) {
	c, err := db.Conn(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	var id uint64
	if err := c.QueryRowContext(ctx, "SELECT /* risso chaos: who takes these writes */ @@server_id").Scan(&id); err != nil {
		return
	}
	name := w.Names[id]
	if name == "" {
		name = fmt.Sprintf("server %d", id)
	}
	statement, err := c.PrepareContext(ctx, insert)
	if err != nil {
		return
	}
	defer statement.Close()
	for ctx.Err() == nil {
		w.seq++
		began := w.book.Now()
		_, err := statement.ExecContext(ctx, w.book.Head.Run, w.number, w.seq, name)
		ended := w.book.Now()
		if err == nil {
			if w.book.acked(Ack{Writer: w.number, Seq: w.seq, Server: name, Epoch: s.Epoch, Direct: w.direct, Began: began, Acked: ended}) != nil {
				return // the book is not whole any more: its keeper sees that
			}
		} else if !refused(err) {
			w.book.doubted(Doubt{Writer: w.number, Seq: w.seq, Server: name, Direct: w.direct, Began: began, Ended: ended, Error: oneline.Cut(err.Error(), 200)})
			return
		} else if !w.direct {
			return
		}
		if w.pause > 0 {
			_ = delay.For(ctx, w.pause)
		}
	}
}

// refusals are the errors by which a server says for sure that it did not take a write.
var refusals = []uint16{errno.OptionPrevents, errno.ReadOnlyServer, errno.ReadOnlyTransaction, errno.AccessDenied, errno.DatabaseDenied, errno.TableDenied, errno.NoSuchTable,
	errno.UnknownDatabase, errno.TooManyConnections, errno.LockWaitTimeout}

// refused reports whether an error is one of them.
func refused(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && slices.Contains(refusals, e.Number)
}
