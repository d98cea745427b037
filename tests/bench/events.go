package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
)

// The history that section history makes: a class of rank r runs in a minute with a chance of usual/r, at most 1. So some
// thirty classes run in every minute and most run now and then, as on real servers.
const (
	historyServers = 10
	historyClasses = 2000
	usual          = 30.0
)

// history fills the embedded store with weeks of minutes and asks it.
func (b *bench) history(ctx context.Context, s *section) error {
	days := b.days
	if b.quick {
		days = 8
	}
	dir := filepath.Join(b.work, "events")
	if b.keep != "" {
		dir = b.keep
	}
	path := filepath.Join(dir, "statements.duckdb")
	end := time.Now().Unix() / 3600 * 3600
	begin := end - int64(days)*86400
	if info, err := os.Stat(path); err == nil { // made by an earlier run, up to the hour in which it was made
		end = info.ModTime().Unix() / 3600 * 3600
		begin = end - int64(days)*86400
		s.note("the store of an earlier run was asked: %s", path)
	} else if err := b.makeHistory(ctx, s, dir, path, begin, end, days); err != nil {
		return err
	}

	store, err := events.OpenEmbedded(ctx, path)
	if err != nil {
		return err
	}
	defer store.Close()
	return askHistory(ctx, s, store, begin, end)
}

// makeHistory fills a new store and measures that.
func (b *bench) makeHistory(ctx context.Context, s *section, dir, path string, begin, end int64, days int) error {
	store, err := events.OpenEmbedded(ctx, path)
	if err != nil {
		return err
	}
	cpu := processorTime()
	began := time.Now()
	rows, err := fill(ctx, store, begin, end)
	if err != nil {
		store.Close()
		return err
	}
	s.Figures["rows"] = float64(rows)
	s.Figures["store_us_per_row"] = (processorTime() - cpu) / float64(rows) * 1e6
	s.Figures["fill_seconds"] = time.Since(began).Seconds()
	if err := store.Close(); err != nil {
		return err
	}
	size, err := diskUse(dir)
	if err != nil {
		return err
	}
	s.Figures["bytes"] = float64(size)
	s.note("%d days × %d classes × %d servers: %d rows of minutes, %.1f bytes each on disk with hours and names; %.2f µs of processor time to store one, with making it up; the most memory this process had meanwhile: %.0f MB",
		days, historyClasses, historyServers, rows, float64(size)/float64(rows), s.Figures["store_us_per_row"], peakMemory())
	return nil
}

// askHistory asks each question once after opening and then again and again.
func askHistory(ctx context.Context, s *section, store events.Store, begin, end int64) error {
	const day = 86400
	odd := func(r events.Range) events.Range { return events.Range{From: r.From + 17*60, To: r.To - 23*60} }
	week := events.Range{From: end - 7*day, To: end}
	one := []string{"db3"}
	t := s.table("Questions to the embedded store, milliseconds", "question", "first", "median", "slowest of 15")
	ordered := func(order string, r events.Range, instances []string, sparks int) func() error {
		return func() error {
			a, err := store.Top(ctx, events.TopQuestion{Range: r, Instances: instances, Limit: 20, Sparks: sparks, Order: order})
			if err == nil && len(a.Classes) != 20 {
				err = fmt.Errorf("%d classes came back", len(a.Classes))
			}
			return err
		}
	}
	top := func(r events.Range, instances []string, sparks int) func() error {
		return ordered("load", r, instances, sparks)
	}
	for _, q := range []struct {
		name, key string
		ask       func() error
	}{
		{"top 20 over a week, 10 servers", "top20_week", top(week, nil, 40)},
		{"top 20 over a week that begins and ends within an hour, 10 servers", "top20_odd_week", top(odd(week), nil, 40)},
		{"top 20 over a week, one server", "top20_week_one", top(week, one, 40)},
		{"top 20 over the last hour, 10 servers", "top20_hour", top(events.Range{From: end - 3600, To: end}, nil, 40)},
		{"top 20 over a day, 10 servers", "top20_day", top(events.Range{From: end - day, To: end}, nil, 40)},
		{"top 20 over all days, 10 servers", "top20_all", top(events.Range{From: begin, To: end}, nil, 40)},
		{"top 20 by p95 over a week, 10 servers", "p95_week", ordered("p95", week, nil, 40)},
		{"top 20 by p95 over the last 170 minutes, 10 servers", "p95_minutes", ordered("p95", events.Range{From: end - 170*60, To: end}, nil, 40)},
		{"which minutes of a week were read, 10 servers", "covered_week", func() error {
			_, err := store.Covered(ctx, week, nil, 300)
			return err
		}},
		{"one class over a week", "class_week", func() error {
			_, err := store.Class(ctx, events.ClassQuestion{Range: week, ID: classID(3), Points: 300})
			return err
		}},
		{"one class over a day", "class_day", func() error {
			_, err := store.Class(ctx, events.ClassQuestion{Range: events.Range{From: end - day, To: end}, ID: classID(3), Points: 300})
			return err
		}},
		{"what changed from one day to the next, 10 servers", "compare_days", func() error {
			_, err := store.Compare(ctx, events.CompareQuestion{A: events.Range{From: end - 2*day, To: end - day}, B: events.Range{From: end - day, To: end}, Limit: 30})
			return err
		}},
	} {
		var took []float64
		for range 16 {
			began := time.Now()
			if err := q.ask(); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			took = append(took, time.Since(began).Seconds()*1000)
		}
		first := took[0]
		rest := slices.Sorted(slices.Values(took[1:]))
		t.row(q.name, fmt.Sprintf("%.0f", first), fmt.Sprintf("%.0f", rest[len(rest)/2]), fmt.Sprintf("%.0f", rest[len(rest)-1]))
		s.Figures[q.key+"_first_ms"], s.Figures[q.key+"_median_ms"] = first, rest[len(rest)/2]
	}
	s.below("top 20 over a week of 10 servers", s.Figures["top20_week_median_ms"], 300, " ms")
	s.Figures["memory_peak_mb"] = peakMemory()
	s.note("the most memory this process had: %.0f MB", s.Figures["memory_peak_mb"])
	return nil
}

