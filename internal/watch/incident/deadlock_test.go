package incident

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeadlock reads reports of real servers.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(server, func(t *testing.T) {
			status, err := os.ReadFile(filepath.Join("testdata", "deadlock-"+server+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			d := ParseDeadlock(deadlockSection(string(status)))
			if len(d.Transactions) != 2 || d.At.IsZero() {
				t.Fatalf("got %d transactions at %s, want 2", len(d.Transactions), d.At)
			}
			victims := 0
			for _, s := range d.Transactions {
				if s.Session == 0 || s.User != "root" || s.Host != "localhost" || !strings.Contains(s.Statement, "sbtest2") || len(s.Holds) != 1 || len(s.Waits) != 1 {
					t.Errorf("got %+v, want who, what, one lock held and one waited for", s)
				}
				if want := "record locks in PRIMARY of sbtest.sbtest2 (X locks rec but not gap)"; len(s.Waits) > 0 && s.Waits[0] != want {
					t.Errorf("waits for %q, want %q", s.Waits[0], want)
				}
				if s.Victim {
					victims++
				}
			}
			if victims != 1 {
				t.Errorf("%d were rolled back, want one", victims)
			}
			if !strings.Contains(d.Drawn, "<< rolled back") || strings.Contains(d.Text, "TRANSACTIONS") {
				t.Errorf("drawn as %s\nof %s", d.Drawn, d.Text)
			}
			for x := xml.NewDecoder(strings.NewReader(d.SVG)); ; {
				if _, err := x.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("the drawing is no XML: %v", err)
				}
			}
			if r := d.Redacted(); strings.Contains(r.Drawn+r.Text+r.SVG, "id=2") || len(r.Transactions) != 2 {
				t.Errorf("redacted: %s", r.Drawn)
			}
		})
	}
	if got := deadlockSection("no such section"); got != "" {
		t.Errorf("got %q, want none", got)
	}
}
