// Package tpcc has TPC-C, the benchmark of an order-entry system: nine tables, five transactions, twelve conditions that
// must hold at all times. Source: TPC Benchmark C, Standard Specification, revision 5.11; clauses are cited in the code.
// Tables and statements are those of tpcc-mysql, and both programs can use the same tables; docs/bench-tpcc.md lists
// the differences. Like all programs of its kind it leaves out the specification's terminals with their keying and think
// times, so its figures are not tpmC in the sense of the TPC.
package tpcc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// The size of one warehouse. Source: clauses 1.2.1 and 4.3.3.1.
const (
	items        = 100000
	districts    = 10
	customers    = 3000 // of a district
	firstOrders  = 3000 // of a district, one of each customer
	firstUnsent  = 900  // of these, the last ones: not delivered yet
	firstSent    = firstOrders - firstUnsent
	fewestLines  = 5
	mostLines    = 15
	namedByCount = 1000 // the first customers of a district, whose last names are not drawn
)

// maxWarehouses keeps the numbers of rows within INT.
const maxWarehouses = 1_000_000

type tpcc struct {
	p    workload.Params
	used atomic.Int64 // warehouses that the sessions work on
}

// New makes the workload.
func New(_ string, p workload.Params) (workload.Workload, error) {
	switch {
	case p.Warehouses < 0 || p.Warehouses > maxWarehouses:
		return nil, fmt.Errorf("%w: %d warehouses; there can be 1 to %d", workload.ErrUsage, p.Warehouses, maxWarehouses)
	case p.Unprepared:
		return nil, fmt.Errorf("%w: tpcc runs prepared statements only", workload.ErrUsage)
	}
	return &tpcc{p: p}, nil
}

func (w *tpcc) Name() string { return "tpcc" }

// The kinds of transactions, in the order in which everybody lists them.
const (
	kindNewOrder = iota
	kindPayment
	kindOrderStatus
	kindDelivery
	kindStockLevel
	kinds
)

// KindNames are the names of the five transactions.
func (w *tpcc) KindNames() []string {
	return []string{"new_order", "payment", "order_status", "delivery", "stock_level"}
}

// Headline says that the figure of this workload is new orders per minute, as tpcc-mysql prints it.
func (w *tpcc) Headline() (kind int, unit string) { return kindNewOrder, "TpmC" }

// Describe reports how many warehouses a run works on: without them its figure means little.
func (w *tpcc) Describe() map[string]any { return map[string]any{"warehouses": w.used.Load()} }

// Client prepares the statements of one session.
func (w *tpcc) Client(s drive.Session, id int, rng *rand.Rand) (workload.Client, error) {
	n, err := warehouses(s)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, fmt.Errorf("tpcc: no warehouse is loaded: run risso bench prepare tpcc")
	case w.p.Warehouses > n:
		return nil, fmt.Errorf("%w: --warehouses %d, but %d are loaded", workload.ErrUsage, w.p.Warehouses, n)
	case w.p.Warehouses > 0:
		n = w.p.Warehouses
	}
	if id == 0 {
		st, err := readState(s)
		if err != nil {
			return nil, err
		}
		if !st.indexed {
			return nil, fmt.Errorf("tpcc: the load was not finished, its indexes are missing: run risso bench cleanup tpcc and prepare again")
		}
	}
	w.used.Store(int64(n))
	c := &client{session: s, rng: rng, warehouses: int64(n)}
	return c, c.prepare()
}

// How the servers say that a table is not there.
const (
	stateNoTable = "42P01"
)

// warehouses counts those that are loaded; they are numbered from 1 on.
func warehouses(s drive.Session) (int, error) {
	rows, err := workload.Ask(s, "SELECT /* risso: how many are there? */ COUNT(*) FROM warehouse")
	var server *drive.ServerError
	if errors.As(err, &server) && (server.Code == errno.NoSuchTable || server.State == stateNoTable) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(rows[0][0].Int), nil
}
