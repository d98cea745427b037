package read

import "testing"

// TestMemberOf: what a server knows of itself as a member of a group. The rows of MySQL 5.7 and 8.0 before the first START GROUP_REPLICATION are as its manual shows
// them; with the plugin loaded and nothing configured they are alike.
func TestMemberOf(t *testing.T) {
	none57 := map[string]string{"CHANNEL_NAME": "group_replication_applier", "MEMBER_ID": "", "MEMBER_HOST": "", "MEMBER_PORT": "", "MEMBER_STATE": "OFFLINE", "me": "0"}
	none80 := map[string]string{"CHANNEL_NAME": "group_replication_applier", "MEMBER_ID": "", "MEMBER_HOST": "", "MEMBER_PORT": "", "MEMBER_STATE": "", "MEMBER_ROLE": "", "MEMBER_VERSION": "", "me": "0"}
	own := map[string]string{"MEMBER_ID": "a", "MEMBER_STATE": "ONLINE", "MEMBER_ROLE": "PRIMARY", "me": "1"}
	gone := map[string]string{"MEMBER_ID": "b", "MEMBER_STATE": "UNREACHABLE", "MEMBER_ROLE": "SECONDARY", "me": "0"}
	for _, c := range []struct {
		name  string
		rows  []map[string]string
		meant bool
		want  *GroupHealth
	}{
		{"the plugin does nothing, and is not meant to", []map[string]string{none57}, false, nil},
		{"5.7, restarted, and did not join", []map[string]string{none57}, true, &GroupHealth{State: "OFFLINE"}},
		{"8.0, restarted, and did not join", []map[string]string{none80}, true, &GroupHealth{State: "OFFLINE"}},
		{"no rows at all", nil, true, &GroupHealth{State: "OFFLINE"}},
		{"no plugin", nil, false, nil},
		{"a primary, and one that is gone", []map[string]string{own, gone}, true, &GroupHealth{State: "ONLINE", Primary: true, Members: 2, Reachable: 1}},
		{"others only", []map[string]string{gone}, true, &GroupHealth{State: "OFFLINE", Members: 1}},
	} {
		got, _ := memberOf(c.rows, c.meant)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v; want %+v", c.name, got, c.want)
		}
	}
}
