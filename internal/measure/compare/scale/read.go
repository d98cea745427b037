package scale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/measure/workload"
)

// Read reads a sweep: lines of threads and transactions per second, parted by comma, semicolon, tab or colon, with or without a head;
// or JSON, a list of objects with threads and tps (or transactions_per_second, as results of runs have it), a report of
// risso bench scale, or results one after the other. Errors wrap workload.ErrUsage.
func Read(b []byte) ([]Point, error) {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	var points []Point
	var err error
	if len(b) > 0 && (b[0] == '[' || b[0] == '{') {
		points, err = readJSON(b)
	} else {
		points, err = readLines(string(b))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", workload.ErrUsage, err)
	case len(points) == 0:
		return nil, fmt.Errorf("%w: no line of threads and transactions per second", workload.ErrUsage)
	}
	return points, nil
}

func readLines(text string) ([]Point, error) {
	var out []Point
	line := 0
	for row := range strings.Lines(text) {
		line++
		row, _, _ = strings.Cut(row, "#")
		cells := strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune(",;:\t \r\n", r) })
		if len(cells) == 0 {
			continue
		}
		if len(cells) < 2 {
			return nil, fmt.Errorf("line %d: write threads,tps", line)
		}
		n, err := strconv.Atoi(cells[0])
		x, err2 := strconv.ParseFloat(cells[1], 64)
		if err != nil && err2 != nil && len(out) == 0 { // a head
			if strings.Contains(strings.ToLower(cells[1]), "thread") {
				return nil, fmt.Errorf("line %d: %q, %q: the threads have to be the first column, transactions per second the second", line, short(cells[0]), short(cells[1]))
			}
			continue
		}
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("line %d: %q and %q are not a number of threads and of transactions per second", line, short(cells[0]), short(cells[1]))
		}
		out = append(out, Point{n, x})
	}
	return out, nil
}

func short(s string) string {
	if r := []rune(s); len(r) > 20 {
		return string(r[:20]) + "…"
	}
	return s
}

// entry is an object that describes one point, or holds a list of them.
type entry struct {
	Threads    *float64        `json:"threads"`
	N          *float64        `json:"n"`
	TPS        *float64        `json:"tps"`
	X          *float64        `json:"x"`
	Throughput *float64        `json:"transactions_per_second"`
	Runs       json.RawMessage `json:"runs"` // throughputs of one point, or results
	Points     []entry         `json:"points"`
}

func readJSON(b []byte) ([]Point, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	var out []Point
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, errors.New("the JSON cannot be read")
		}
		list := []entry{{}}
		var err error
		if raw[0] == '[' {
			err = json.Unmarshal(raw, &list)
		} else {
			err = json.Unmarshal(raw, &list[0])
		}
		if err != nil {
			return nil, errors.New("the JSON has no list of threads and tps")
		}
		for _, e := range list {
			points, err := e.points()
			if err != nil {
				return nil, err
			}
			out = append(out, points...)
		}
	}
	return out, nil
}

func (e entry) points() (out []Point, err error) {
	for _, inner := range e.Points {
		points, err := inner.points()
		if err != nil {
			return nil, err
		}
		out = append(out, points...)
	}
	n, x := first(e.Threads, e.N), first(e.TPS, e.Throughput, e.X)
	var runs []float64
	if n != nil && x == nil && json.Unmarshal(e.Runs, &runs) == nil {
		for i := range runs {
			out = append(out, Point{int(*n), runs[i]})
		}
		return out, nil
	}
	var results []entry
	if len(e.Runs) > 0 && n == nil && json.Unmarshal(e.Runs, &results) == nil {
		return entry{Points: results}.points()
	}
	if n == nil && x == nil && len(out) > 0 {
		return out, nil
	}
	if n == nil || x == nil || *n != float64(int(*n)) {
		return nil, errors.New("an entry of the JSON has no whole number of threads, or no tps")
	}
	return append(out, Point{int(*n), *x}), nil
}

func first(list ...*float64) *float64 {
	for _, v := range list {
		if v != nil {
			return v
		}
	}
	return nil
}
