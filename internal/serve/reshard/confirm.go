package reshard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Errors of a map that is compared with the servers.
var (
	ErrElsewhere = errors.New("the map is wrong")
	ErrUnproven  = errors.New("it is not sure that the map is right")
)

// reach is how long a group that is to be asked may take to be connected to.
const reach = 10 * time.Second

// Rows is how many rows of a shard groups have: all that have the tables of its map.
type Rows struct {
	Shard  string           `json:"shard"`  // its name
	Group  string           `json:"group"`  // which is to have them
	Groups map[string]int64 `json:"groups"` // how many each has that has the tables, by its name
}

// elsewhere are the other groups that have rows of it, in words.
func (r Rows) elsewhere() (words []string) {
	for name, n := range r.Groups {
		if name != r.Group && n > 0 {
			words = append(words, "group "+name+" "+digits.Counted(n, "row"))
		}
	}
	slices.Sort(words)
	return words
}

// Located is where the rows of a map are.
type Located struct {
	Shards []Rows   `json:"shards"`
	Silent []string `json:"silent"` // groups that could not be asked, and why
	Guards []string `json:"guards"` // triggers that a move left, with their group
}

// Locate counts the rows of each shard of a map in all groups. Nothing is changed.
func (m *Mover) Locate(ctx context.Context, mp *shard.Map) (*Located, error) {
	out := &Located{Silent: []string{}, Guards: []string{}}
	for _, s := range mp.Shards {
		out.Shards = append(out.Shards, Rows{s.Name, s.Group, map[string]int64{}})
	}
	list, err := m.Groups.Groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		if err := m.locateIn(ctx, mp, g.Name, out); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			out.Silent = append(out.Silent, "group "+g.Name+": "+err.Error())
		}
	}
	return out, nil
}

// locateIn counts them in one group. A table that it does not have has no rows there.
func (m *Mover) locateIn(ctx context.Context, mp *shard.Map, name string, out *Located) error {
	c, err := m.primary(ctx, name)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, t := range mp.Tables {
		for i := range mp.Shards {
			table := mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name)
			text, err := c.Text(ctx, "SELECT /* risso: where are the rows of a shard? */ COUNT(*) FROM "+table+" WHERE "+mp.Part(i).Where(t.Quoted()))
			if number := mysql.ErrorNumber(err); number == errno.NoSuchTable || number == errno.UnknownDatabase {
				break
			} else if err != nil {
				return err
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			out.Shards[i].Groups[name] += n
		}
		rows, err := c.Maps(ctx, "SELECT /* risso: did a move leave triggers? */ TRIGGER_NAME AS n FROM INFORMATION_SCHEMA.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = "+
			mysql.Literal(t.Schema)+" AND EVENT_OBJECT_TABLE = "+mysql.Literal(t.Name)+" AND TRIGGER_NAME LIKE 'risso\\_shard\\_%' ORDER BY TRIGGER_NAME")
		if err != nil {
			return fmt.Errorf("ask for triggers: %w", err)
		}
		for _, r := range rows {
			out.Guards = append(out.Guards, "group "+name+": "+mysql.Quote(t.Schema)+"."+mysql.Quote(r["n"]))
		}
	}
	return nil
}

// primary is a connection to the primary of a group.
func (m *Mover) primary(ctx context.Context, name string) (*mysql.Conn, error) {
	g, err := m.Groups.Group(ctx, name)
	if err != nil {
		return nil, err
	}
	i := g.Primary()
	if i < 0 {
		return nil, errors.New("it has no primary")
	}
	access, err := m.Groups.Access(ctx, name)
	if err != nil {
		return nil, err
	}
	target, err := access.Target(g.Members[i].Name)
	if err != nil {
		return nil, err
	}
	short, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	c, err := mysql.Connect(short, target, nil)
	if err != nil {
		return nil, err
	}
	if err := c.Exec(short, "SET NAMES utf8mb4"); err != nil { // conditions with texts are in it
		c.Close()
		return nil, err
	}
	return c, nil
}

// Judge says whether rows are where a map says: nil, or why it is wrong, or why that is not sure, which a person may know better.
func (l *Located) Judge(name string) error {
	var wrong, unsure []string
	for _, s := range l.Shards {
		here, there := s.Groups[s.Group], s.elsewhere()
		what := "shard " + s.Shard + ": group " + s.Group + " has " + digits.Counted(here, "row")
		switch {
		case here == 0 && len(there) > 0:
			wrong = append(wrong, what+", "+strings.Join(there, ", "))
		case len(there) > 0:
			unsure = append(unsure, what+", "+strings.Join(there, ", ")+" as well")
		case here == 0:
			unsure = append(unsure, "shard "+s.Shard+": no group has rows of it")
		}
	}
	anew := "risso shard remove " + name + ", and risso shard define as it is, which change no rows"
	if len(wrong) > 0 {
		return fault.New(fault.Failed, anew, fmt.Errorf("%w: %s", ErrElsewhere, strings.Join(wrong, "; ")))
	}
	unsure = append(unsure, l.Silent...)
	for _, g := range l.Guards {
		unsure = append(unsure, g+", a trigger of a move, refuses writes there")
	}
	if len(unsure) == 0 {
		return nil
	}
	return fault.New(fault.Failed, "compare the groups; if the map is right, risso shard confirm "+name+" --yes, and drop triggers that are left; if it is not, "+anew,
		fmt.Errorf("%w: %s", ErrUnproven, strings.Join(unsure, "; ")))
}

// Confirm compares a map with the servers, and lets it be told and acted on again if rows are where it says; sure lets what a person knows better stand.
func (m *Mover) Confirm(ctx context.Context, name string, sure bool) (*shard.Map, *Located, error) {
	mp, err := m.Maps.Map(ctx, name)
	if err == nil {
		err = m.Maps.Still(ctx, name)
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := m.Locate(ctx, mp)
	if err != nil {
		return mp, nil, err
	}
	if err := l.Judge(name); err != nil && !(sure && errors.Is(err, ErrUnproven)) {
		return mp, l, err
	}
	if keep.Sure(mp) == nil {
		return mp, l, nil
	}
	confirmed, err := m.Maps.Confirm(ctx, name, mp.Epoch)
	if err != nil { // the answer shows the map that was compared
		return mp, l, err
	}
	return confirmed, l, nil
}
