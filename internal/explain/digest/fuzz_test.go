package digest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// FuzzSlowLog looks for logs that crash the reader, or whose profile depends on how they are read.
func FuzzSlowLog(f *testing.F) {
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) == 0 {
		f.Fatal("no logs", err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(300))
	}
	f.Add(writeLog(30), uint16(1000))
	f.Fuzz(func(t *testing.T, log []byte, size uint16) {
		for _, format := range []string{FormatSlow, FormatGeneral} {
			one, err := Run(context.Background(), Options{Format: format, Workers: 1}, Reader("fuzz", bytes.NewReader(log)))
			if err != nil {
				return // such as half a gzip file
			}
			two, err := Run(context.Background(), Options{Format: format, Workers: 3, blockSize: int(size) + 1}, Reader("fuzz", bytes.NewReader(log)))
			if err != nil {
				t.Fatal(err)
			}
			if a, b := asJSON(t, one), asJSON(t, two); a != b {
				t.Fatalf("%s: other blocks give another profile: %s, want a %v", format, firstDifference(b, a), b)
			}
			plain := withoutShapes(t, Options{Format: format, Workers: 1}, log)
			if a, b := asJSON(t, plain), asJSON(t, one); a != b {
				t.Fatalf("%s: shapes give another profile: %s, want a %v", format, firstDifference(b, a), b)
			}
		}
	})
}
