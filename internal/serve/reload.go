package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/protect"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/own"
)

// configLook is how often the config file is looked at. It is read when it was the same twice: then it is no longer being written.
const configLook = 2 * time.Second

// configWatch reads the protect blocks, the alerts and the groups of servers of the config file, and rule files, again when they change, or at SIGHUP. Without a config file it hears
// SIGHUP and says that there is nothing to do.
type configWatch struct {
	flags  config.Flags
	guard  *protect.Guard
	desk   *alerts.Desk
	rules  *own.Rules
	board  *live.Board
	event  func(fleet.Event)
	out    io.Writer
	hup    chan os.Signal
	tty    bool // there was a terminal
	config config.File
	list   []config.Watched // as they are protected now
	read   fileMark         // of the file that was read last; zero at first
	seen   fileMark         // and of the one that was seen last
	ring   config.Alerts    // as it is in force

	rulesRead, rulesSeen map[string]fileMark // the same of rule files
}

// fileMark tells one state of a file from another.
type fileMark struct {
	size  int64
	when  time.Time
	inode uint64
}

func markOf(path string) (m fileMark, ok bool) {
	st, err := os.Stat(path)
	if err != nil {
		return m, false
	}
	m = fileMark{size: st.Size(), when: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		m.inode = sys.Ino
	}
	return m, true
}

// hearHangup takes SIGHUP, which ends other commands, and keeps a pipe that is no longer read, such as that of standard
// error after a terminal was closed, from ending Risso.
func hearHangup() chan os.Signal {
	hup := make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP)
	signal.Notify(hup, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	return hup
}

// newConfigWatch makes what looks at the config file; hup is of hearHangup.
func newConfigWatch(f config.Flags, set config.Settings, guard *protect.Guard, rules *own.Rules, w *watch, hup chan os.Signal, out io.Writer) *configWatch {
	c := &configWatch{flags: f, guard: guard, desk: w.desk, rules: rules, board: w.board, list: set.Servers, ring: set.Alerts, event: w.Event, out: out, hup: hup, tty: hasTerminal()}
	c.config, _ = config.Read(f.ConfigFile) // it was good a moment ago; and it is read once more at the first look
	c.rulesRead = rulesMarks(set.Alerts.Rules)
	return c
}

// hasTerminal reports whether this process belongs to a terminal.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// run looks at the file until ctx ends.
func (c *configWatch) run(ctx context.Context) error {
	defer signal.Stop(c.hup)
	tick := time.NewTicker(configLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.hup:
			c.hangup(ctx)
		case <-tick.C:
			c.lookAtRules()
			if c.flags.ConfigFile == "" {
				continue
			}
			now, there := markOf(c.flags.ConfigFile)
			if there && now == c.seen && now != c.read { // one that is gone for a moment is being rewritten
				c.read = now
				c.again(ctx, false)
			}
			c.seen = now
		}
	}
}

// hangup takes SIGHUP: sent to a server it means to reread its files, and a server that watches does not end because
// a window was closed.
func (c *configWatch) hangup(ctx context.Context) {
	if c.tty && !hasTerminal() {
		c.tty = false
		c.tell(fmt.Sprintf("the terminal that Risso was started on was closed; it keeps watching (kill %d ends it)", os.Getpid()), fleet.SeverityWarning)
	}
	if c.flags.ConfigFile == "" {
		c.tell("SIGHUP: there is no config file to reread; watching continues", fleet.SeverityInfo)
		return
	}
	c.read, _ = markOf(c.flags.ConfigFile)
	c.again(ctx, true)
}

