package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/store/state"
)

// maxBenchmarkBody bounds a result that is sent: a day, second by second, is about 15 MB.
const maxBenchmarkBody = 16 << 20

// keepBenchmark keeps the result that risso bench run sends.
func (s *server) keepBenchmark(r *http.Request, body []byte) (any, error) {
	list, err := bench.Read(bytes.NewReader(body))
	if err != nil {
		return nil, badRequest(err.Error(), "send what risso bench run --output json prints")
	}
	if len(list) != 1 {
		return nil, badRequest(fmt.Sprintf("%d results at once", len(list)), "send one after the other")
	}
	result := list[0].Result
	row := rowOf(result)
	if row.Instance = r.URL.Query().Get("instance"); row.Instance == "" {
		row.Instance = s.whoRan(result)
	} else if _, ok := s.Live.Facts(row.Instance); !ok {
		return nil, badRequest("no instance "+strconv.Quote(row.Instance), "GET /api/fleet lists them")
	}
	// Only what is known of a result is kept.
	clean, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	id, fresh, err := s.Facts.AddBenchmark(r.Context(), row, clean)
	if err != nil {
		return nil, err
	}
	if fresh {
		s.did(r, row.Instance, "benchmark", fmt.Sprintf("benchmark %d (%s) was recorded", id, row.Workload))
	}
	return map[string]any{"id": id, "instance": row.Instance, "new": fresh}, nil
}

// rowOf is what the list shows of a result.
func rowOf(r *bench.Result) state.Benchmark {
	b := state.Benchmark{Began: r.Began.Add(-time.Duration(r.WarmupSeconds * float64(time.Second))), Ended: r.Began.Add(time.Duration(r.Seconds * float64(time.Second))),
		Workload: r.Workload, Server: r.Server, Version: r.ServerVersion, Threads: r.Threads, Rate: r.Rate, Throughput: r.TransactionsPerSecond, Queries: r.QueriesPerSecond,
		P95: r.Latency.At(95), P99: r.Latency.At(99), Interrupted: r.Interrupted}
	for _, e := range r.Errors {
		b.Errors += e.Count
	}
	for _, o := range r.Outages {
		b.Outage += float64(o.Milliseconds) / 1000
	}
	return b
}

// whoRan finds the watched server that a run was made on: the one with its address, or the one that calls itself the same
// and has its data in the same place. A loopback address says nothing where the run came from another machine, so the
// server's own word goes first.
func (s *server) whoRan(r *bench.Result) string {
	_, address, _ := strings.Cut("@"+r.Server, "@")
	if i := strings.LastIndex(r.Server, "@"); i >= 0 {
		address = r.Server[i+1:]
	}
	byAddress := ""
	for _, row := range s.Live.Fleet(time.Now()) {
		if row.Kind != fleet.KindServer {
			continue
		}
		facts, ok := s.Live.Facts(row.ID)
		if e := r.Environment; ok && e != nil && e.Server.Name != "" && e.Server.DataDir != "" && facts.Text("hostname") != "" {
			if fleet.SeatOf(facts.Text).SamePlace(fleet.Seat{Hostname: e.Server.Name, Port: e.Server.Port, DataDir: e.Server.DataDir}) {
				return row.ID
			}
			continue // it says that it is another one
		}
		if row.Address == address {
			byAddress = row.ID
		}
	}
	return byAddress
}

// benchmarks lists the runs that are kept.
func (s *server) benchmarks(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := param(q, "limit", 1000)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > 1000 {
		return nil, badRequest("limit is from 1 to 1000", "")
	}
	list, err := s.Facts.Benchmarks(r.Context(), q.Get("instance"), int(limit))
	if err != nil {
		return nil, err
	}
	return map[string]any{"benchmarks": list}, nil
}

// benchmarkID reads the id of a run.
func benchmarkID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.URL.Query().Get("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, badRequest("id must be the number of a benchmark", "GET /api/benchmarks lists them")
	}
	return id, nil
}

func noBenchmark(id int64, err error) error {
	if errors.Is(err, state.ErrNotFound) {
		return failed(http.StatusNotFound, fmt.Sprintf("no benchmark %d", id), "GET /api/benchmarks lists them")
	}
	return err
}

// benchmark returns one run whole. The curve of its latency is left to the page of risso bench report.
func (s *server) benchmark(r *http.Request) (any, error) {
	id, err := benchmarkID(r)
	if err != nil {
		return nil, err
	}
	row, result, err := s.Facts.Benchmark(r.Context(), id)
	if err != nil {
		return nil, noBenchmark(id, err)
	}
	var watched struct{ Use *environ.Use }
	if err := json.Unmarshal(result, &watched); err != nil {
		return nil, fmt.Errorf("read benchmark %d: %w", id, err)
	}
	machine := ""
	if watched.Use != nil {
		machine = watched.Use.Line()
	}
	return map[string]any{"id": row.ID, "stored": row.Stored, "instance": row.Instance, "from": float64(row.Began.UnixMilli()) / 1000, "to": float64(row.Ended.UnixMilli()) / 1000,
		"machine": machine, "result": json.RawMessage(result)}, nil
}

// removeBenchmark forgets a run.
func (s *server) removeBenchmark(r *http.Request) (any, error) {
	id, err := benchmarkID(r)
	if err != nil {
		return nil, err
	}
	if err := s.Facts.RemoveBenchmark(r.Context(), id); err != nil {
		return nil, noBenchmark(id, err)
	}
	s.did(r, "", "benchmark", fmt.Sprintf("benchmark %d was deleted", id))
	return map[string]any{"removed": id}, nil
}
