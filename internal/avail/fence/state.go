package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// State is what was there before a server was fenced, and as of when it is not the primary.
type State struct {
	Epoch    uint64 `json:"epoch"`
	Unheard  bool   `json:"unheard,omitempty"` // as Options have it
	ReadOnly string `json:"read_only"`
	Super    string `json:"super_read_only,omitempty"`
	Offline  string `json:"offline_mode,omitempty"`
	Events   string `json:"event_scheduler,omitempty"`
	// SemiSync begins the names of the variables by which commits wait for replicas; "": they do not.
	SemiSync string `json:"semi_sync,omitempty"`
	Timeout  int64  `json:"semi_sync_timeout_ms,omitempty"`
	// Kept is what the server has written down for its next start.
	Kept []Kept `json:"kept,omitempty"`
}

// Kept is a setting that a server keeps for its next start.
type Kept struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Was   bool   `json:"was"` // it had one
}

// Open reports whether ordinary accounts could write.
func (s State) Open() bool { return !(mysql.Server{}).Closed(s.ReadOnly) }

// Opens reports whether a server that is the primary in an epoch may be opened.
func (s State) Opens(epoch uint64) bool { return epoch > s.Epoch || s.Unheard && epoch == s.Epoch }

var asked = []string{"read_only", "super_read_only", "offline_mode", "event_scheduler"}

// stateOf reads it.
func stateOf(ctx context.Context, c *mysql.Conn, o Options) (State, error) {
	v, err := read.Variables(ctx, c, asked)
	if err != nil {
		return State{}, err
	}
	if v["read_only"] == "" {
		return State{}, errors.New("it does not show whether it is read_only")
	}
	s := State{Epoch: o.Epoch, Unheard: o.Unheard, ReadOnly: v["read_only"], Super: v["super_read_only"], Offline: v["offline_mode"], Events: v["event_scheduler"]}
	semi, err := read.SemiSyncNow(ctx, c)
	if err != nil {
		return State{}, err
	}
	if semi.Source.Enabled {
		s.SemiSync, s.Timeout = semi.Source.Names.Prefix, semi.Source.Timeout
	}
	if !o.Boot || !c.Server.KeepsSettings() {
		return s, nil
	}
	for _, set := range c.Server.StartSettings() {
		value, was, err := mysql.KeptSetting(ctx, c, set[0])
		if err != nil && !mysql.Answered(err) {
			return State{}, err
		}
		s.Kept = append(s.Kept, Kept{set[0], value, was})
	}
	return s, nil
}

// ErrEpoch says that a server was fenced in a newer epoch, or the same.
var ErrEpoch = errors.New("it was fenced in this epoch or a newer one")

// UndoStatements are those that give a server back what it had. Commits wait for replicas again before it takes writes.
func UndoStatements(s mysql.Server, was State) (list []string) {
	if was.SemiSync != "" {
		list = append(list, set(was.SemiSync+"_timeout", strconv.FormatInt(was.Timeout, 10)), set(was.SemiSync+"_enabled", "ON"))
	}
	for _, k := range was.Kept {
		if k.Was {
			list = append(list, s.SetForStart(k.Name, k.Value))
		} else {
			list = append(list, s.ForgetForStart(k.Name))
		}
	}
	list = append(list, s.OpenWrites(was.ReadOnly, was.Super)...)
	if was.Offline != "" {
		list = append(list, set("offline_mode", was.Offline))
	}
	if strings.EqualFold(was.Events, "ON") {
		list = append(list, set("event_scheduler", "ON"))
	}
	return list
}

func set(name, value string) string {
	return "SET GLOBAL /* risso: as it was */ " + name + " = " + mysql.SettingText(value)
}

// Undo gives a server back what it had before it was fenced, if it is the primary of an epoch in which it may be opened: State.Opens. A lock that is held is released by Result.Release.
func Undo(ctx context.Context, target mysql.Target, was State, epoch uint64, limit time.Duration) error {
	if !was.Opens(epoch) {
		return fmt.Errorf("%s is not opened in epoch %d: %w (%d)", target.Address(), epoch, ErrEpoch, was.Epoch)
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := mysql.Connect(ctx, target.WithPatience(limit), nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return Back(ctx, c, was)
}

// Back gives a server back what it had, and makes sure of it by reading. Who calls it has made sure of the epoch. It closes none: one that takes writes already, because two
// had fenced it and the other one opened it first, goes on taking them.
func Back(ctx context.Context, c *mysql.Conn, was State) error {
	v, err := read.Variables(ctx, c, asked)
	if err != nil {
		return fmt.Errorf("open %s: %w", c.Server.Hostname, err)
	}
	if !c.Server.Closed(v["read_only"]) {
		was.ReadOnly, was.Super = v["read_only"], v["super_read_only"]
	}
	statements := UndoStatements(c.Server, was)
	for i, s := range statements {
		if err := c.Exec(ctx, s); err != nil {
			return fleet.WithRemedy(fmt.Errorf("open %s: %s: %w", c.Server.Hostname, s, err), strings.Join(statements[i:], "; "))
		}
	}
	if v, err = read.Variables(ctx, c, asked); err != nil {
		return fmt.Errorf("open %s: %w", c.Server.Hostname, err)
	}
	if v["read_only"] != was.ReadOnly || v["super_read_only"] != was.Super {
		return fmt.Errorf("open %s: read_only is %s, super_read_only %s: somebody else sets them", c.Server.Hostname, v["read_only"], v["super_read_only"])
	}
	return nil
}

// forever is the time-out of semi-synchronous commits with which none goes on without a replica.
const forever = semisync.Forever
