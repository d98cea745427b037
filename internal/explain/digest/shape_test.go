package digest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// withoutShapes reads a log as Run does, each header attribute by attribute.
func withoutShapes(t *testing.T, o Options, log []byte) *Profile {
	t.Helper()
	p, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(p)
	w.parser.shapeCount = maxShapes // so that none is learned
	r := &run{plan: p, workers: []*worker{w}}
	s := Reader("fuzz", bytes.NewReader(log))
	if err := r.source(context.Background(), 0, s, r.workers); err != nil {
		t.Fatal(err)
	}
	return r.profile()
}

func sameWithoutShapes(t *testing.T, log []byte) {
	t.Helper()
	o := Options{Format: FormatSlow, Workers: 1}
	p, err := Run(context.Background(), o, Reader("fuzz", bytes.NewReader(log)))
	if err != nil {
		t.Fatal(err)
	}
	got, want := asJSON(t, p), asJSON(t, withoutShapes(t, o, log))
	if got != want {
		t.Fatalf("%s\nin the log:\n%q", firstDifference(want, got), log)
	}
}

// TestShapes holds that headers read by their shape say what they say attribute by attribute, and that most are
// read so.
func TestShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: got %v; want len(files) not 0", err)
	}
	logs := [][]byte{writeLog(3000)}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, b, bytes.Repeat(b, 3))
	}
	for _, log := range logs {
		sameWithoutShapes(t, log)
	}

	p, err := Options{Workers: 1}.plan()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(p)
	shaped, all := 0, 0
	w.parser.block(logs[0], 0, 0, true, &w.raw, func(ev *raw) {
		if all++; ev.shape != nil && ev.shaped == len(ev.attrs) {
			shaped++
		}
	})
	if shaped < all*9/10 {
		t.Errorf("of %d events %d were read by their shape, want at least %d", all, shaped, all*9/10)
	}
}

// TestDamagedShapes does the same with logs that are damaged a little, so that headers are nearly what is known.
func TestDamagedShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: got %v; want len(files) not 0", err)
	}
	pieces := []string{
		"\n", "#", "# ", ": ", "  ", "0", "Yes", "No", ";", "\n# Time: ", "]", "-1", "1e5", "0.5", "99999999", "123456789012", "\r\n", " Rows_sent: 5",
		"Id:    7", "Schema:  ", "Schema: a", "use x;\n", "SET timestamp=1780000001;\n", ".", "\x00", " Query_time: 7  Lock_time: 2", "\n# Query_time: 3",
	}
	r := rand.New(rand.NewPCG(3, 5))
	for _, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole = whole[:min(len(whole), 20_000)]
		for range 60 {
			log := append(bytes.Clone(whole), whole...) // so that there is something to know
			for range 1 + r.IntN(8) {
				i := r.IntN(len(log))
				switch r.IntN(4) {
				case 0:
					log[i] = byte(r.Uint32())
				case 1:
					log[i] = "0123456789 \n#:;"[r.IntN(15)]
				case 2:
					log = slices.Insert(log, i, []byte(pieces[r.IntN(len(pieces))])...)
				case 3:
					log = slices.Delete(log, i, min(len(log), i+r.IntN(40)))
				}
			}
			sameWithoutShapes(t, log)
		}
	}
}
