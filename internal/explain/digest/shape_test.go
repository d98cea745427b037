package digest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestShapes holds that headers read by their shape say what they say attribute by attribute, and that most are
// read so.
func TestShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) == 0 {
		t.Fatal("no logs", err)
	}
	logs := [][]byte{writeLog(3000)}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, b, bytes.Repeat(b, 3))
	}
	for i, log := range logs {
		var got [2]string
		for k, f := range []Filter{nil, keepAll{}} {
			p, err := Run(context.Background(), Options{Workers: 1, Filter: f}, Reader("log", bytes.NewReader(log)))
			if err != nil {
				t.Fatal(err)
			}
			got[k] = asJSON(t, p)
		}
		if got[0] != got[1] {
			t.Errorf("log %d: %s", i, firstDifference(got[0], got[1]))
		}
	}

	p, err := Options{Workers: 1}.plan()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(p)
	shaped, all := 0, 0
	w.parser.block(logs[0], 0, 0, &w.raw, func(ev *raw) {
		if all++; ev.shape != nil && ev.shaped == len(ev.attrs) {
			shaped++
		}
	})
	if shaped < all*9/10 {
		t.Errorf("of %d events %d were read by their shape", all, shaped)
	}
}
