package digest

import (
	"strings"
	"testing"
)

// Text of a slow log within a literal or a comment looks like events, and the report says so; statements that were sent with an open
// quote, and those that only look odd, are no such text.
func TestLogWithinLiteral(t *testing.T) {
	event := func(statement string) string {
		return "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ h []  Id: 7\n# Query_time: 0.250000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 10\nSET timestamp=1772359200;\n" + statement + ";\n"
	}
	one, quoted := event("SELECT 1"), event("SELECT 'a''b', \"it's\", 'a\\'b' /* it's */")
	for name, c := range map[string]struct {
		log   string
		calls int64
		may   int64
	}{
		"a line each":             {event("SELECT 'x;\n" + one + "'"), 2, 1},
		"two within":              {one + event("INSERT INTO t VALUES ('"+"\n"+one+one+"', 5)") + one, 5, 2},
		"begun without semicolon": {event("SELECT\n'# Time: 2020-01-01\n# User@Host: x[x] @ y []\n# Query_time: 5 Lock_time: 0 Rows_sent: 1 Rows_examined: 1\nselect 5;' as z") + one, 3, 1},
		"in double quotes":        {event("SELECT \"x;\n" + one + "\""), 2, 1},
		"in a comment":            {event("SELECT /* x\n" + one + "*/ 2"), 2, 1},
		"an open quote":           {event("SELECT 'a") + one + quoted + one, 4, 0},
		"an open quote at last":   {one + event("SELECT 'a"), 2, 0},
		"odd, and right":          {event("SELECT \"it's\"") + quoted + event("SELECT 1 -- it's") + one, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, workers := range []int{1, 3} {
				p := digest(t, Options{Workers: workers}, []byte(c.log))
				if p.Calls != c.calls || p.Skipped[skipQuoted] != c.may || strings.Contains(p.Lost(), "may not be events") != (c.may > 0) {
					t.Errorf("got %d calls, not %d; %v: %s; want p.Calls %d, p.Skipped[skipQuoted] %v, strings.Contains(p.Lost(), \"may not be events\") %v",
						p.Calls, c.calls, p.Skipped, p.Lost(), c.calls, c.may, c.may > 0)
				}
			}
		})
	}
}
