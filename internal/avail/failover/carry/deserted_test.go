package carry

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
)

// TestDeserted: a group in which nobody takes writes is not well, whoever could follow, and says so first; with one command that mends it.
func TestDeserted(t *testing.T) {
	follows := failover.Choice{Winner: "b", Candidates: []failover.Candidate{{Name: "b"}}}
	nobody := failover.Choice{Refused: []failover.Refusal{failover.NewRefusal("applier", "START REPLICA on b", "b does not apply")}}
	for _, c := range []struct {
		what   string
		f      Forecast
		says   string // "": it is well
		remedy string
		words  string
	}{
		{"it answers", Forecast{Old: "a", Alive: true, Choice: follows}, "", "", "shop: b would follow a;   b: may follow; 0 transactions to apply"},
		{"it is dead", Forecast{Old: "a", Because: "nothing listens there", Choice: follows}, "shop: a, the primary, does not answer: nothing listens there; b would follow it", "risso failover --group shop",
			"shop: a, the primary, does not answer: nothing listens there; shop: b would follow a"},
		{"nobody said why", Forecast{Old: "a", Choice: follows}, "shop: a, the primary, does not answer; b would follow it", "risso failover --group shop", "shop: a, the primary, does not answer; shop: b would follow a"},
		{"its disk is full", Forecast{Old: "a", Because: failover.FullWords(3), Known: failover.Known{Full: true}, Choice: follows}, "shop: a, the primary, takes no writes: its disk is full", "risso failover --group shop", "shop: a, the primary, takes no writes"},
		{"it lives", Forecast{Old: "a", Because: "access denied", Lives: "it lives, but cannot be asked: access denied", Choice: follows}, "shop: a, the primary: it lives, but cannot be asked", "mend that; risso failover --group shop --accept-loss", "does not answer"},
		{"it is dead, and nobody may follow", Forecast{Old: "a", Because: "nothing listens there", Choice: nobody}, "does not answer: nothing listens there, and nobody could be promoted: b does not apply", "START REPLICA on b", "shop: nobody would follow a"},
		{"there is none", Forecast{Choice: follows}, "shop has no primary: b would be promoted", "risso group promote shop", "shop has no primary: b would be promoted;   b: may be promoted; 0 transactions to apply"},
		{"there is none, and nobody may be", Forecast{Choice: nobody}, "shop has no primary, and nobody could be promoted: b does not apply", "START REPLICA on b", "shop has no primary: nobody would be promoted"},
		{"a change was cut off", Forecast{Choice: follows, cutOff: errors.New("a failover was cut off")}, "a failover was cut off", "", "a failover was cut off"},
	} {
		c.f.Group = &group.Group{Name: "shop"}
		err := c.f.Unwell()
		if (err == nil) != (c.says == "") || c.f.Ready() != (c.says == "") {
			t.Errorf("%s: ready %t: %v", c.what, c.f.Ready(), err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || !strings.HasPrefix(fleet.RemedyOf(err), c.remedy)) {
			t.Errorf("%s: %v (%s)", c.what, err, fleet.RemedyOf(err))
		}
		if words := strings.Join(c.f.Words(), "; "); !strings.Contains(words, c.words) {
			t.Errorf("%s: %s", c.what, words)
		}
	}
}
