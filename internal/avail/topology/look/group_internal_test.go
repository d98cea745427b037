package look

import (
	"fmt"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestGroupOf: members of Group Replication as MySQL 5.7 and 8.0 list them, of which no server with the plug-in is at hand; a group of 9.7 is made in TestGroup.
func TestGroupOf(t *testing.T) {
	const a, b, c = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002", "cccccccc-0000-0000-0000-000000000003"
	old := func(id, state string) map[string]string {
		return map[string]string{"CHANNEL_NAME": "group_replication_applier", "MEMBER_ID": id, "MEMBER_HOST": "db", "MEMBER_PORT": "3306", "MEMBER_STATE": state}
	}
	newer := func(id, state, role string) map[string]string {
		row := old(id, state)
		row["MEMBER_ROLE"], row["MEMBER_VERSION"] = role, "8.0.15"
		return row
	}
	vars := func(single string) map[string]string {
		return map[string]string{"group_replication_group_name": "g", "group_replication_single_primary_mode": single}
	}
	for name, x := range map[string]struct {
		rows       []map[string]string
		vars, stat map[string]string
		want       string // state, whether it has quorum, whether it may be written to, the size, and the roles
	}{
		"5.7, never started":            {[]map[string]string{{"CHANNEL_NAME": "group_replication_applier", "MEMBER_ID": "", "MEMBER_HOST": "", "MEMBER_PORT": "", "MEMBER_STATE": "OFFLINE"}}, vars("ON"), map[string]string{}, "OFFLINE false false 0 []"},
		"5.7, plug-in without a row":    {nil, vars("ON"), map[string]string{}, "OFFLINE false false 0 []"},
		"5.7, stopped":                  {[]map[string]string{old(a, "OFFLINE")}, vars("ON"), map[string]string{}, "OFFLINE false false 0 []"},
		"5.7, the primary":              {[]map[string]string{old(a, "ONLINE"), old(b, "ONLINE"), old(c, "ONLINE")}, vars("ON"), map[string]string{"group_replication_primary_member": a}, "ONLINE true true 3 [PRIMARY SECONDARY SECONDARY]"},
		"5.7, a secondary":              {[]map[string]string{old(a, "ONLINE"), old(b, "ONLINE")}, vars("ON"), map[string]string{"group_replication_primary_member": b}, "ONLINE true false 2 [SECONDARY PRIMARY]"},
		"5.7, several primaries":        {[]map[string]string{old(a, "ONLINE"), old(b, "RECOVERING")}, vars("OFF"), map[string]string{"group_replication_primary_member": ""}, "ONLINE true true 2 [PRIMARY PRIMARY]"},
		"5.7, half of them unreachable": {[]map[string]string{old(a, "ONLINE"), old(b, "UNREACHABLE")}, vars("ON"), map[string]string{"group_replication_primary_member": a}, "ONLINE false true 2 [PRIMARY SECONDARY]"},
		"5.7, in error":                 {[]map[string]string{old(a, "ERROR")}, vars("OFF"), map[string]string{"group_replication_primary_member": "UNDEFINED"}, "ERROR false false 1 [PRIMARY]"},
		"8.0, never started":            {[]map[string]string{newer("", "OFFLINE", "")}, vars("ON"), map[string]string{}, "OFFLINE false false 0 []"},
		"8.0, the primary":              {[]map[string]string{newer(a, "ONLINE", "PRIMARY"), newer(b, "RECOVERING", "SECONDARY")}, vars("ON"), map[string]string{}, "ONLINE true true 2 [PRIMARY SECONDARY]"},
		"8.0, several primaries":        {[]map[string]string{newer(a, "ONLINE", "PRIMARY"), newer(b, "ONLINE", "PRIMARY")}, vars("OFF"), map[string]string{}, "ONLINE true true 2 [PRIMARY PRIMARY]"},
		"8.0, in error, several":        {[]map[string]string{newer(a, "ERROR", "")}, vars("OFF"), map[string]string{}, "ERROR false false 1 []"},
		"8.0, one of three":             {[]map[string]string{newer(a, "ONLINE", "SECONDARY"), newer(b, "UNREACHABLE", "PRIMARY"), newer(c, "UNREACHABLE", "SECONDARY")}, vars("ON"), map[string]string{}, "ONLINE false false 3 [SECONDARY PRIMARY SECONDARY]"},
		"8.0, two of three":             {[]map[string]string{newer(a, "ONLINE", "PRIMARY"), newer(b, "ONLINE", "SECONDARY"), newer(c, "UNREACHABLE", "SECONDARY")}, vars("ON"), map[string]string{}, "ONLINE true true 3 [PRIMARY SECONDARY SECONDARY]"},
	} {
		g := groupOf(x.rows, x.vars, x.stat, a)
		var roles []string
		for _, m := range g.Members {
			roles = append(roles, m.Role)
		}
		if got := fmt.Sprint(g.State, " ", g.Primary, " ", g.Writer, " ", g.Size, " ", roles); got != x.want || g.Kind != "group_replication" || g.Name != "g" {
			t.Errorf("%s: got %s, want %s", name, got, x.want)
		}
	}
}

// TestSilence: a MySQL 5.7 tells of heartbeats only, which a source that has something to send does not send.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		version    string
		age, every float64
		want       string
	}{{"9.7.0", 5, 30, "5s 30s"}, {"9.7.0", 50, 30, "50s 30s"}, {"5.7.22", 5, 30, "5s 30s"}, {"5.7.22", 50, 30, "unknown 30s"}} {
		age, every := silence(mysql.Of(fleet.ServerOf(c.version, "")), read.SignOfLife{Age: c.age, Every: c.every}), time.Duration(c.every*float64(time.Second))
		got := "unknown"
		if age != nil {
			got = age.String()
		}
		if got += " " + every.String(); got != c.want {
			t.Errorf("%s, %g s of %g: got %s, want %s", c.version, c.age, c.every, got, c.want)
		}
	}
}
