package chaos

import (
	"reflect"
	"testing"
)

// TestPlan: a seed gives one plan, another seed another one, and each kind comes equally often.
func TestPlan(t *testing.T) {
	a, b := Plan(1, Kinds(), 3*len(Kinds())), Plan(2, Kinds(), 3*len(Kinds()))
	if !reflect.DeepEqual(a, Plan(1, Kinds(), 3*len(Kinds()))) {
		t.Error("the same seed gives another plan")
	}
	if reflect.DeepEqual(a, b) {
		t.Error("another seed gives the same plan")
	}
	count := map[Kind]int{}
	for i, f := range a {
		if f.Number != i+1 {
			t.Errorf("fault %d has number %d", i+1, f.Number)
		}
		count[f.Kind]++
		if f.Kind == Stall && f.Least >= 2e9+1 {
			t.Errorf("a stall lasts %s; want at most two seconds", f.Least)
		}
	}
	for _, k := range Kinds() {
		if count[k] != 3 || k.Words() == "" {
			t.Errorf("%s comes %d times, %q; want 3", k, count[k], k.Words())
		}
	}
}

// TestParseKinds: what is none is refused.
func TestParseKinds(t *testing.T) {
	if got, err := ParseKinds([]string{"kill", "clock", "kill"}); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v; want two", got, err)
	}
	if _, err := ParseKinds([]string{"meteor"}); err == nil {
		t.Error("a meteor is a fault")
	}
}
