package screen

import (
	"bytes"
	"testing"
	"time"
)

// Progress writes nothing without a terminal.
func TestProgressInAPipe(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b)
	p.next = time.Time{}
	p.Set(5, 10)
	p.End()
	if b.Len() > 0 {
		t.Errorf("got %q, want b.Len() at most 0", b.String())
	}
}
