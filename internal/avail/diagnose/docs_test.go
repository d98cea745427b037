package diagnose_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/diagnose"
)

// page is where people read the codes.
const page = "../../../docs/topology.md"

// codesTable is the table of the codes as the page has it.
func codesTable() string {
	var b strings.Builder
	b.WriteString("| code | severity | means | recognised by | certain | not seen | next |\n|---|---|---|---|---|---|---|\n")
	for _, c := range diagnose.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", c.ID, c.Severity, c.Means, c.Recognised, c.Certain, c.NotSeen, c.Next)
	}
	return b.String()
}

// TestPage: the page has the codes as they are. RISSO_WRITE=1 writes them.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	at := strings.Index(text, "| code | severity |")
	if at < 0 {
		t.Fatal("the page has no table of codes")
	}
	if os.Getenv("RISSO_WRITE") == "1" {
		if err := os.WriteFile(page, []byte(text[:at]+codesTable()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text[at:] != codesTable() {
		t.Error("docs/topology.md is not as the codes are: RISSO_WRITE=1 go test ./internal/avail/diagnose -run TestPage")
	}
}

// TestCodes: each code says all, once, and is an ID that others use where they have the same thing.
func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range diagnose.Codes() {
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		for _, text := range []string{c.ID, c.Means, c.Recognised, c.Certain, c.NotSeen, c.Next} {
			if text == "" || strings.Contains(text, "|") {
				t.Errorf("%s: %q", c.ID, text)
			}
		}
	}
	// The IDs by which watching and advice tell of the same things.
	for file, ids := range map[string][]string{
		"../../watch/rules/rules.go":       {"server.hung", "server.down"},
		"../../watch/rules/known.go":       {"conn.saturation", "clock.skew", "commit.semisync", "lock.global", "repl.lag", "repl.writable", "galera.non_primary", "galera.not_synced", "server.no_room"},
		"../../explain/advise/together.go": {"repl.errant_gtid"},
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if !seen[id] || !strings.Contains(string(b), `"`+id+`"`) {
				t.Errorf("%s is not a word of both this table and %s", id, file)
			}
		}
	}
}
