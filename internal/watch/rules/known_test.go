package rules

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKinds: the list that other programs go by is that of the README, and what can be found stands in both.
func TestKinds(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.*]+)` \\|.*\\|.*\\|.*\\|$").FindAllStringSubmatch(string(text), -1) {
		if _, known := KindOf(m[1]); known || !slices.Contains(want, m[1]) {
			want = append(want, m[1])
		}
	}
	want = want[:slices.Index(want, "rules.*")+1] // after it comes another table
	var got []string
	for _, k := range Kinds() {
		got = append(got, k.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		code, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`candidate\{id: "([a-z_.]+)"`).FindAllStringSubmatch(string(code), -1) {
			found++
			if _, ok := KindOf(m[1]); !ok {
				t.Errorf("%s finds %s, which is not in the list", f.Name(), m[1])
			}
		}
	}
	if found < 25 {
		t.Errorf("got %d rules in the code: the test does not see them any more", found)
	}
}

// TestMeant: a name that can mean nothing is a typing error.
func TestMeant(t *testing.T) {
	for name, want := range map[string]int{"repl.lag": 1, "repl.*": 16, "protect.stale": 1, "protect.*": 1, "protect.f*": 1, "plan.slower": 1, "*": len(Kinds()), "repl.lagg": 0, "rep": 0, "": 0, "x.*": 0} {
		if got := Meant(name); len(got) != want {
			t.Errorf("%q: got %v, want %d", name, got, want)
		}
	}
}
