package main

import (
	"context"
	"strings"
	"testing"
)

// TestToyRoom puts faults into a room whose tests are known to notice some and not others.
func TestToyRoom(t *testing.T) {
	t.Chdir("../..")
	r, err := load("script/mutants.d/testdata/toy", nil)
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	bin, err := r.build(scratch)
	if err != nil {
		t.Fatal(err)
	}
	s := suite{bin: bin, dir: r.dir}
	if err := s.learn(context.Background(), scratch); err != nil {
		t.Fatal(err)
	}
	s.try(context.Background(), r.faults, 0)
	var got []string
	for _, f := range r.faults {
		got = append(got, f.change+" in "+f.line+": "+[...]string{"untried", "killed", "hung", "survived", "unreached", "same"}[f.fate])
	}
	want := []string{
		"< → <= in if age < limit {: survived", "< → >= in if age < limit {: killed", "limit → 2 × limit in if age < limit {: survived",
		"- → + in return limit - age: survived", "limit → 2 × limit in return limit - age: killed",
		"0 → 0 + 1 in return 0: unreached",
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("got\n%s\nwant %s", strings.Join(got, "\n"), w)
		}
	}
}
