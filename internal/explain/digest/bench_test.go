package digest

import (
	"bytes"
	"context"
	"os"
	"syscall"
	"testing"
)

// BenchmarkRun reads the log that RISSO_BENCH_LOG names, from memory, on one worker. cpu-MB/s is by processor
// time, which other work on the machine changes less.
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
	var events int64
	began := cpuSeconds(b)
	for b.Loop() {
		p, err := Run(context.Background(), Options{Workers: 1, Samples: -1}, Reader("memory", bytes.NewReader(data)))
		if err != nil {
			b.Fatal(err)
		}
		events = p.Calls
	}
	took := cpuSeconds(b) - began
	b.ReportMetric(took*1e9/float64(b.N)/float64(events), "cpu-ns/event")
	b.ReportMetric(float64(len(data))*float64(b.N)/1e6/took, "cpu-MB/s")
}

func cpuSeconds(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}
