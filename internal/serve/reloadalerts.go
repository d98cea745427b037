package serve

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/alert/tell"
	"github.com/rissodb/risso/internal/watch/own"
)

// rings lets what the file says of alerts be in force, and says what changed.
func (c *configWatch) rings(ctx context.Context, now config.Alerts, asked bool) (said []string) {
	if reflect.DeepEqual(now, c.ring) && !asked {
		return nil
	}
	receivers, err := openReceivers(now)
	if err != nil { // the file was checked
		c.tell("the receivers in the config file are not used, those of before stay: "+err.Error(), fleet.SeverityWarning)
		return nil
	}
	said = alertChanges(c.ring, now)
	for _, name := range c.ring.Policy.Receivers {
		if receivers[name] == nil {
			if waiting := c.desk.WaitingFor(ctx, name); waiting != "" {
				said = append(said, "receiver "+name+" is gone: "+waiting)
			}
		}
	}
	if len(said) > 0 {
		c.desk.Replace(now.Policy, receivers)
	}
	c.ring = now
	c.readRules(asked)
	return said
}

// alertChanges says how what rings differs, in words.
func alertChanges(was, is config.Alerts) (said []string) {
	words := func(list []alert.Threshold) (out []string) {
		for _, t := range list {
			out = append(out, t.Match.Words()+": "+t.Words())
		}
		return out
	}
	old, now := words(was.Policy.Thresholds), words(is.Policy.Thresholds)
	for _, t := range old {
		if !slices.Contains(now, t) {
			said = append(said, "threshold gone: "+t)
		}
	}
	for _, t := range now {
		if !slices.Contains(old, t) {
			said = append(said, "threshold new: "+t)
		}
	}
	if len(said) == 0 && !slices.Equal(old, now) {
		said = append(said, "the thresholds have another order")
	}
	configs := func(list []tell.Config) map[string]tell.Config {
		m := map[string]tell.Config{}
		for _, r := range list {
			m[r.Name] = r
		}
		return m
	}
	before, after := configs(was.Receivers), configs(is.Receivers)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch _, there := after[name]; {
		case !there:
			said = append(said, "receiver gone: "+name)
		case !reflect.DeepEqual(before[name], after[name]):
			said = append(said, "receiver changed: "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[name]; !there {
			said = append(said, "receiver new: "+name)
		}
	}
	p, q := was.Policy, is.Policy
	if !reflect.DeepEqual(p.Routes, q.Routes) {
		said = append(said, "the routes changed: "+digits.Counted(len(q.Routes), "route"))
	}
	if !reflect.DeepEqual(p.Maintenance, q.Maintenance) {
		said = append(said, "the maintenance windows changed: "+digits.Counted(len(q.Maintenance), "window"))
	}
	if p.Repeat != q.Repeat || p.Page != q.Page {
		said = append(said, "repeat or page changed")
	}
	if !slices.Equal(was.Rules, is.Rules) {
		said = append(said, "the rule files are others: "+strings.Join(is.Rules, ", "))
	}
	return said
}

// rulesMarks tells one state of the rule files from another.
func rulesMarks(patterns []string) map[string]fileMark {
	marks := map[string]fileMark{}
	files, _ := own.Find(patterns) // one that is missing is seen by Replace
	for _, f := range files {
		if m, ok := markOf(f); ok {
			marks[f] = m
		}
	}
	return marks
}

// lookAtRules reads the rule files if they changed, and were the same twice since.
func (c *configWatch) lookAtRules() {
	if len(c.ring.Rules) == 0 {
		return
	}
	now := rulesMarks(c.ring.Rules)
	if maps.Equal(now, c.rulesSeen) && !maps.Equal(now, c.rulesRead) {
		c.readRules(false)
	}
	c.rulesSeen = now
}

// readRules reads the rule files. With a mistake in them the rules of before stay in force.
func (c *configWatch) readRules(asked bool) {
	c.rulesRead = rulesMarks(c.ring.Rules)
	changed, err := c.rules.Replace(c.ring.Rules)
	switch {
	case err != nil:
		c.tell("the rule files were not used, the previous rules stay in force: "+fault.Line(err.Error(), ""), fleet.SeverityWarning)
	case changed:
		c.tell(fmt.Sprintf("rule files reread: %s", digits.Counted(c.rules.Count(), "rule")), fleet.SeverityInfo)
	case asked && len(c.ring.Rules) > 0:
		c.tell("rule files reread: nothing has changed", fleet.SeverityInfo)
	}
}
