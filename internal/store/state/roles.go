package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// Role is what a user or a token may do. Roles are a ladder: each includes those below it.
type Role string

// The roles, from the lowest.
const (
	RoleLook     Role = "look"     // read everything
	RoleChange   Role = "change"   // start and stop jobs, acknowledge and silence alerts, keep and delete results
	RoleFailover Role = "failover" // switch over, fail over, change groups
	RoleAdmin    Role = "admin"    // see who has access and who did what, end sessions, revoke tokens
)

// roleBefore is what RoleChange was called in the first schemas; scripts may still say so.
const roleBefore = "act"

// Roles lists them, the lowest first.
func Roles() []Role { return []Role{RoleLook, RoleChange, RoleFailover, RoleAdmin} }

func (r Role) rank() int {
	for i, x := range Roles() {
		if r == x {
			return i + 1
		}
	}
	return 0
}

// Allows reports whether this role includes another. What is no role includes nothing, and is included in none.
func (r Role) Allows(needed Role) bool { return needed.rank() > 0 && r.rank() >= needed.rank() }

// ParseRole reads a role. The old word act is change.
func ParseRole(text string) (Role, error) {
	if text == roleBefore {
		return RoleChange, nil
	}
	if r := Role(text); r.rank() > 0 {
		return r, nil
	}
	return "", fault.Usagef("there is no role %q: look, change, failover or admin", text)
}

// Scan implements sql.Scanner. What is no role, as a later Risso may have stored, allows nothing.
func (r *Role) Scan(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("a role is a text, not %T", v)
	}
	if *r = Role(text); text == roleBefore {
		*r = RoleChange
	}
	return nil
}

func lower(a, b Role) Role {
	if a.rank() < b.rank() {
		return a
	}
	return b
}

// The kinds of things that Only names.
const (
	OfGroup  = "group"  // a group of servers that fail over together, by its name
	OfServer = "server" // a server, by its name
)

// Only limits what may be changed, to groups and servers whose name fits one of its patterns: "group=shop*", "server=db1". Looking is not limited. Empty:
// everything.
type Only []string

// ParseOnly reads patterns as people write them.
func ParseOnly(list []string) (Only, error) {
	out := Only{}
	for _, text := range list {
		kind, name, ok := strings.Cut(strings.TrimSpace(text), "=")
		if name = strings.TrimSpace(name); !ok || name == "" || kind != OfGroup && kind != OfServer {
			return nil, fault.Usagef("%q: write it as group=PATTERN or server=PATTERN, such as group=shop*", text)
		}
		out = append(out, kind+"="+name)
	}
	return out, nil
}

// Allows reports whether a thing of that kind and name fits.
func (o Only) Allows(kind, name string) bool {
	if len(o) == 0 {
		return true
	}
	for _, p := range o {
		if k, stars, _ := strings.Cut(p, "="); k == kind && pattern.Stars(stars, name) {
			return true
		}
	}
	return false
}

// String is the patterns in one line.
func (o Only) String() string { return strings.Join(o, " ") }

// Scan implements sql.Scanner. What cannot be read allows nothing.
func (o *Only) Scan(v any) error {
	text, _ := v.(string)
	*o = nil
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), (*[]string)(o)); err != nil {
		return fmt.Errorf("read what access is limited to: %w", err)
	}
	return nil
}

// stored is how it is kept.
func (o Only) stored() (string, error) {
	if len(o) == 0 {
		return "", nil
	}
	b, err := json.Marshal([]string(o))
	return string(b), err
}

// Actor is who does something through Risso, as far as it is known.
type Actor struct {
	Name    string `json:"name"`           // of the user or token, "root on db1" of a command; empty: somebody on this machine
	Role    Role   `json:"role"`           // what he may do
	Limits  []Only `json:"limits"`         // each of which has to allow it; none: everything
	Via     string `json:"via"`            // "password", "token ci", "shell"; empty: nobody was asked
	User    string `json:"user,omitempty"` // the account, if there is one
	Address string `json:"address,omitempty"`
	Call    string `json:"-"` // the request or command
	Session string `json:"-"` // of whoever signed in on the page: the key of the session, which is not what opens it
}

// Who names him in sentences.
func (a Actor) Who() string {
	if a.Name == "" {
		return "somebody on this machine"
	}
	return a.Name
}

// Limited reports whether there is something that he may not change whatever his role.
func (a Actor) Limited() bool { return len(a.Limits) > 0 }

// Lacks is why he may not do what needs a role; nil if he may. It names the way to it.
func (a Actor) Lacks(needed Role) error {
	if a.Role.Allows(needed) {
		return nil
	}
	has := "nothing"
	if a.Role.rank() > 0 {
		has = string(a.Role)
	}
	way := "somebody with the data folder can make one that may: risso token create NAME --role " + string(needed)
	if a.User != "" {
		way = "somebody with the data folder can give it: risso user role " + a.User + " " + string(needed)
	}
	return fleet.WithRemedy(fmt.Errorf("%s has the role %s, and this needs the role %s", a.Who(), has, needed), way)
}

// Bars is why he may not change any of the named things of a kind, of which several may be one and the same: a server and the groups that it is in. nil
// if he may.
func (a Actor) Bars(things ...Thing) error {
	for _, o := range a.Limits {
		if len(o) == 0 {
			continue
		}
		ok := false
		for _, t := range things {
			ok = ok || o.Allows(t.Kind, t.Name)
		}
		if !ok {
			what := "everything"
			if len(things) > 0 {
				what = "the " + things[0].Kind + " " + things[0].Name
			}
			return fmt.Errorf("%s may only change %s, and this is about %s", a.Who(), o, what)
		}
	}
	return nil
}

// Thing is a group or a server.
type Thing struct{ Kind, Name string }

// limitsOf leaves out what limits nothing.
func limitsOf(list ...Only) (out []Only) {
	for _, o := range list {
		if len(o) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// actorKey is where a context has who acts.
type actorKey struct{}

// WithActor says in a context who acts.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is who acts, as WithActor said; without a name and without any role, if nobody did.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// errors of access.
var (
	// ErrLastAdmin says that others would be left without anybody who may manage them.
	ErrLastAdmin = errors.New("the last user with the role admin")
	// ErrPassword says that a user and a password do not belong together, whichever is wrong.
	ErrPassword = errors.New("this user and this password do not belong together")
)
