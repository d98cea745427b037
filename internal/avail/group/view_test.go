package group_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// TestViewInUTC: a view is written with times in UTC, wherever it was made, also within something else.
func TestViewInUTC(t *testing.T) {
	at := time.Date(2026, 12, 1, 3, 0, 0, 0, time.FixedZone("east", 3*3600))
	v := group.View{Group: "g", Epoch: 3, Since: at, Seen: at}
	for _, x := range []any{v, &v, struct{ View *group.View }{&v}} {
		text, err := json.Marshal(x)
		if err != nil || strings.Count(string(text), `"2026-12-01T00:00:00Z"`) != 2 {
			t.Errorf("got %s, %v", text, err)
		}
	}
}
