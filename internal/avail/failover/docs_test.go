package failover_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
)

// page is where people read the codes.
const page = "../../../docs/failover.md"

func codesTable() string {
	var b strings.Builder
	b.WriteString("| code | of | means | remedy |\n|---|---|---|---|\n")
	for _, c := range failover.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.ID, c.Of, c.Means, c.Next)
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
	at := strings.Index(text, "| code | of |")
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
		t.Error("docs/failover.md is not as the codes are: RISSO_WRITE=1 go test ./internal/avail/failover -run TestPage")
	}
}

var codeForm = regexp.MustCompile(`(?:\b(?:add|no|refuse|NewRefusal|failover\.NewRefusal)\((?:&[\w.]+, )?)"([a-z_]+)"`)

// TestCodes: each code that is used is listed once, and each that is listed is used.
func TestCodes(t *testing.T) {
	used := map[string]bool{}
	for _, pattern := range []string{"*.go", "carry/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range codeForm.FindAllStringSubmatch(string(b), -1) {
				used[m[1]] = true
			}
		}
	}
	listed := map[string]bool{}
	for _, c := range failover.Codes() {
		if listed[c.ID] || c.Of == "" || c.Means == "" || c.Next == "" || strings.Contains(c.Means+c.Next, "|") {
			t.Errorf("%s is there twice, or does not say all", c.ID)
		}
		if listed[c.ID] = true; !used[c.ID] {
			t.Errorf("%s is listed, and nobody says it", c.ID)
		}
	}
	for id := range used {
		if !listed[id] {
			t.Errorf("%s is said, and not listed", id)
		}
	}
}
