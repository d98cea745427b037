package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// Own is how Risso itself is.
type Own struct {
	Dir         string    // where it keeps its data
	Size, Avail float64   // bytes of that file system; 0: not known
	Full        bool      // metrics cannot be written
	State       string    // the file of the state, if it was removed or replaced under Risso; else empty
	Rescued     string    // a copy of what is open of it; empty: none could be written
	LostEvents  int64     // that could not be kept, since it was started
	LostMinutes int64     // of an instance's metrics
	LostAt      time.Time // when the last of these was lost
	Silent      []Silent  // of which it has had no reading for long

	Controllers Controllers
}

// Controllers are the risso serve that share their state with this one.
type Controllers struct {
	All  int      // with this one; 0: it shares its state with nobody
	Lead string   // which one leads; empty: none does
	Lost []string // what is wrong with those that do not answer or cannot go on, each with its name
}

// Silent is an instance that is watched, and of which nothing comes: not even that it cannot be read.
type Silent struct {
	Name string
	Seen time.Time // when it was last read, or found that it cannot be
}

// lostTold is for how long it is reported that something was lost.
const lostTold = 10 * time.Minute

// OwnFindings are what is wrong with Risso itself.
func OwnFindings(o Own, now time.Time) (list []fleet.Finding) {
	dir := oneline.Of(o.Dir)
	disk := fleet.Finding{ID: "observer.disk", Chart: "disk_space", Trouble: fleet.Trouble{Remedy: "du -xh --max-depth=2 " + fleet.ShellWord(dir) + " | sort -h | tail -20"}}
	if o.Size > 0 {
		disk.Value = percent(1 - o.Avail/o.Size)
	}
	const few, fewer = 2 << 30, 256 << 20
	switch {
	case o.Full:
		disk.Severity, disk.What = fleet.SeverityCritical, "Risso cannot write: the disk of "+dir+" is full; what it reads is kept in memory for about half an hour, and then lost"
	case o.Size > 0 && o.Avail < few:
		disk.Severity, disk.What = fleet.SeverityWarning, fmt.Sprintf("the disk of Risso's data is nearly full: %s of %s left in %s", digits.Bytes(o.Avail), digits.Bytes(o.Size), dir)
		if o.Avail < fewer {
			disk.Severity = fleet.SeverityCritical
		}
	}
	if disk.What != "" {
		disk.Value = max(disk.Value, 1)
		list = append(list, disk)
	}
	if o.State != "" {
		list = append(list, o.stateGone())
	}
	for _, s := range o.Silent {
		age := now.Sub(s.Seen)
		list = append(list, fleet.Finding{ID: "observer.silent", Subject: s.Name, Severity: fleet.SeverityCritical, Since: s.Seen, Chart: "cost_time", Value: age.Seconds(), Trouble: fleet.Trouble{
			What: fmt.Sprintf("Risso has no reading of %s since %s, and does not know how it is: its collector hangs, or Risso's machine is too busy", s.Name, s.Seen.Format(time.TimeOnly))}})
	}
	if n := o.LostEvents + o.LostMinutes; n > 0 && now.Sub(o.LostAt) < lostTold {
		list = append(list, fleet.Finding{ID: "observer.lost", Severity: fleet.SeverityCritical, Chart: "cost_time", Value: float64(n), Trouble: fleet.Trouble{
			What: fmt.Sprintf("Risso lost %s and %s of metrics since it was started, which could not be written", digits.Counted(int(o.LostEvents), "event"), digits.Counted(int(o.LostMinutes), "minute"))}})
	}
	return append(list, o.Controllers.findings()...)
}

// stateGone is that the state is in a file that nobody else can open any more.
func (o Own) stateGone() fleet.Finding {
	f := fleet.Finding{ID: "observer.state", Severity: fleet.SeverityCritical, Chart: "cost_time", Value: 1}
	f.What = oneline.Of(o.State) + " was removed or replaced while Risso runs: groups, users and all else that it writes there is lost when it ends"
	if o.Rescued == "" {
		f.What += "; a copy could not be written: make room for one in " + oneline.Of(o.Dir) + ", and leave risso serve running until there is one"
		return f
	}
	path := fleet.ShellWord(o.State)
	f.What += "; a copy is written to " + oneline.Of(o.Rescued) + " every 10 seconds: end risso serve, put that in its place, and start it again"
	f.Remedy = "rm -f " + path + "-wal " + path + "-shm && mv " + fleet.ShellWord(o.Rescued) + " " + path
	return f
}

// findings are what is wrong with controllers.
func (c Controllers) findings() []fleet.Finding {
	f := fleet.Finding{ID: "observer.controller", Severity: fleet.SeverityWarning, Chart: "cost_time", Value: float64(len(c.Lost))}
	var lost []string
	for _, t := range c.Lost {
		lost = append(lost, oneline.Of(t))
	}
	switch words := strings.Join(lost, "; "); {
	case c.All == 0 || c.Lead != "" && len(lost) == 0:
		return nil
	case c.Lead == "":
		f.Severity, f.Value = fleet.SeverityCritical, max(f.Value, 1)
		f.What = fmt.Sprintf("none of %s leads: nothing is failed over, no job runs, and nothing that they share can be changed", digits.Counted(c.All, "controller"))
		if words != "" {
			f.What += ": " + words
		}
	default:
		f.What = fmt.Sprintf("of %s, %s lost: %s", digits.Counted(c.All, "controller"), digits.Plural(len(lost), "is", "are"), words)
	}
	return []fleet.Finding{f}
}
