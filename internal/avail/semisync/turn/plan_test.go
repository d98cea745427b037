package turn

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestOneChannel: of a replica with several sources only the channel of this primary connects anew; MySQL means all of them if none is named.
func TestOneChannel(t *testing.T) {
	for _, c := range []struct {
		flavour fleet.Flavour
		number  fleet.Version
		several bool
		name    string
		want    string
	}{
		{fleet.FlavourMySQL, 80400, false, "", "STOP REPLICA IO_THREAD; START REPLICA IO_THREAD"},
		{fleet.FlavourMySQL, 80400, true, "", "STOP REPLICA IO_THREAD FOR CHANNEL ''; START REPLICA IO_THREAD FOR CHANNEL ''"},
		{fleet.FlavourMySQL, 80400, true, "east", "STOP REPLICA IO_THREAD FOR CHANNEL 'east'; START REPLICA IO_THREAD FOR CHANNEL 'east'"},
		{fleet.FlavourMariaDB, 101100, true, "", "STOP SLAVE IO_THREAD; START SLAVE IO_THREAD"},
	} {
		s := &server{t: &Turn{}, c: &mysql.Conn{Server: mysql.Of(fleet.Server{Flavour: c.flavour, Number: c.number})}}
		r := &replica{several: c.several}
		r.moment.Name = c.name
		s.restart(r, "")
		if err := s.t.before[0](t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.t.Plan[0].What; got != c.want || s.t.undo[0].Statement != c.want {
			t.Errorf("%+v: got %s, and to go back %s", c, got, s.t.undo[0].Statement)
		}
	}
}

// TestFollows: a replica of another server that has the primary's server_id is none of its own.
func TestFollows(t *testing.T) {
	for _, c := range []struct {
		id, of string // what the replica says of its source
		want   bool
	}{{"1", "A-B", true}, {"2", "a-b", false}, {"1", "c-d", false}, {"1", "", true}} {
		m := read.ReplicaMoment{SourceServerID: c.id}
		m.SourceID = c.of
		if got := follows(m, "1", "a-b"); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}
