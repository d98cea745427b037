package host

import "testing"

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
