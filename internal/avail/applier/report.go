package applier

import (
	"sort"
	"time"

	"github.com/rissodb/risso/internal/byschema"
	"github.com/rissodb/risso/internal/mysql"
)

// Point is what a number of workers makes of a log.
type Point struct {
	Workers int     `json:"workers"` // how many apply
	Speedup float64 `json:"speedup"` // how many times as fast as one they are
}

// Curve is what workers gain in one mode.
type Curve struct {
	Mode        Mode    `json:"mode"`
	CommitOrder bool    `json:"commit_order"` // commits are in the order of the log
	AtMost      bool    `json:"at_most"`      // bounds, not a simulation
	Points      []Point `json:"points"`
	Ceiling     float64 `json:"ceiling"` // the highest speed-up that any number of workers reaches
	Enough      int     `json:"enough"`  // the smallest number of workers that reaches 95 % of the ceiling
}

// At is the speed-up with a number of workers, or the next smaller one that was tried.
func (c Curve) At(workers int) float64 {
	s := 1.0
	for _, p := range c.Points {
		if p.Workers <= workers {
			s = p.Speedup
		}
	}
	return s
}

// Kind is a kind of limit.
type Kind string

// What limits appliers.
const (
	HotRow      Kind = "row"         // transactions that change the same row wait for each other
	HotTable    Kind = "table"       // they change the same table, and which rows is not known of all
	LongOne     Kind = "transaction" // a single one
	CommitOrder Kind = "order"       // they share no row that the log shows: the source committed one after the other, or they share a unique or foreign key
	Definition  Kind = "ddl"         // a statement that changes definitions: nothing runs beside it
)

// Limit is what the chain that takes longest consists of.
type Limit struct {
	Kind  Kind    `json:"kind"`
	Name  string  `json:"name"`            // row, table, or GTID; of CommitOrder the table that they share, if they do
	Table string  `json:"table,omitempty"` // of a row
	Share float64 `json:"share"`           // of the chain, 0 to 1
	Long  *Long   `json:"transaction,omitempty"`
}

// Long is a transaction that takes long.
type Long struct {
	GTID    mysql.GTID `json:"gtid"`
	File    string     `json:"file"`
	Pos     int64      `json:"position"`
	Time    time.Time  `json:"time,omitzero"`
	Rows    int64      `json:"rows"`
	Bytes   int64      `json:"bytes"`
	Seconds float64    `json:"seconds_assumed"` // that it takes by the costs that are assumed
	DDL     bool       `json:"ddl"`             // it changes definitions
	Tables  []string   `json:"tables"`
}

// Sure is the range in which the ceiling lies if other costs are assumed.
type Sure struct {
	Costs   Costs   `json:"costs"`
	Ceiling float64 `json:"ceiling"` // the highest speed-up with these costs
	Enough  int     `json:"enough"`  // the smallest number of workers that reaches 95 % of it
}

// Report is what a log says about parallel appliers.
type Report struct {
	Logs         int       `json:"logs"`
	Transactions int64     `json:"transactions"`
	Rows         int64     `json:"rows"`
	Bytes        int64     `json:"bytes"`
	From         time.Time `json:"from,omitzero"`
	To           time.Time `json:"to,omitzero"`
	Unkeyed      int64     `json:"unkeyed"`    // transactions with rows that no key tells apart
	Statements   int64     `json:"statements"` // transactions that changed rows by statements logged as text
	Costs        Costs     `json:"costs"`
	// Curves has the mode that the log is for first; of MariaDB that is optimistic.
	Curves  []Curve           `json:"curves"`
	Sure    []Sure            `json:"sure"`
	Limits  []Limit           `json:"limits"` // the largest first
	Longest []Long            `json:"longest"`
	Schemas []byschema.Schema `json:"schemas"` // the heaviest first
}

// Main is the curve of the mode that the log is for.
func (r *Report) Main() Curve {
	if len(r.Curves) == 0 {
		return Curve{}
	}
	return r.Curves[0]
}

// Of is the curve of a mode with commits in order; ok is false if there is none.
func (r *Report) Of(m Mode) (c Curve, ok bool) {
	for _, c := range r.Curves {
		if c.Mode == m && (c.CommitOrder || c.AtMost) {
			return c, true
		}
	}
	return c, false
}

// Report is what was found. Nothing is added after it.
func (s *Study) Report() Report {
	s.closeWindow()
	r := s.report
	r.Costs, r.Longest, r.Curves, r.Sure = s.byRows, s.long, []Curve{}, []Sure{}
	if r.Longest == nil {
		r.Longest = []Long{}
	}
	for _, t := range s.trials {
		c := t.curve()
		if t.mode == s.trials[0].mode && t.inOrder {
			r.Sure = append(r.Sure, Sure{t.costs, c.Ceiling, c.Enough})
		}
		if t.costs == s.byRows {
			r.Curves = append(r.Curves, c)
		}
	}
	sets := make([]byschema.Set, 0, len(s.schemas))
	for _, x := range s.schemas {
		sets = append(sets, *x)
	}
	plan := byschema.Of(sets)
	r.Schemas = plan.Schemas
	if s.begun && !s.byGroup && len(plan.Appliers) > 0 {
		c := Curve{Mode: BySchema, AtMost: true}
		for _, a := range plan.Appliers {
			c.Points = append(c.Points, Point{a.Number, a.Speedup})
		}
		c.finish()
		r.Curves = append(r.Curves, c)
	}
	mean := 0.0
	if r.Transactions > 0 {
		mean = s.trials[0].runs[0].end / float64(r.Transactions)
	}
	r.Limits = s.window.limits(mean)
	return r
}

func (t *trial) curve() Curve {
	c := Curve{Mode: t.mode, CommitOrder: t.inOrder}
	serial := t.runs[0].end
	for _, s := range t.runs {
		p := Point{s.most, 1}
		if s.end > 0 && s.most > 1 {
			p.Speedup = serial / s.end
		}
		c.Points = append(c.Points, p)
	}
	c.finish()
	return c
}

// finish works out the ceiling. Numbers of workers that gain nothing any more are left out, but for one.
func (c *Curve) finish() {
	for _, p := range c.Points {
		c.Ceiling = max(c.Ceiling, p.Speedup)
	}
	c.Enough = c.Points[len(c.Points)-1].Workers
	i := sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Speedup >= Enough*c.Ceiling })
	if i < len(c.Points) {
		c.Enough = c.Points[i].Workers
	}
	const flat = 0.999
	last := len(c.Points)
	for j, p := range c.Points {
		if p.Speedup >= flat*c.Ceiling {
			last = min(j+2, len(c.Points))
			break
		}
	}
	c.Points = c.Points[:last]
}
