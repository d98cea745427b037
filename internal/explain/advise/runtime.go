package advise

import (
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
)

// RuntimeSetting is a global variable that somebody set while the server ran.
type RuntimeSetting struct {
	Name, Value string
	Persisted   string // what SET PERSIST wrote down for the next start; "" with Kept false: nothing
	Kept        bool   // SET PERSIST wrote something down
	By, At      string // who set it, and when; "" if the server does not say
}

const driftID = "config.drift"

// undoneByRestart finds settings that the next start takes back: they were set while the server ran, and are not written down.
func undoneByRestart(s *Server) (list []Finding) {
	for _, r := range s.Runtime {
		if r.Kept && differ.SameValue(r.Name, r.Persisted, r.Value) {
			continue
		}
		why, rank := differ.Meaning(r.Name)
		f := Finding{Object: r.Name, Severity: fleet.SeverityInfo, What: r.Name + " was set to " + shown(r.Value) + " while the server ran, and is not written down for the next start", Why: "a restart, or a crash, takes it back without a word",
			Evidence: []string{r.Name + " = " + shown(r.Value)}, Cost: Cost{Risk: "another setting after a restart"}}
		if differ.Known(r.Name) {
			f.Why += "; " + why
			if rank == differ.RankData {
				f.Severity = fleet.SeverityWarning
			}
		}
		if r.By != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("set by %s at %s", r.By, r.At))
		}
		if r.Kept {
			f.Evidence = append(f.Evidence, "SET PERSIST wrote down "+shown(r.Persisted))
		} else {
			f.Sure, f.Doubt = Likely, "the option file may have the same value by now: the server does not look at it before it is started; or the change was meant for a while"
		}
		if s.KeepsSettings() {
			f.Statement, f.Undo = s.SetForStart(r.Name, r.Value), s.ForgetForStart(r.Name)
			if r.Kept {
				f.Undo = s.SetForStart(r.Name, r.Persisted)
			}
			f.Effect = "none on the server as it runs; the next start keeps the value"
		} else {
			f.Advice = "if it is to stay, set " + optionLine(r.Name, r.Value)
		}
		list = append(list, f)
	}
	return list
}

// withoutContradiction leaves out that a setting is not written down for the next start where another finding says what it should be instead.
func withoutContradiction(list []Finding) []Finding {
	better := map[string]bool{}
	for _, f := range list {
		better[f.Object] = better[f.Object] || f.ID != driftID && f.Statement != ""
	}
	return slices.DeleteFunc(list, func(f Finding) bool { return f.ID == driftID && better[f.Object] })
}

// Beside adds what Together found on a server to what was found on it alone, without statements that contradict each other.
func Beside(own, together []Finding) []Finding {
	for _, t := range together {
		if i := slices.IndexFunc(own, func(f Finding) bool { return f.ID == t.ID && f.Object == t.Object }); i >= 0 {
			t.Evidence = append(t.Evidence, own[i].What)
			t.Severity = max(t.Severity, own[i].Severity)
			own = slices.Delete(own, i, i+1)
		}
		if i := slices.IndexFunc(own, func(f Finding) bool { return f.Object == t.Object && f.Statement != "" }); i >= 0 && t.Statement != "" && t.Statement != own[i].Statement {
			t.Statement, t.Undo, t.Effect, t.Advice = "", "", "", own[i].ID+" says what it should be"
		}
		own = append(own, t)
	}
	return own
}
