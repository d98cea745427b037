package fleet_test

import (
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

func TestKeys(t *testing.T) {
	for _, m := range []fleet.Metric{
		{Name: "up"},
		{Name: "a", Labels: []fleet.Label{{Name: "x", Value: "1"}}},
		{Name: "a", Labels: []fleet.Label{{Name: "a", Value: `q"\` + "\n}{,="}, {Name: "x", Value: ""}}},
	} {
		name, labels, err := fleet.ParseKey(m.Key())
		if got := fleet.Key(name, labels); err != nil || got != m.Key() || len(labels) != len(m.Labels) {
			t.Errorf("%q becomes %q (%v)", m.Key(), got, err)
		}
		for i := range labels {
			if labels[i] != m.Labels[i] {
				t.Errorf("%q: got label %q, want %q", m.Key(), labels[i], m.Labels[i])
			}
		}
	}
	unsorted := []fleet.Label{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}
	if fleet.Key("a", unsorted) != `a{a="2",b="1"}` || unsorted[0].Name != "b" {
		t.Error("labels are not sorted, or those of the caller are")
	}
	for _, key := range []string{"", "{a=\"1\"}", "a{", "a{b}", `a{b="1"`, `a{b="1",}x`, `a{b="\q"}`, `a{b="1"c="2"}`, "a b"} {
		if name, labels, err := fleet.ParseKey(key); !errors.Is(err, fleet.ErrKey) {
			t.Errorf("%q is taken for %s %v (%v)", key, name, labels, err)
		}
	}
}