// again reads the file. Errors in it are reported, and nothing changes then.
func (c *configWatch) again(ctx context.Context, asked bool) {
	now, list, err := c.flags.Resolve()
	if errors.Is(err, config.ErrNoServer) && len(c.list) > 0 { // it watches members of groups
		err = nil
	}
	var ring config.Alerts
	if err == nil {
		ring, err = now.CheckAlerts()
	}
	if err == nil {
		list = c.keep(list)
		err = errors.Join(config.Unique(list), config.OnePlace(list))
	}
	var said []string
	if err == nil {
		if said = c.protections(list); len(said) > 0 || asked {
			err = c.guard.Replace(ctx, list)
		}
	}
	if err != nil {
		c.tell("the config file was not used, the previous settings stay in force: "+fault.Line(err.Error(), ""), fleet.SeverityWarning)
		return
	}
	alerts := append(c.rings(ctx, ring, asked), c.regroup(list)...)
	for _, one := range alerts { // each is an event
		c.tell("config file reread: "+one, fleet.SeverityInfo)
	}
	said = append(said, c.rest(now)...)
	if len(said)+len(alerts) == 0 && asked {
		said = []string{"nothing has changed"}
	}
	c.config, c.list = now, list
	if len(said) > 0 {
		c.tell("config file reread: "+strings.Join(said, "; "), fleet.SeverityInfo)
	}
}

// regroup puts servers into the groups that they have in the file now, and says so.
func (c *configWatch) regroup(list []config.Watched) (said []string) {
	for i, n := range list {
		was, is := c.list[i].Instance.Group, n.Instance.Group
		if was == is {
			continue
		}
		c.board.Regroup(n.Instance.ID, is)
		switch {
		case is == "":
			said = append(said, n.Instance.Name+" is no longer in group "+was)
		case was == "":
			said = append(said, n.Instance.Name+" is now in group "+is)
		default:
			said = append(said, n.Instance.Name+" is now in group "+is+", no longer in "+was)
		}
	}
	if len(said) > 0 {
		c.desk.Poke()
	}
	return said
}

// keep returns the servers that are watched, with the protection and the group in the file now. One that the file no longer names
// stays as it is: it is watched until the next start.
func (c *configWatch) keep(list []config.Watched) []config.Watched {
	out := slices.Clone(c.list)
	for i := range out {
		k := slices.IndexFunc(list, func(n config.Watched) bool { return n.Instance.ID == out[i].Instance.ID })
		if k >= 0 {
			out[i].Protect, out[i].Instance.Group = list[k].Protect, list[k].Instance.Group
		}
	}
	return out
}

// protections says what is protected in another way.
func (c *configWatch) protections(list []config.Watched) (said []string) {
	for i, n := range list {
		was, is := c.list[i].Protect, n.Protect
		switch name := n.Instance.Name; {
		case was == nil && is == nil:
		case was == nil:
			said = append(said, name+" is now protected")
		case is == nil:
			said = append(said, name+" is no longer protected")
		default:
			if fields := changedFields(was.Protect, is.Protect); len(fields) > 0 {
				said = append(said, name+" has another "+strings.Join(fields, ", "))
			}
		}
	}
	return said
}

// changedFields are the names, as the file has them, of what differs.
func changedFields(a, b config.Protect) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("yaml"), ",")
			names = append(names, name)
		}
	}
	return names
}

// rest says what else is another in the file, which needs a restart.
func (c *configWatch) rest(now config.File) (said []string) {
	bare := func(c config.File) config.File {
		c = c.WithoutAlerts()
		c.Servers = slices.Clone(c.Servers)
		for i := range c.Servers {
			c.Servers[i].Protect, c.Servers[i].Group = nil, ""
		}
		return c
	}
	if !reflect.DeepEqual(bare(c.config), bare(now)) {
		said = append(said, "other changes in it take effect when risso serve is restarted")
	}
	return said
}

// tell says it where risso serve was started, and among the events.
func (c *configWatch) tell(text string, s fleet.Severity) {
	fmt.Fprintln(c.out, "risso: "+text)
	c.event(fleet.Event{Time: time.Now(), Kind: fleet.EventObserver, Severity: s, Subject: "config", Text: text})
}
