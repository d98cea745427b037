package series

import (
	"encoding/binary"
	"errors"
)

const (
	minuteSeconds = 60
	hourSeconds   = 3600
	daySeconds    = 86400
)

// floorTo returns the start of the span of the given length that t is in; also right before 1970.
func floorTo(t, span int64) int64 {
	if r := t % span; r < 0 {
		return t - r - span
	} else {
		return t - r
	}
}

var errRuns = errors.New("presence does not fit an hour")

// run is n seconds that follow each other, the first of them at from.
type run struct{ from, n uint16 }

// runs is a set of seconds of an hour, ascending, no two runs touching.
type runs []run

// count is how many seconds the set has.
func (r runs) count() (n int) {
	for _, x := range r {
		n += int(x.n)
	}
	return n
}

// pairs is how many seconds have the second before them in the set, too: the rates of a counter.
func (r runs) pairs() (n int) {
	for _, x := range r {
		n += int(x.n) - 1
	}
	return n
}

func (r runs) has(second int) bool {
	for _, x := range r {
		if second < int(x.from) {
			return false
		}
		if second < int(x.from)+int(x.n) {
			return true
		}
	}
	return false
}

func (r runs) equal(o runs) bool {
	if len(r) != len(o) {
		return false
	}
	for i := range r {
		if r[i] != o[i] {
			return false
		}
	}
	return true
}

// add appends one second; seconds come in ascending order.
func (r runs) add(second int) runs {
	if k := len(r) - 1; k >= 0 && int(r[k].from)+int(r[k].n) == second {
		r[k].n++
		return r
	}
	return append(r, run{uint16(second), 1})
}

// appendRuns writes the number of runs, then distance and length of each.
func appendRuns(b []byte, r runs) []byte {
	b = binary.AppendUvarint(b, uint64(len(r)))
	end := 0
	for _, x := range r {
		b = binary.AppendUvarint(b, uint64(int(x.from)-end))
		b = binary.AppendUvarint(b, uint64(x.n))
		end = int(x.from) + int(x.n)
	}
	return b
}

func (in *input) runs() runs {
	n := in.length(hourSeconds)
	if n == 0 || in.err != nil {
		return nil
	}
	r := make(runs, 0, min(n, len(in.b)/2+1))
	end := 0
	for i := range n {
		gap := in.length(hourSeconds)
		k := in.length(hourSeconds)
		if in.err != nil || k == 0 || (gap == 0 && i > 0) || end+gap+k > hourSeconds {
			in.fail(errRuns)
			return nil
		}
		r = append(r, run{uint16(end + gap), uint16(k)})
		end += gap + k
	}
	return r
}
