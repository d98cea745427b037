package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestBenchmarks(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	began := time.UnixMicro(1700000000123456).UTC()
	b := Benchmark{Began: began, Ended: began.Add(time.Minute), Instance: "db1", Workload: "point_select", Server: "root@db1:3306", Version: "10.11", Threads: 16, Rate: 100, Throughput: 99.5,
		Queries: 199, P95: 0.01, P99: 0.02, Errors: 3, Outage: 2.01, Interrupted: true}
	text := `{"a":"` + strings.Repeat("x", 100000) + `"}`
	id, fresh, err := s.AddBenchmark(ctx, b, []byte(text))
	if err != nil || !fresh || id == 0 {
		t.Fatalf("got %v, %v, %v; want fresh true, id not 0", id, fresh, err)
	}
	if again, fresh, err := s.AddBenchmark(ctx, b, []byte(text)); err != nil || fresh || again != id {
		t.Errorf("the same once more: %d %v %v", again, fresh, err)
	}
	got, result, err := s.Benchmark(ctx, id)
	if err != nil || string(result) != text {
		t.Fatalf("got %d bytes, %v; want string(result) %v", len(result), err, text)
	}
	if time.Since(got.Stored) > time.Minute {
		t.Errorf("stored at: got %v, want at most time.Minute", got.Stored)
	}
	b.ID, b.Stored = id, got.Stored
	if got != b {
		t.Errorf("%+v, not %+v", got, b)
	}
	for i := range 3 {
		other := b
		other.Instance, other.Began = "db2", began.Add(time.Duration(3-i)*time.Hour)
		if _, _, err := s.AddBenchmark(ctx, other, fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Benchmarks(ctx, "", 0)
	if err != nil || len(list) != 4 || list[0].Began.Before(list[1].Began) || list[3].ID != id {
		t.Errorf("got %+v %v; want len(list) 4, list[0].Began.Before(list[1].Began) false, list[3].ID %v", list, err, id)
	}
	if list, err := s.Benchmarks(ctx, "db2", 2); err != nil || len(list) != 2 || list[0].Instance != "db2" {
		t.Errorf("got %+v %v; want len(list) 2, list[0].Instance \"db2\"", list, err)
	}
	if list, err := s.Benchmarks(ctx, "nobody", 0); err != nil || list == nil || len(list) != 0 {
		t.Errorf("got %+v %v; want list not nil, no list", list, err)
	}
	if err := s.RemoveBenchmark(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveBenchmark(ctx, id); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, _, err := s.Benchmark(ctx, id); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// TestUpgradeToBenchmarks opens a file that a Risso made which kept no benchmarks.
func TestUpgradeToBenchmarks(t *testing.T) {
	s := newStore(t)
	fill(t, s, 3)
	path := s.Path()
	downgrade(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, path)
	if again.Damage() != nil {
		t.Fatalf("got %v, want nil", again.Damage())
	}
	if _, _, err := again.AddBenchmark(t.Context(), Benchmark{Workload: "x", Began: time.Now(), Ended: time.Now()}, []byte("{}")); err != nil {
		t.Error(err)
	}
	if list, err := again.Events(t.Context(), EventQuery{}); err != nil || len(list) != 3 {
		t.Errorf("got %d events, %v; want 3", len(list), err)
	}
}
