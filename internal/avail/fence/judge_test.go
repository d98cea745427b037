package fence

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestJudge: nothing is proven that was not read back.
func TestJudge(t *testing.T) {
	maria, newest := mysql.Of(fleet.ServerOf("10.11.6-MariaDB", "")), mysql.Of(fleet.ServerOf("12.1.2-MariaDB", ""))
	server, old := mysql.Of(fleet.ServerOf("9.7.4", "MySQL")), mysql.Of(fleet.ServerOf("5.6.40", "MySQL"))
	left := []read.Client{{ID: 7, User: "boss"}}
	for _, c := range []struct {
		name   string
		facts  facts
		proven bool
		words  string
	}{
		{"super_read_only", facts{server: server, readOnly: "ON", super: "ON", left: left}, true, "super_read_only is ON"},
		{"read_only alone", facts{server: server, readOnly: "ON", super: "OFF", writers: []string{"boss@%"}}, false, "does not hold for boss@%"},
		{"open", facts{server: server, readOnly: "OFF", super: "OFF", late: errors.New("it waits")}, false, "it is not read-only: it waits"},
		{"set back", facts{server: server, readOnly: "OFF", super: "OFF"}, false, "somebody else sets it"},
		{"no admin", facts{server: newest, readOnly: "NO_LOCK_NO_ADMIN"}, true, "read_only is NO_LOCK_NO_ADMIN"},
		{"lock only", facts{server: newest, readOnly: "NO_LOCK", writers: []string{"boss@%"}}, false, "does not hold"},
		{"held", facts{server: maria, readOnly: "ON", held: true, writers: []string{"boss@%"}}, true, "as long as that session lives"},
		{"own account", facts{server: maria, readOnly: "ON", account: "risso@%", writers: []string{"risso@%"}, left: []read.Client{{ID: 1, User: "risso"}}}, true, "no account but Risso's own"},
		{"a session", facts{server: maria, readOnly: "ON", account: "risso@%", left: left}, false, "7 of boss"},
		{"not known", facts{server: maria, readOnly: "ON", unknown: errors.New("denied")}, false, "not known: denied"},
		{"5.6", facts{server: old, readOnly: "ON", writers: []string{"root@localhost"}}, false, "root@localhost"},
	} {
		if proven, words := c.facts.judge(); proven != c.proven || !strings.Contains(words, c.words) {
			t.Errorf("%s: got %t, %s", c.name, proven, words)
		}
	}
}

// TestOpens: a server is opened in a higher epoch, or in the same if nobody said that another is the primary.
func TestOpens(t *testing.T) {
	for _, c := range []struct {
		was   State
		epoch uint64
		opens bool
	}{{State{Epoch: 5}, 4, false}, {State{Epoch: 5}, 5, false}, {State{Epoch: 5}, 6, true}, {State{Unheard: true}, 0, true}, {State{Epoch: 5, Unheard: true}, 5, true}, {State{Epoch: 5, Unheard: true}, 4, false}} {
		if c.was.Opens(c.epoch) != c.opens {
			t.Errorf("%+v in epoch %d: want %t", c.was, c.epoch, c.opens)
		}
	}
}
