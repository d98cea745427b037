package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fault"
)

// Setting is what somebody wants of a group, or of one of its members. What is nil stays as it is.
type Setting struct {
	Group     string
	Member    string
	Status    *group.Status
	Weight    *float64
	Rule      *group.Rule
	Center    *string
	Automatic *bool // risso serve fails it over by itself
	Active    *bool // risso serve looks after it
	By        string
}

// means is what a status is for, in words.
var means = map[group.Status]string{
	group.Secondary: "it answers reads, and may become the primary",
	group.Spare:     "it replicates, gets no reads, and is promoted only by name",
	group.Faulty:    "it gets nothing until somebody makes it SPARE, or has it rebuilt",
}

// rules is what they mean, in words.
var rules = map[group.Rule]string{
	group.Prefer:  "it follows before others",
	group.Neutral: "it follows as what it received says",
	group.Avoid:   "it follows only if no other member can",
	group.Never:   "it is not promoted, not even by name",
}

func centerWords(center string) string {
	if center == "" {
		return "no data center"
	}
	return "the data center " + center
}

// ofMember reports whether it is about a member.
func (s Setting) ofMember() bool {
	return s.Status != nil || s.Weight != nil || s.Rule != nil || s.Center != nil
}

// apply changes a group, and says how in words.
func (s Setting) apply(g *group.Group, now time.Time) (words []string, err error) {
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if s.ofMember() {
		i := g.Find(s.Member)
		if i < 0 {
			return nil, fault.New(fault.Failed, "risso group show "+g.Name, fmt.Errorf("%s: %w", s.Member, group.ErrNone))
		}
		if was := g.Members[i]; s.Status != nil && (was.Status != *s.Status || was.Status == group.Faulty && !was.ByHand) {
			if err := g.Set(s.Member, *s.Status, group.SaidSo, now); err != nil {
				return nil, err
			}
			if was.Status == *s.Status {
				say("%s stays %s: %s", was.Name, was.Status, means[*s.Status])
			} else {
				say("%s becomes %s instead of %s: %s", was.Name, *s.Status, was.Status, means[*s.Status])
			}
		}
		if was := g.Members[i].Weight; s.Weight != nil && was != *s.Weight {
			if err := g.SetWeight(s.Member, *s.Weight); err != nil {
				return nil, err
			}
			say("%s gets reads by the weight %g instead of %g", g.Members[i].Name, *s.Weight, was)
		}
		if was := g.Members[i].Rule; s.Rule != nil && was != *s.Rule {
			if err := g.SetRule(s.Member, *s.Rule); err != nil {
				return nil, err
			}
			say("%s has the rule %s instead of %s: %s", g.Members[i].Name, *s.Rule, was, rules[*s.Rule])
		}
		if was := g.Members[i].Center; s.Center != nil && was != *s.Center {
			if err := g.SetCenter(s.Member, *s.Center); err != nil {
				return nil, err
			}
			say("%s is in %s instead of %s", g.Members[i].Name, centerWords(*s.Center), centerWords(was))
		}
	}
	if s.Automatic != nil && g.Policy.Automatic != *s.Automatic {
		if g.Policy.Automatic = *s.Automatic; *s.Automatic {
			say("risso serve --failover auto fails %s over by itself when its primary is dead", g.Name)
		} else {
			say("%s is failed over by hand only: when its primary is dead, it is told", g.Name)
		}
	}
	if s.Active != nil && g.Active != *s.Active {
		if g.Active = *s.Active; *s.Active {
			say("risso serve looks after %s", g.Name)
		} else {
			say("risso serve leaves %s alone: its clients stay with the primary that it has, whatever becomes of that, and nothing is changed", g.Name)
		}
	}
	if len(words) == 0 {
		say("nothing changes: it is so already")
		return words, nil
	}
	say("nothing is changed on the servers")
	return words, nil
}

// Set changes a group, or one of its members, as it is kept; nothing is changed on the servers.
func (h *Hand) Set(ctx context.Context, s Setting, dryRun bool) (Changed, error) {
	out := Changed{Group: s.Group, DryRun: dryRun}
	change := func(g *group.Group) (err error) {
		out.Plan, err = s.apply(g, time.Now().UTC())
		return err
	}
	r := h.room(s.By)
	if dryRun {
		g, err := r.Group(ctx, s.Group)
		if err != nil {
			return out, err
		}
		return out, change(g)
	}
	_, err := r.Change(ctx, s.Group, change)
	return out, err
}
