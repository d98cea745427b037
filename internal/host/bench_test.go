package host

import (
	"os"
	"testing"
)

// BenchmarkRead is the cost of one tick on this host.
func BenchmarkRead(b *testing.B) {
	h, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	h.Read()
	b.ReportAllocs()
	for b.Loop() {
		h.Read()
	}
	b.ReportMetric(float64(len(h.Metrics())), "values")
}

// BenchmarkProcess is the cost of one tick of a process.
func BenchmarkProcess(b *testing.B) {
	h, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	p, err := h.Process(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	p.Read()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Read(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p.Metrics())), "values")
}
