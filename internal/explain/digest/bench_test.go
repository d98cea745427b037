package digest

import (
	"bytes"
	"context"
	"os"
	"testing"
)

// BenchmarkRun reads the log that RISSO_BENCH_LOG names, from memory, on one worker.
func BenchmarkRun(b *testing.B) {
	f := os.Getenv("RISSO_BENCH_LOG")
	if f == "" {
		b.Skip("RISSO_BENCH_LOG names no slow log")
	}
	data, err := os.ReadFile(f)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := Run(context.Background(), Options{Workers: 1, Samples: -1}, Reader("memory", bytes.NewReader(data)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(p.Calls), "events/op")
	}
}
