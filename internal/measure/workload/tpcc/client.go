package tpcc

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// The mix: how many of a hundred transactions are of each kind, in the order of the kinds. Source: clause 5.2.3.
var mix = [kinds]int{45, 43, 4, 4, 4}

// deck deals kinds of transactions so that each hundred has exactly the mix. Source: clause 5.2.4.2.
type deck struct {
	cards []int
	next  int
}

func newDeck() *deck {
	d := &deck{}
	for kind, n := range mix {
		d.cards = append(d.cards, slices.Repeat([]int{kind}, n)...)
	}
	d.next = len(d.cards)
	return d
}

func (d *deck) deal(rng *rand.Rand) int {
	if d.next == len(d.cards) {
		rng.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
		d.next = 0
	}
	d.next++
	return d.cards[d.next-1]
}

// attempts is how often a transaction is tried that other transactions get in the way of; pause is how long it waits at
// most before the second time, and twice that before the third.
const (
	attempts = 10
	pause    = time.Millisecond
)

// client runs transactions on one session.
type client struct {
	session    drive.Session
	rng        *rand.Rand
	warehouses int64
	deck       *deck
	kind       int
	retried    []*drive.ServerError
	statements statements

	lines [mostLines]line // of the new order
	args  [16]drive.Arg
	text  [4][]byte // buffers of texts that are arguments
}

// Kind is the kind of the last transaction.
func (c *client) Kind() int { return c.kind }

// Retried returns the errors after which the last transaction was tried again.
func (c *client) Retried() []*drive.ServerError { return c.retried }

// Transaction runs the next card's. Its values are drawn once; a deadlock, a lock that took too long or a
// serialization failure rolls it back, and it is tried again with the same values, within its own time.
func (c *client) Transaction() error {
	c.retried = c.retried[:0]
	c.kind = c.deck.deal(c.rng)
	run := c.draw()
	for try := 1; ; try++ {
		err := c.attempt(run)
		if err == nil {
			return nil
		}
		var server *drive.ServerError
		if !errors.As(err, &server) || server.Gone() {
			return err // the session ends, and the server rolls back
		}
		if _, rerr := c.session.Exec(drive.Other, "ROLLBACK"); rerr != nil {
			return rerr
		}
		if try == attempts || !conflict(server) {
			return err
		}
		c.retried = append(c.retried, server)
		time.Sleep(time.Duration(c.rng.Int64N(int64(pause) << (try - 1))))
	}
}

// conflict reports whether the error comes from other transactions, and the same one may succeed the next time.
func conflict(e *drive.ServerError) bool {
	switch e.Code {
	case 0:
		return e.State == "40001" || e.State == "40P01" // serialization failure, deadlock
	case errno.Deadlock, errno.LockWaitTimeout, errno.CheckRead: // deadlock, lock wait time-out, the row changed since it was read (MariaDB's snapshot isolation)
		return true
	}
	return false
}

// draw decides what the transaction is about.
func (c *client) draw() func() error {
	switch c.kind {
	case kindNewOrder:
		o := c.drawNewOrder()
		return func() error { return c.newOrder(o) }
	case kindPayment:
		p := c.drawPayment()
		return func() error { return c.payment(p) }
	case kindOrderStatus:
		b := c.drawBuyer(c.home(), between(c.rng, 1, districts))
		return func() error { return c.orderStatus(b) }
	case kindDelivery:
		w, carrier := c.home(), between(c.rng, 1, 10)
		return func() error { return c.delivery(w, carrier) }
	}
	w, d, threshold := c.home(), between(c.rng, 1, districts), between(c.rng, 10, 20)
	return func() error { return c.stockLevel(w, d, threshold) }
}

// errRollback is how a new order ends that the specification wants rolled back.
var errRollback = errors.New("rolled back as intended")

// attempt runs one transaction from BEGIN to COMMIT.
func (c *client) attempt(run func() error) error {
	if _, err := c.session.Exec(drive.Other, "START TRANSACTION"); err != nil {
		return err
	}
	end := "COMMIT"
	if err := run(); errors.Is(err, errRollback) {
		end = "ROLLBACK"
	} else if err != nil {
		return err
	}
	_, err := c.session.Exec(drive.Other, end)
	return err
}

// home is the warehouse of a transaction. As the peers do, each transaction draws one.
func (c *client) home() int64 { return between(c.rng, 1, c.warehouses) }

// other is a warehouse that is not w, if there is another.
func (c *client) other(w int64) int64 {
	if c.warehouses == 1 {
		return w
	}
	o := between(c.rng, 1, c.warehouses-1)
	if o >= w {
		o++
	}
	return o
}

// do runs a statement with numbers.
func (c *client) do(st *drive.Stmt, numbers ...int64) (drive.Result, error) {
	for i, n := range numbers {
		c.args[i] = drive.Int(n)
	}
	return c.session.Do(st, c.args[:len(numbers)]...)
}

// one runs a statement with numbers that has to find exactly one row.
func (c *client) one(st *drive.Stmt, numbers ...int64) ([]drive.Value, error) {
	r, err := c.do(st, numbers...)
	if err == nil && r.Rows != 1 {
		err = c.missing(st, r.Rows)
	}
	return r.Values, err
}

// missing is the error of a row that the specification says is there.
func (c *client) missing(st *drive.Stmt, rows int64) error {
	return &brokenError{st.SQL, rows}
}

// brokenError ends a run: the tables are not what prepare made.
type brokenError struct {
	sql  string
	rows int64
}

func (e *brokenError) Error() string {
	return "the tables are damaged (risso bench check tpcc shows how): " + strconv.FormatInt(e.rows, 10) + " rows instead of 1: " + e.sql
}

// stamp writes the present moment into a buffer, as an argument.
func (c *client) stamp(buffer int) drive.Arg {
	c.text[buffer] = time.Now().UTC().AppendFormat(c.text[buffer][:0], timeForm)
	return drive.Text(c.text[buffer])
}

// amount writes cents as a decimal number into a buffer, as an argument.
func (c *client) amount(buffer int, cents int64) drive.Arg {
	c.text[buffer] = appendDecimal(c.text[buffer][:0], cents, 2)
	return drive.Text(c.text[buffer])
}

// placeholders writes ? as the dialect does.
func placeholders(d drive.Dialect, sql string) string {
	if d != drive.Postgres {
		return sql
	}
	var out strings.Builder
	n := 0
	for _, c := range sql {
		if c != '?' {
			out.WriteRune(c)
			continue
		}
		n++
		out.WriteString("$" + strconv.Itoa(n))
	}
	return out.String()
}
