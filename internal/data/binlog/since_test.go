package binlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
)

// TestSince: logs are left out that ended before a time, by when the next one began; of each only the beginning is read, the newest first.
func TestSince(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var opened []string
	log := func(name string, at time.Time) File {
		return File{Name: name, Open: func(context.Context) (io.ReadCloser, error) {
			opened = append(opened, name)
			if at.IsZero() {
				return io.NopCloser(bytes.NewReader([]byte("no log"))), nil
			}
			const version = "8.0.36"
			body := make([]byte, 2+50+4+1+60+1)
			body[0] = 4
			copy(body[2:], version)
			body[56] = binlogevent.HeaderLen
			e := make([]byte, binlogevent.HeaderLen, 200)
			binary.LittleEndian.PutUint32(e, uint32(at.Unix()))
			e[4] = byte(binlogevent.TypeFormatDescription)
			e = append(append(e, body...), make([]byte, binlogevent.ChecksumLen)...)
			binary.LittleEndian.PutUint32(e[9:], uint32(len(e)))
			return io.NopCloser(bytes.NewReader(append(bytes.Clone(binlogevent.Magic), e...))), nil
		}}
	}
	indexed := log("indexed", time.Time{})
	indexed.Index = &Index{First: noon.Add(-time.Hour)}
	day := []File{log("a", noon.Add(-3*time.Hour)), log("b", noon.Add(-2*time.Hour)), indexed, log("c", noon)}
	for _, c := range []struct {
		files       []File
		from        time.Time
		first, asks string
	}{
		{day, noon.Add(time.Minute), "c", "c"},
		{day, noon, "indexed", "c"}, // in the second in which it began there may be more in the one before
		{day, noon.Add(-90 * time.Minute), "b", "cb"},
		{day, noon.Add(-24 * time.Hour), "a", "cb"},
		{[]File{log("a", noon), log("b", time.Time{})}, noon.Add(time.Hour), "a", "b"}, // when b began is not known
		{[]File{log("a", noon)}, noon.Add(time.Hour), "a", ""},
		{nil, noon, "", ""},
	} {
		opened = nil
		list, err := Since(t.Context(), c.files, c.from)
		first, asks := "", ""
		if len(list) > 0 {
			first = list[0].Name
		}
		for _, o := range opened {
			asks += o
		}
		if err != nil || first != c.first || asks != c.asks {
			t.Errorf("from %v: got %q, asked %q, %v; want %q, %q", c.from, first, asks, err, c.first, c.asks)
		}
	}
	gone := File{Name: "gone", Open: func(context.Context) (io.ReadCloser, error) { return nil, errors.New("gone") }}
	if _, err := Since(t.Context(), []File{gone, gone}, noon); err == nil {
		t.Error("a log that cannot be opened: got no error")
	}
}
