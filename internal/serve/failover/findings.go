package failover

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// find tells what is wrong with the group: of its primary, by the address of that.
func (w *watcher) find() {
	i := w.g.Primary()
	if w.d.Found == nil || i < 0 {
		return
	}
	w.d.Found(w.g.Members[i].Address, w.g.Name, findings(w.g, w.belief, w.state, w.care()))
}

// findings are what is wrong with a group; nothing of one that nobody is to look after. It is pure.
func findings(g *group.Group, b failover.Belief, s standing, care carry.Care) (list []fleet.Finding) {
	auto, opens := care == carry.Tends, care >= carry.Opens
	if !g.Active {
		return nil
	}
	add := func(id, subject string, severity fleet.Severity, what, why, remedy string) {
		list = append(list, fleet.Finding{ID: id, Subject: subject, Severity: severity, Trouble: fleet.Trouble{What: what, Why: why, Remedy: remedy}})
	}
	if b.State == failover.Dead && !auto {
		why, remedy := byHand(g, s.seen)
		add("failover.manual", g.Name, fleet.SeverityCritical, "the primary of "+g.Name+" is dead, and nobody fails over", "risso serve was not asked to fail "+g.Name+" over"+why, remedy)
	}
	if b.State == failover.Dead && auto && s.refused != nil {
		remedy := cmp.Or(fleet.RemedyOf(s.refused), "risso failover --group "+g.Name+" --dry-run")
		add("failover.manual", g.Name, fleet.SeverityCritical, "the primary of "+g.Name+" is dead, and nobody is promoted by itself", s.refused.Error(), remedy)
	} else if b.State == failover.Dead && auto && s.awaits != "" {
		add("failover.manual", g.Name, fleet.SeverityCritical, "the primary of "+g.Name+" is dead, and is not failed over yet", s.awaits, "risso failover --group "+g.Name)
	} else if b.State == failover.Dead && auto && s.left != nil {
		remedy := cmp.Or(fleet.RemedyOf(s.left), "risso failover --group "+g.Name)
		add("failover.manual", g.Name, fleet.SeverityCritical, "the primary of "+g.Name+" is dead, and is not failed over by itself now", s.left.Error(), remedy)
	}
	if b.State == failover.Unreachable && b.Alone {
		why, remedy := byHand(g, s.seen)
		add("failover.manual", g.Name, fleet.SeverityCritical, "the primary of "+g.Name+" does not answer, and is not failed over by itself", b.Words+why, remedy)
	}
	if b.State == failover.Unreachable && b.Elsewhere {
		add("failover.manual", g.Name, fleet.SeverityCritical, "the primary of "+g.Name+" lives, is cut off from its replicas, and is not failed over by itself", b.Words,
			"mend the network; risso failover --group "+g.Name+" fails it over all the same")
	}
	if f := s.seen; f != nil && f.Rival != "" {
		add("failover.rival", f.Rival, fleet.SeverityCritical, f.Rival+" takes writes in "+g.Name+", and is not the primary by what Risso knows",
			"somebody made it the primary, or is about to, without Risso, or the state of Risso is older than that; Risso changes nothing meanwhile",
			f.RivalRemedy())
	}
	if f := s.seen; f != nil && f.Rival == "" && f.Closed != nil && b.State == failover.Alive && !(opens && f.Closed.Opens) {
		add("failover.closed", f.Old, fleet.SeverityCritical, f.Closed.What, f.Closed.Why+"; Risso leaves it so", f.Closed.Remedy)
	}
	if f := s.seen; f != nil && f.Alive && f.Choice.Winner == "" {
		add("failover.unready", g.Name, fleet.SeverityWarning, "nobody could follow the primary of "+g.Name+", if it died now", reasons(f.Choice), "risso group health "+g.Name)
	} else if f != nil && f.Alive && f.Choice.Deaf != nil {
		add("failover.unready", g.Name, fleet.SeverityWarning, "whoever followed the primary of "+g.Name+", if it died now, would lack what it wrote last", f.Choice.Deaf.Why, f.Choice.Deaf.Remedy)
	} else if f != nil && f.Alive && auto && f.Choice.Few != nil {
		add("failover.unready", g.Name, fleet.SeverityWarning, "nobody would be promoted by itself, if the primary of "+g.Name+" died now", f.Choice.Few.Why, f.Choice.Few.Remedy)
	} else if what, why := s.drains.long(); f != nil && f.Alive && what != "" {
		add("failover.unready", g.Name, fleet.SeverityWarning, "a failover of "+g.Name+" would wait "+what, why, "risso group health "+g.Name)
	}
	if f := s.seen; f != nil && len(f.Commits) > 0 {
		l, severity := f.Commits[0], fleet.SeverityWarning
		if l.Blocks {
			severity = fleet.SeverityCritical
		}
		add("failover.semisync", f.Old, severity, l.What, l.Why, l.Remedy)
	}
	if f := s.seen; f != nil && f.Alive && f.Beside != nil && auto && s.sole {
		add("failover.controller", g.Name, fleet.SeverityInfo, f.Beside.What, f.Beside.Why, f.Beside.Remedy)
	}
	for _, m := range g.Members {
		if m.Status != group.Faulty {
			continue
		}
		remedy := "risso group set-status " + g.Name + " " + fleet.ShellWord(m.Name) + " SPARE"
		if m.Errant != "" {
			remedy = carry.Shows(g, m.Name) + " shows what they changed"
			if m.Replaced {
				remedy += ", and the command that applies them"
			}
			remedy += "; then risso group rebuild " + g.Name + " " + fleet.ShellWord(m.Name)
		}
		if strings.Contains(m.Fault, carry.Rebuilds(g.Name, m.Name)) {
			remedy = carry.Rebuilds(g.Name, m.Name)
		}
		if m.Unlogged {
			remedy = "risso diff and risso checksum show which rows only it has; then risso group rebuild " + g.Name + " " + fleet.ShellWord(m.Name)
		}
		why := m.Fault
		if m.ByHand {
			why += "; it stays so until somebody says otherwise"
		}
		if words := m.Rebuild.Words(time.Now()); words != "" {
			why += "; " + words
		}
		add("failover.member", m.Name, fleet.SeverityWarning, fmt.Sprintf("%s is FAULTY in %s, and gets nothing", m.Name, g.Name), why, remedy)
	}
	return list
}

// byHand is how a person fails a group over, and what is to be known before.
func byHand(g *group.Group, f *carry.Forecast) (why, remedy string) {
	remedy = "risso failover --group " + g.Name
	if f == nil || f.Alive {
		return "", remedy
	}
	if f.Choice.Count > 0 {
		why = "; " + digits.Counted(int(f.Choice.Count), "transaction") + " would be lost: " + f.Choice.Lost
		if g.Policy.Lossless {
			remedy += " --accept-loss"
		}
	}
	if r := f.Choice.Refusal("rival"); r != nil {
		return why + "; " + r.Why, r.Remedy
	}
	return why, remedy
}

// reasons are the first reasons against each candidate, in words.
func reasons(c failover.Choice) string {
	var words []string
	for _, r := range c.Refused {
		words = append(words, r.Why)
	}
	return strings.Join(words, "; ")
}
