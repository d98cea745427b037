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
	maxSeconds  = 7 * 24 * 3600 // of a timeline
	maxSessions = 1 << 20
)

// Read reads results: one, several one after the other, a list of them, or an object that has them as its "runs".
func Read(r io.Reader) ([]*Result, error) {
	var out []*Result
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

func readOne(raw json.RawMessage) ([]*Result, error) {
	var list []*Result
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNoResult, err)
		}
	} else {
		var many struct {
			Runs []*Result `json:"runs"`
		}
		if err := json.Unmarshal(raw, &many); err == nil && len(many.Runs) > 0 {
			list = many.Runs
		} else {
			one := new(Result)
			if err := json.Unmarshal(raw, one); err != nil {
				return nil, fmt.Errorf("%w: %v", ErrNoResult, err)
			}
			list = []*Result{one}
		}
	}
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
		return bad("its timeline is longer than a week")
	}
	for _, v := range []float64{r.Seconds, r.WarmupSeconds, r.TransactionsPerSecond, r.QueriesPerSecond, r.Latency.Avg, r.Latency.Max, r.Rate} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return bad("a figure of %v", v)
		}
	}
	if r.Seconds > maxSeconds || r.WarmupSeconds > maxSeconds {
		return bad("it lasted longer than a week")
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
