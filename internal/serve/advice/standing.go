package advice

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// standing are findings of what a running risso serve watches all the time that are advice as well: what they are called there, and what they are about if
// that is not what they say.
var standing = map[string]struct{ id, object string }{
	"protect.never":    {"backup.stale", "backup"},
	"protect.stale":    {"backup.stale", "backup"},
	"protect.unproven": {"backup.stale", "proof"},
	"plan.slower":      {"query.regressed", ""},
	"disk.full":        {"disk.forecast", ""},
	"disk.trend":       {"disk.forecast", ""},
	"host.io_slow":     {"host.io_slow", ""},
}

// StandingChecks are what is looked for by those who watch: the backups, plans and disks of servers.
func StandingChecks() []advise.Check {
	return []advise.Check{
		{ID: "backup.stale", Title: "with --kept: backups that are too old, or that no drill has restored"},
		{ID: "query.regressed", Title: "with --kept: classes of statements that another plan made slower"},
		{ID: "disk.forecast", Title: "a file system of the data that is nearly full; with --kept also one that soon will be", Like: "node_exporter: predict_linear"},
		{ID: "host.io_slow", Title: "a disk of the data that takes long, at the moment"},
	}
}

// Checks are all that advice looks for, but what is wrong at the moment.
func Checks() []advise.Check {
	return slices.Concat(advise.Checks(), AccountChecks(), StandingChecks())
}

// Standing is a finding of what is watched all the time as advice; false if it is none.
func Standing(x fleet.Finding) (advise.Finding, bool) {
	as, ok := standing[x.ID]
	if !ok {
		return advise.Finding{}, false
	}
	a := OfFinding(x)
	if a.ID = as.id; as.object != "" {
		a.Object = as.object
	}
	return a, true
}

// OfFinding is a finding of who watches as advice. Its remedy is a statement if it begins as one does, else something to be run elsewhere.
func OfFinding(x fleet.Finding) advise.Finding {
	a := advise.Finding{ID: x.ID, Object: x.Subject, Severity: x.Severity, What: x.What, Why: x.Why, Since: x.Since, Sure: advise.Certain, Evidence: []string{}}
	verb, _, _ := strings.Cut(x.Remedy, " ")
	switch {
	case verb == "":
	case verb == "SELECT", verb == "SHOW":
		a.Advice = "look at it first: " + x.Remedy
	case !unicode.IsUpper(rune(verb[0])):
		a.Advice = "run " + x.Remedy
	default:
		a.Statement = x.Remedy
	}
	return a
}

// Disks are the file system, as its mount point, and the disks below it that hold a folder of this machine.
type Disks struct {
	Mount   string
	Devices []string
}

// DisksOf finds them; false if that is not known.
func DisksOf(h *host.Host, folder string) (Disks, bool) {
	s, err := h.Storage(0, folder)
	if err != nil || folder == "" {
		return Disks{}, false
	}
	return Disks{Mount: s.Mount, Devices: append([]string{s.Device}, s.On...)}, true
}

// Holds reports whether a finding about a machine is about these disks.
func (d Disks) Holds(x fleet.Finding) bool {
	switch x.ID {
	case "disk.full", "disk.trend":
		return x.Subject == d.Mount
	case "host.io_slow":
		device, _, _ := strings.Cut(x.Subject, " ")
		return slices.ContainsFunc(d.Devices, func(own string) bool { return own != "" && strings.HasPrefix(own, device) }) // of a partition the disk counts
	}
	return false
}

// watched are the findings that stand, as they hold now, as rows.
func (r *Room) watched(servers []config.Watched, now time.Time) (rows []state.AdviceRow, err error) {
	for _, w := range servers {
		d, ok := r.Board.Detail(w.Instance.ID)
		if !ok {
			continue
		}
		list := d.Findings
		if machine, ok := r.Board.Detail(d.Host); ok && d.Host != "" {
			list = append(slices.Clone(list), r.ofDisks(d.Facts["datadir"], machine.Findings)...)
		}
		for _, x := range list {
			a, ok := Standing(x)
			if !ok {
				continue
			}
			row := state.AdviceRow{Instance: w.Instance.ID, ID: a.ID, Object: a.Object, Severity: a.Severity, First: a.Since, Since: a.Since, Seen: now}
			if row.Body, err = json.Marshal(a); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// ofDisks are the findings about a machine that are about the disks of a folder.
func (r *Room) ofDisks(folder string, list []fleet.Finding) []fleet.Finding {
	list = slices.DeleteFunc(slices.Clone(list), func(x fleet.Finding) bool { _, ok := standing[x.ID]; return !ok })
	if len(list) == 0 { // nothing has to be found out
		return nil
	}
	h, err := host.New(host.Options{})
	if err != nil {
		return nil
	}
	defer h.Close()
	disks, ok := DisksOf(h, folder)
	return slices.DeleteFunc(list, func(x fleet.Finding) bool { return !ok || !disks.Holds(x) })
}
