package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// ErrNoResult says that something is no result of a run.
var ErrNoResult = errors.New("not a result of risso bench run --output json")

// The bounds of a result that is believed.
const (
	maxSeconds  = 2*365*24*3600 + 3600 // of a timeline: a run measures for longestTime, and warms up for as long
	maxSessions = 1 << 20
)

// Named is a result with its name in its file; empty if it has none.
type Named struct {
	Name string
	*Result
}

// Read reads results: one, several one after the other, a list of them, an object that has them as its "runs", or what
// risso bench compare --output json writes, whose sides have names.
func Read(r io.Reader) ([]Named, error) {
	var out []Named
	d := json.NewDecoder(r)
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNoResult, err)
		}
		list, err := readOne(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrNoResult)
	}
	return out, nil
}

// sides are what readOne looks for in an object that is no result itself.
type sides struct {
	Name string    `json:"name"`
	What string    `json:"what"`
	Runs []*Result `json:"runs"`
	A    *sides    `json:"a"`
	B    *sides    `json:"b"`
}

func (s *sides) named() (out []Named) {
	if s == nil {
		return nil
	}
	name := s.Name
	if s.What != "" && s.What != s.Name {
		name = s.Name + ": " + s.What
	}
	for _, r := range s.Runs {
		out = append(out, Named{name, r})
	}
	return out
}

func readOne(raw json.RawMessage) (list []Named, err error) {
	var object sides
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		err = json.Unmarshal(raw, &object.Runs)
	} else if json.Unmarshal(raw, &object) != nil || object.Runs == nil && object.A == nil {
		object = sides{Runs: []*Result{new(Result)}}
		err = json.Unmarshal(raw, object.Runs[0])
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNoResult, err)
	}
	list = append(object.named(), append(object.A.named(), object.B.named()...)...)
	for _, r := range list {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Check says what makes this no result of a run.
func (r *Result) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrNoResult, fmt.Sprintf(format, args...))
	}
	if r == nil {
		return bad("it is null")
	}
	switch {
	case r.Workload == "" || len(r.Workload) > 200:
		return bad("it names no workload")
	case r.Began.Year() < 2000 || r.Began.Year() > 9000:
		return bad("it does not say when it began")
	case r.Threads < 1 || r.Threads > maxSessions:
		return bad("%d threads", r.Threads)
	case r.Transactions < 0 || r.Queries < 0:
		return bad("a count below zero")
	case len(r.Timeline) > maxSeconds:
		return bad("its timeline is longer than any run")
	}
	for _, v := range []float64{r.Seconds, r.WarmupSeconds, r.TransactionsPerSecond, r.QueriesPerSecond, r.Latency.Avg, r.Latency.Max, r.Rate} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return bad("a figure of %v", v)
		}
	}
	if r.Seconds > maxSeconds || r.WarmupSeconds > maxSeconds {
		return bad("it lasted longer than any run")
	}
	last := math.MinInt
	for _, s := range r.Timeline {
		if s.Second <= last || s.Second > maxSeconds || s.Second < -maxSeconds {
			return bad("its timeline is not in order")
		}
		last = s.Second
	}
	return nil
}
