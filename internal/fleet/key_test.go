package fleet_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		of   fleet.Metric
		want string
	}{
		{fleet.Metric{Name: "up"}, `up`},
		{fleet.Metric{Name: "a", Labels: []fleet.Label{{Name: "x", Value: "1"}}}, `a{x="1"}`},
		{fleet.Metric{Name: "a", Labels: []fleet.Label{{Name: "a", Value: `q"\` + "\n}{,="}, {Name: "x", Value: ""}}}, `a{a="q\"\\\n}{,=",x=""}`},
	} {
		if got := c.of.Key(); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.of, got, c.want)
		}
		name, labels, err := fleet.ParseKey(c.want)
		if got := (fleet.Metric{Name: name, Labels: labels}); err != nil || !reflect.DeepEqual(got, c.of) {
			t.Errorf("%s read: got %+v, %v, want %+v", c.want, got, err, c.of)
		}
	}
	unsorted := []fleet.Label{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}
	if fleet.Key("a", unsorted) != `a{a="2",b="1"}` || unsorted[0].Name != "b" {
		t.Error("labels are not sorted, or those of the caller are")
	}
	for _, key := range []string{"", "{a=\"1\"}", "a{", "a{b}", `a{b="1"`, `a{b="1",}x`, `a{b="\q"}`, `a{b="1"c="2"}`, "a b"} {
		if name, labels, err := fleet.ParseKey(key); !errors.Is(err, fleet.ErrKey) {
			t.Errorf("%q is taken for %s %v (%v), want fleet.ErrKey", key, name, labels, err)
		}
	}
}
