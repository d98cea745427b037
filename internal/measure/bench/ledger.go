package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// The ledger is a table into which each session writes numbers, one after each transaction, and remembers which of them
// the server acknowledged. What is missing afterwards was lost, as by a failover to a replica that lagged.
const (
	ledgerTable  = "risso_bench_ledger"
	ledgerBatch  = 10000
	ledgerSample = 20
)

// ledgerPatience is how long a server that does not answer is tried when the ledger is read.
const ledgerPatience = 20 * time.Second

type ledger struct{ run *run }

// openLedger makes an empty ledger; nil if none is asked for.
func (r *run) openLedger(ctx context.Context) (*ledger, error) {
	if !r.Ledger {
		return nil, nil
	}
	s, _, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := removeLedger(s); err != nil {
		return nil, err
	}
	create := "CREATE /* risso: a ledger of writes */ TABLE " + ledgerTable + " (session INT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (session, number))"
	mark := "COMMENT /* risso: a ledger of writes */ ON TABLE " + ledgerTable + " IS '" + workload.Mark + "'"
	if s.Dialect() == drive.MySQL {
		create += " COMMENT='" + workload.Mark + "'"
		mark = ""
	}
	for _, sql := range []string{create, mark} {
		if sql == "" {
			continue
		}
		if _, err := s.Exec(drive.Other, sql); err != nil {
			return nil, fmt.Errorf("create the ledger: %w", err)
		}
	}
	return &ledger{r}, nil
}

// removeLedger drops the table of a ledger, if there is one, and no table of somebody else.
func removeLedger(s drive.Session) error {
	sql := "SELECT /* risso: is there a ledger? */ table_comment FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: is there a ledger? */ coalesce(obj_description(to_regclass($1), 'pg_class'), '') WHERE to_regclass($1) IS NOT NULL"
	}
	r, err := drive.Ask(s, sql, drive.Text([]byte(ledgerTable)))
	if err != nil {
		return fmt.Errorf("look for a ledger: %w", err)
	}
	switch {
	case r.Rows == 0:
		return nil
	case string(r.Values[0].Text) != workload.Mark:
		return fmt.Errorf("there is a table %s that was not created by a run: its comment is not %q", ledgerTable, workload.Mark)
	}
	if _, err := s.Exec(drive.Other, "DROP /* risso: a ledger of writes */ TABLE "+ledgerTable); err != nil {
		return fmt.Errorf("drop the ledger: %w", err)
	}
	return nil
}

// drop takes the table away when nothing ran; a nil ledger has none.
func (l *ledger) drop(ctx context.Context) error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerPatience)
	defer cancel()
	s, _, err := l.run.open(ctx)
	for tooMany(err) && ctx.Err() == nil { // the server has not noticed yet that the others are gone
		time.Sleep(20 * time.Millisecond)
		s, _, err = l.run.open(ctx)
	}
	if err != nil {
		return fmt.Errorf("drop the ledger: %w", err)
	}
	defer s.Close()
	return removeLedger(s)
}

// tooMany reports whether a server refused a session because it has too many.
func tooMany(err error) bool {
	var e *drive.ServerError
	return mysql.ErrorNumber(err) == errno.TooManyConnections || errors.As(err, &e) && e.State == drive.StateTooManyConnections
}

func (l *ledger) client(id int) *ledgerClient { return &ledgerClient{id: int64(id)} }

// ledgerClient writes one session's numbers.
type ledgerClient struct {
	id      int64
	next    int64
	unsure  []int64 // numbers whose answer never came, or was an error
	session drive.Session
	insert  *drive.Stmt
	args    [2]drive.Arg
}

func (c *ledgerClient) prepare(s drive.Session) (err error) {
	values := "(?, ?)"
	if s.Dialect() == drive.Postgres {
		values = "($1, $2)"
	}
	c.session = s
	c.insert, err = s.Prepare(drive.Write, "INSERT /* risso: a ledger of writes */ INTO "+ledgerTable+" VALUES "+values)
	return err
}

func (c *ledgerClient) write() error {
	c.next++
	c.args = [2]drive.Arg{drive.Int(c.id), drive.Int(c.next)}
	_, err := c.session.Do(c.insert, c.args[:]...)
	if err != nil {
		c.unsure = append(c.unsure, c.next)
	}
	return err
}

// compare reads the ledger back and drops it. A server that is down is tried again for a while.
func (l *ledger) compare(ctx context.Context, workers []*worker) *Ledger {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	l.run.stop = drive.Stop{}
	for {
		out, err := l.read(ctx, workers)
		if err == nil {
			return out
		}
		var server *drive.ServerError
		if errors.As(err, &server) && (server.Code == 1146 || server.State == "42P01") {
			return nothingThere(workers)
		}
		if errors.As(err, &server) && server.Senseless() { // it will not do better
			return &Ledger{MissingKeys: []string{}, Error: err.Error() + "; the table " + ledgerTable + " may be left"}
		}
		select {
		case <-time.After(longestRetry):
			continue
		case <-ctx.Done():
		}
		return &Ledger{MissingKeys: []string{}, Error: err.Error() + "; the table " + ledgerTable + " may be left"}
	}
}

// nothingThere is what a server without the table holds: a replica that had not even got that.
func nothingThere(workers []*worker) *Ledger {
	out := &Ledger{MissingKeys: []string{}}
	for _, w := range workers {
		for n := int64(1); n <= w.ledger.next; n++ {
			out.judge(w.ledger, n, false)
		}
	}
	return out
}

func (l *ledger) read(ctx context.Context, workers []*worker) (*Ledger, error) {
	s, at, err := l.run.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer s.Close()
	out := &Ledger{MissingKeys: []string{}}
	for _, w := range workers {
		if err := out.add(s, w.ledger); err != nil {
			l.run.leave(at)
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
	}
	return out, removeLedger(s)
}

// judge counts one number of a session, that is there or not.
func (out *Ledger) judge(c *ledgerClient, number int64, there bool) {
	_, unsure := slices.BinarySearch(c.unsure, number)
	if !unsure {
		out.Acknowledged++
	}
	switch {
	case there:
		out.Found++
		if unsure {
			out.Unsure++
		}
	case !unsure:
		out.Missing++
		if len(out.MissingKeys) < ledgerSample {
			out.MissingKeys = append(out.MissingKeys, fmt.Sprintf("%d:%d", c.id, number))
		}
	}
}

// add compares the numbers of one session.
func (out *Ledger) add(s drive.Session, c *ledgerClient) error {
	where := "session = ? AND number > ? AND number <= ?"
	if s.Dialect() == drive.Postgres {
		where = "session = $1 AND number > $2 AND number <= $3"
	}
	st, err := s.Prepare(drive.Read, "SELECT /* risso: what is missing? */ number FROM "+ledgerTable+" WHERE "+where+" ORDER BY number")
	if err != nil {
		return err
	}
	st.Keep = true
	for from := int64(0); from < c.next; from += ledgerBatch {
		to := min(from+ledgerBatch, c.next)
		r, err := s.Do(st, drive.Int(c.id), drive.Int(from), drive.Int(to))
		if err != nil {
			return err
		}
		values := r.Values
		for number := from + 1; number <= to; number++ {
			there := len(values) > 0 && values[0].Int == number
			if there {
				values = values[1:]
			}
			out.judge(c, number, there)
		}
	}
	return nil
}
