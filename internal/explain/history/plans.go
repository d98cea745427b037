package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

// What taking plans may cost a server: a number per minute, each with a time limit, and a pause after one
// that failed.
const (
	plansPerMinute = 5
	planTimeout    = 2 * time.Second
	planRetry      = 3600 // seconds
)

// planner remembers what went wrong.
type planner struct {
	failed map[sampleKey]int64 // when
}

// takePlans asks for the plans of classes that have a fresh sample: at most one each in sampleEvery seconds.
func (c *Collector) takePlans(ctx context.Context, at int64, samples map[sampleKey]read.StatementSample) error {
	if c.PlanID == nil {
		return nil
	}
	if c.plans.failed == nil || len(c.plans.failed) > maxOwn {
		c.plans.failed = map[sampleKey]int64{}
	}
	keys := make([]sampleKey, 0, len(samples))
	for k, s := range samples {
		if NeedsRunning(s.Text) {
			if c.explained.waits(k, at) {
				c.setStatus(func(st *Status) { st.PlanNote = cmp.Or(st.PlanNote, NotCaught) })
			}
			continue
		}
		if _, bad := c.plans.failed[k]; s.Cut || bad && at-c.plans.failed[k] < planRetry || sqltext.ReadsOnly([]byte(s.Text)) != nil {
			continue
		}
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return samples[keys[i]].Seconds > samples[keys[j]].Seconds })
	for i, k := range keys {
		if i >= plansPerMinute {
			delete(c.sampled, k) // its turn comes in the next minute
			continue
		}
		if err := c.takePlan(ctx, at, k, samples[k]); err != nil {
			return err
		}
	}
	return nil
}

// takePlan asks for one plan. That the server refuses is no error: the table may be gone, the account may not read it.
func (c *Collector) takePlan(ctx context.Context, at int64, k sampleKey, s read.StatementSample) error {
	c.names.note("EXPLAIN FORMAT=JSON " + s.Text)
	text, err := read.ExplainJSON(ctx, c.conn, s.Schema, s.Text, planTimeout)
	if err != nil {
		c.plans.failed[k] = at
		c.planNote(err)
		switch mysql.ClassOf(err) {
		case mysql.ClassDropped, mysql.ClassTimeout, mysql.ClassRefused:
			return fmt.Errorf("take a plan: %w", err)
		}
		return nil
	}
	id, err := c.PlanID(text)
	if err != nil {
		c.plans.failed[k] = at
		c.planNote(err)
		return nil
	}
	c.explained.took(k, at)
	return c.keepPlan(ctx, at, k, id, "explain", text, string(c.names.f.Append(nil, []byte(s.Text))))
}

// keepPlan stores a plan, and reports when it differs from the one before.
func (c *Collector) keepPlan(ctx context.Context, at int64, k sampleKey, id, origin, text, fingerprint string) error {
	if c.Redact {
		text = redactPlan(text)
	}
	flip, err := c.Store.AddPlan(ctx, events.Plan{Instance: c.instance.ID, Class: k.class, Schema: k.schema, ID: id, LastSeen: at, Origin: origin, Text: text})
	if err != nil || flip == nil {
		return err
	}
	c.flipped(at, k.class, *flip, fingerprint)
	return nil
}

// flipped reports that the plan of a class has changed.
func (c *Collector) flipped(at int64, class string, flip events.Flip, fingerprint string) {
	c.Event(fleet.Event{Time: time.Unix(at, 0), Instance: c.instance.ID, Kind: fleet.EventPlan, Severity: fleet.SeverityInfo, Subject: class, Old: flip.Old, New: flip.New,
		Text: "the plan of a class of statements changed: " + shorten(fingerprint)})
}

// planNote says in the status why a plan could not be taken; the server's words may quote the statement, so only their kind is given.
func (c *Collector) planNote(err error) {
	why := "a plan could not be read"
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassLogin:
		why = "the account may not EXPLAIN some statements: it needs SELECT on their tables"
	case mysql.ClassTimeout:
		why = "EXPLAIN took longer than " + planTimeout.String()
	}
	c.setStatus(func(s *Status) { s.PlanNote = why })
}

func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// redactPlan hides literals in the expressions of a plan in JSON. Names and figures stay. What is no JSON is hidden whole.
func redactPlan(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return `{"risso":"not stored: it is not JSON, so its literals cannot be found"}`
	}
	out, err := json.MarshalIndent(redactValue(v), "", "  ")
	if err != nil {
		return `{}`
	}
	return string(out)
}

func redactValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = redactValue(v[k])
		}
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
	case string:
		if _, err := strconv.ParseFloat(v, 64); err != nil && strings.ContainsAny(v, " '\"=<>()`") {
			return string(sqltext.Redact(nil, []byte(v)))
		}
	}
	return v
}
