package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// The ledger is a table into which each session writes numbers, one after each transaction, and remembers which of them
// the server acknowledged. What is missing afterwards was lost, as by a failover to a replica that lagged.
const (
	ledgerTable  = "risso_bench_ledger"
	ledgerBatch  = 10000
	ledgerSample = 20
)

type ledger struct{ target drive.Target }

// openLedger makes an empty ledger; nil when none is asked for.
func (r *run) openLedger(ctx context.Context) (*ledger, error) {
	if !r.Ledger {
		return nil, nil
	}
	s, err := r.Target.Open(ctx, &r.stop)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	create := "CREATE TABLE " + ledgerTable + " (session INT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (session, number))"
	mark := "COMMENT ON TABLE " + ledgerTable + " IS '" + workload.Mark + "'"
	if r.Target.Dialect() == drive.MySQL {
		create += " COMMENT='" + workload.Mark + "'"
		mark = ""
	}
	for _, sql := range []string{"DROP TABLE IF EXISTS " + ledgerTable, create, mark} {
		if sql == "" {
			continue
		}
		if _, err := s.Exec(drive.Other, sql); err != nil {
			return nil, fmt.Errorf("make the ledger: %w", err)
		}
	}
	return &ledger{r.Target}, nil
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
	c.insert, err = s.Prepare(drive.Write, "INSERT INTO "+ledgerTable+" VALUES "+values)
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

// compare reads the ledger back and drops it.
func (l *ledger) compare(ctx context.Context, workers []*worker) (*Ledger, error) {
	var stop drive.Stop
	s, err := l.target.Open(ctx, &stop)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer s.Close()
	out := &Ledger{Examples: []string{}}
	for _, w := range workers {
		if err := out.add(s, w.ledger); err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
	}
	if _, err := s.Exec(drive.Other, "DROP TABLE "+ledgerTable); err != nil {
		return nil, fmt.Errorf("drop the ledger: %w", err)
	}
	return out, nil
}

// add compares the numbers of one session.
func (out *Ledger) add(s drive.Session, c *ledgerClient) error {
	acknowledged := c.next - int64(len(c.unsure))
	out.Acknowledged += acknowledged
	where := "session = ? AND number > ? AND number <= ?"
	if s.Dialect() == drive.Postgres {
		where = "session = $1 AND number > $2 AND number <= $3"
	}
	st, err := s.Prepare(drive.Read, "SELECT number FROM "+ledgerTable+" WHERE "+where+" ORDER BY number")
	if err != nil {
		return err
	}
	st.Keep = true
	for from := int64(0); from < c.next; from += ledgerBatch {
		r, err := s.Do(st, drive.Int(c.id), drive.Int(from), drive.Int(min(from+ledgerBatch, c.next)))
		if err != nil {
			return err
		}
		expect := from + 1
		for _, v := range append(r.Values, drive.Value{Int: min(from+ledgerBatch, c.next) + 1}) {
			for ; expect < v.Int; expect++ {
				if _, unsure := slices.BinarySearch(c.unsure, expect); !unsure {
					out.Missing++
					if len(out.Examples) < ledgerSample {
						out.Examples = append(out.Examples, fmt.Sprintf("%d:%d", c.id, expect))
					}
				}
			}
			if v.Int <= min(from+ledgerBatch, c.next) {
				out.Found++
				if _, unsure := slices.BinarySearch(c.unsure, v.Int); unsure {
					out.Unsure++
				}
			}
			expect = v.Int + 1
		}
	}
	return nil
}
