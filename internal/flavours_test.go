package internal_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// flavourRooms are where servers of different flavours may be distinguished, each with the reason.
var flavourRooms = map[string]string{
	"internal/mysql/":       "what a server is able to do, and its words: all others ask here (capabilities.go)",
	"internal/fleet/":       "the flavours themselves",
	"internal/sqltext/":     "a dialect is how a flavour reads SQL",
	"internal/binlogevent/": "each flavour has its own events",
	"internal/sandbox/":     "recipes start servers before there is anything to ask",
}

// asksFlavour finds what branches on a server's flavour.
var asksFlavour = regexp.MustCompile(`[.]MariaDB\(\)|fleet[.]Flavour(MySQL|MariaDB|Percona)|sandbox[.]Family(MySQL|MariaDB|Percona)|[.]Dialect\{[^}]*MariaDB|` +
	`(Flavour|Family) [!=]= "|[!=]= "(MariaDB|MySQL|mariadb)"|Contains\(.*(Version|Comment).*"(MariaDB|Percona)"`)

// TestFlavours: all other packages ask for what a server can do, by name, and not for its flavour.
func TestFlavours(t *testing.T) {
	for _, line := range []string{"if s.MariaDB() {", "case fleet.FlavourPercona:", `if e.Flavour == "MariaDB" {`, `strings.Contains(s.Version, "MariaDB")`} {
		if !asksFlavour.MatchString(line) {
			t.Errorf("not found: got %s, want asksFlavour.MatchString(line) true", line)
		}
	}
	list, err := exec.Command("git", "ls-files", "--full-name", "--", "*.go").Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	seen := map[string]int{}
	for _, file := range strings.Fields(string(list)) {
		text, err := os.ReadFile("../" + file)
		if os.IsNotExist(err) || strings.HasSuffix(file, "_test.go") { // removed, and not yet by git
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		room := ""
		for dir := range flavourRooms {
			if strings.HasPrefix(file, dir) {
				room = dir
			}
		}
		seen[room]++
		if room != "" {
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if code, _, _ := strings.Cut(line, "//"); asksFlavour.MatchString(code) {
				t.Errorf("%s:%d asks for a flavour; name what it wants to know in mysql/capabilities.go: %s", file, i+1, strings.TrimSpace(line))
			}
		}
	}
	for room := range flavourRooms {
		if seen[room] == 0 {
			t.Errorf("%s has no files, want seen[room] not 0", room)
		}
	}
	if seen[""] < 100 {
		t.Errorf("only %d files were looked at, want at least 100", seen[""])
	}
}