func classID(rank int) string {
	return fmt.Sprintf("%016X%016X", uint64(rank)*0x9E3779B97F4A7C15, rank)
}

// fill makes up the minutes of all servers and stores them, an hour at a time.
func fill(ctx context.Context, store events.Store, begin, end int64) (rows int64, err error) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range historyServers {
		classes := make([]events.Class, historyClasses)
		for r := range classes {
			classes[r] = events.Class{Instance: server(i), ID: classID(r + 1), Digest: fmt.Sprintf("%064x", r), Verb: "SELECT", Tables: fmt.Sprintf("shop.t%d", r),
				Fingerprint: fmt.Sprintf("select a.id, a.name, b.total from t%d a join orders b on b.customer_id = a.id where a.name like ? and b.created > ? order by b.created desc limit ?", r), FirstSeen: begin, LastSeen: end}
		}
		if err := store.AddClasses(ctx, classes...); err != nil {
			return 0, err
		}
	}
	for at := begin; at < end; at += 3600 {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		var list []events.Minute
		for m := at; m < at+3600; m += 60 {
			for i := range historyServers {
				list = append(list, events.Minute{Instance: server(i), Time: m, Rows: makeRows(rnd)})
				rows += int64(len(list[len(list)-1].Rows))
			}
		}
		if _, err := store.AddMinutes(ctx, list...); err != nil {
			return rows, err
		}
		if (at-begin)%(5*86400) == 0 {
			say("%s: %d rows", time.Unix(at, 0).UTC().Format(time.DateOnly), rows)
		}
	}
	return rows, nil
}

func server(i int) string { return fmt.Sprintf("db%d", i) }

func makeRows(rnd *rand.Rand) []events.Row {
	rows := make([]events.Row, 0, 200)
	for rank := 1; rank <= historyClasses; rank++ {
		if p := usual / float64(rank); p < 1 && rnd.Float64() >= p {
			continue
		}
		calls := 1 + int64(rnd.ExpFloat64()*6000/float64(rank))
		avg := 0.0005 * (1 + rnd.ExpFloat64()) * float64(1+rank%7)
		r := events.Row{Class: classID(rank), Schema: "shop", Cost: fleet.Cost{Calls: calls, Seconds: float64(calls) * avg, LockSeconds: float64(calls) * 1e-6, RowsSent: calls * int64(rank%5), RowsExamined: calls * int64(rank%50), NoIndex: calls * int64(rank%11/10), TmpTables: calls * int64(rank%13/12), SortRows: calls * int64(rank%3)}}
		if rank <= 20 { // of the heaviest, latencies are read
			r.MaxSeconds = avg * 20
			for n := range 15 {
				r.Latency = append(r.Latency, events.Bucket{Number: int16(60 + rank + 3*n), Calls: 1 + calls/15})
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// diskUse is the size of all files in a folder.
func diskUse(dir string) (size int64, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			size += info.Size()
		}
	}
	return size, err
}
