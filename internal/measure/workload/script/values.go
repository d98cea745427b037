package script

import (
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/measure/workload/draw"
)

// generator draws the values of one name.
type generator interface{ draw(g *source) value }

// source is what a generator draws with: the numbers of one session.
type source struct {
	rng      *rand.Rand
	session  int
	row      int64   // while tables are filled: the row; else negative
	counters []int64 // how many values each sequence has given in this session
}

type sessionNumber struct{}

func (sessionNumber) draw(g *source) value { return value{num: int64(g.session)} }

type numbers struct{ over draw.Range }

func (n *numbers) draw(g *source) value {
	return value{num: n.over.Draw(g.rng)}
}

// decimals are numbers with a fixed number of digits after the point.
type decimals struct {
	lo, hi int64 // in units of the last digit
	digits int
}

func (d *decimals) draw(g *source) value {
	n := d.lo + g.rng.Int64N(d.hi-d.lo+1)
	var b []byte
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	s := strconv.FormatInt(n, 10)
	for len(s) <= d.digits {
		s = "0" + s
	}
	b = append(b, s[:len(s)-d.digits]...)
	if d.digits > 0 {
		b = append(append(b, '.'), s[len(s)-d.digits:]...)
	}
	return value{text: b, kind: isDecimal}
}

const (
	letters     = "abcdefghijklmnopqrstuvwxyz"
	digitLetter = "0123456789"
)

// strings of random signs.
type signs struct {
	lo, hi int
	of     string
}

func (s *signs) draw(g *source) value {
	b := make([]byte, s.lo+g.rng.IntN(s.hi-s.lo+1))
	for i := range b {
		b[i] = s.of[g.rng.IntN(len(s.of))]
	}
	return value{text: b, kind: isText}
}

// choice is a list with weights; ends are the shares up to each item.
type choice struct {
	items []value
	ends  []float64
}

func (c *choice) draw(g *source) value { return c.items[pick(c.ends, g.rng.Float64())] }

// pick returns the item in whose share x falls.
func pick(ends []float64, x float64) int {
	for i, end := range ends {
		if x < end {
			return i
		}
	}
	return len(ends) - 1
}

// sequence counts: in each session by itself, or over all sessions of the run.
type sequence struct {
	first, step int64
	number      int           // its place in source.counters
	shared      *atomic.Int64 // nil: by session
}

func (s *sequence) draw(g *source) value {
	var n int64
	switch {
	case g.row >= 0:
		n = g.row
	case s.shared != nil:
		n = s.shared.Add(1) - 1
	default:
		n = g.counters[s.number]
		g.counters[s.number]++
	}
	return value{num: s.first + n*s.step}
}

// moments are dates, or dates with a time, between two.
type moments struct {
	from time.Time
	n    int64 // how many days or seconds there are
	unit time.Duration
	form string
}

func (m *moments) draw(g *source) value {
	t := m.from.Add(time.Duration(g.rng.Int64N(m.n)) * m.unit)
	return value{text: t.AppendFormat(nil, m.form), kind: isText}
}

// uuid is a version 4 UUID. Source: RFC 9562, 5.4.
type uuid struct{}

func (uuid) draw(g *source) value {
	a, b := g.rng.Uint64(), g.rng.Uint64()
	a = a&^0xf000 | 0x4000
	b = b&^(3<<62) | 2<<62
	const hex = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			out = append(out, '-')
		}
		if i < 16 {
			out = append(out, hex[a>>(60-4*i)&15])
		} else {
			out = append(out, hex[b>>(60-4*(i-16))&15])
		}
	}
	return value{text: out, kind: isText}
}
