package fence

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Boot is how a server would come up after a restart or a crash.
type Boot struct {
	Writable   string   `json:"writable"` // yes, no or unknown
	Words      string   `json:"words"`
	Statements []string `json:"statements,omitempty"` // let it come up read-only, where it writes that down itself
	Lines      []string `json:"lines,omitempty"`      // for the section [mysqld] of its option file, where it does not
	// Tail are lines with which an old primary throws away what no replica acknowledged; where there are none it commits that when it is started.
	Tail []string `json:"tail,omitempty"`
}

// Boots says whether a server would come up writable, as far as it tells, and what mends that.
func Boots(ctx context.Context, c *mysql.Conn) (Boot, error) {
	v, err := read.Variables(ctx, c, asked)
	if err != nil {
		return Boot{}, err
	}
	b := Boot{Writable: "no", Tail: c.Server.TailLines()}
	var words []string
	for _, set := range c.Server.StartSettings() {
		s, err := mysql.StartOf(ctx, c, set[0], v[set[0]])
		if err != nil {
			return Boot{}, fmt.Errorf("ask how %s would be started: %w", set[0], err)
		}
		switch {
		case !s.Known:
			words = append(words, set[0]+" is not known: it was set since the server was started, or the server does not tell")
		case c.Server.Closed(s.Value):
			words = append(words, set[0]+" is "+s.Value+": "+s.From)
			continue
		default:
			words = append(words, set[0]+" is "+s.Value+": "+s.From)
		}
		if b.Writable = "yes"; !s.Known {
			b.Writable = "unknown"
		}
		if c.Server.KeepsSettings() {
			b.Statements = append(b.Statements, c.Server.SetForStart(set[0], set[1]))
		} else {
			b.Lines = append(b.Lines, set[0]+" = "+set[1])
		}
	}
	b.Words = strings.Join(words, "; ")
	return b, nil
}

// CameUp reports whether a server is read-only because it was started so, and not because somebody closed it since; false also if it does not tell.
func CameUp(ctx context.Context, c *mysql.Conn) (bool, error) {
	v, err := read.Variables(ctx, c, asked)
	if err != nil || !c.Server.Closed(v["read_only"]) {
		return false, err
	}
	came := false
	for _, set := range c.Server.StartSettings() { // super_read_only that is set leaves it to read_only where that comes from
		if !c.Server.Closed(v[set[0]]) {
			continue
		}
		if came, err = mysql.SinceStart(ctx, c, set[0]); err != nil || !came {
			return false, err
		}
	}
	return came, nil
}

// AsPrimary is the state of a server that takes writes: Back opens one that came up read-only.
func AsPrimary(s mysql.Server) State {
	was := State{Unheard: true, ReadOnly: "OFF"}
	if s.HasSuperReadOnly() {
		was.Super = "OFF"
	}
	return was
}
