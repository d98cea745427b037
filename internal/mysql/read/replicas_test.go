package read

import "testing"

func TestReplicaFilter(t *testing.T) {
	for _, c := range []struct {
		f    ReplicaFilter
		name [2]string
		want bool
	}{
		{ReplicaFilter{}, [2]string{"a", "t"}, true},
		{ReplicaFilter{DoDB: []string{"a"}}, [2]string{"b", "t"}, false},
		{ReplicaFilter{IgnoreDB: []string{"a"}}, [2]string{"a", "t"}, false},
		{ReplicaFilter{DoTable: []string{"a.t"}}, [2]string{"a", "u"}, false},
		{ReplicaFilter{DoTable: []string{"a.t"}, IgnoreTable: []string{"a.t"}}, [2]string{"a", "t"}, true},
		{ReplicaFilter{WildDo: []string{"a.t%"}}, [2]string{"a", "tx"}, true},
		{ReplicaFilter{WildIgnore: []string{`a.t\_%`}}, [2]string{"a", "tx"}, true},
		{ReplicaFilter{WildIgnore: []string{`a.t\_%`}}, [2]string{"a", "t_x"}, false},
		{ReplicaFilter{WildIgnore: []string{"a.t_"}}, [2]string{"a", "t/"}, false},
		{ReplicaFilter{WildIgnore: []string{"a.*"}}, [2]string{"a", "t"}, true},
	} {
		if got := c.f.Passes(c.name[0], c.name[1]); got != c.want {
			t.Errorf("%s: %v is %v, want %v", c.f, c.name, got, c.want)
		}
	}
}
