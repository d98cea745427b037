package advice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// Query picks findings. What is left zero does not narrow.
type Query struct {
	Instances []string
	Group     string
	IDs       []string // patterns, such as index.*
	Severity  fleet.Severity
	Text      string // that what, object or statement has
	State     string // open (default), decided, gone, all
	Limit     int    // 0: 500
}

// Answer is what is kept.
type Answer struct {
	Findings []Kept     `json:"findings"` // the worst first
	Left     int        `json:"left"`     // how many more fit than Limit
	Counts   Counts     `json:"counts"`   // of all that fit but for State
	Kinds    []Kind     `json:"kinds"`    // how many findings fit of each check, the worst first
	Servers  []Server   `json:"servers"`  // all that are watched, and how the last look went
	Silences []Decision `json:"silences"` // what is silenced by patterns
	Looking  *Looking   `json:"looking,omitempty"`
	Every    float64    `json:"every"` // seconds; 0: only when somebody asks
}

// Counts are how many findings there are, told once for all servers that have them.
type Counts struct {
	Critical int `json:"critical"` // that nobody decided about, as warning and info
	Warning  int `json:"warning"`
	Info     int `json:"info"`
	Decided  int `json:"decided"` // accepted, postponed or silenced
	Gone     int `json:"gone"`    // that a look no longer found
}

// Kind is one check with what it found.
type Kind struct {
	ID       string         `json:"id"`
	Title    string         `json:"title,omitempty"`
	Severity fleet.Severity `json:"severity"` // the worst
	Count    int            `json:"count"`
}

// Kept is a finding with what is known of it, told once for all servers that have it.
type Kept struct {
	advise.Finding           // Since: the earliest that is known of any of them
	State          string    `json:"state"` // open, accepted, postponed, silenced or gone
	Decision       *Decision `json:"decision,omitempty"`
	On             []Place   `json:"on"`
}

// Place is a server that has, or had, a finding.
type Place struct {
	Instance string    `json:"instance"` // its ID
	Name     string    `json:"name"`
	Since    time.Time `json:"since"` // since when it is so, or was first seen
	Seen     time.Time `json:"seen"`  // when it was last seen
	Ended    time.Time `json:"ended,omitzero"`
	Unsure   bool      `json:"unsure,omitempty"` // the last look could not tell whether it still holds: something could not be read
}

// Decision is what somebody decided.
type Decision = state.AdviceDecision

// Server is one that is watched.
type Server struct {
	Instance string    `json:"instance"` // its ID
	Name     string    `json:"name"`
	Group    string    `json:"group,omitempty"`
	Looked   time.Time `json:"looked,omitzero"` // when the last look ended that was whole
	Tried    time.Time `json:"tried,omitzero"`  // and the last that was tried
	Next     time.Time `json:"next,omitzero"`   // when it is looked at again; zero: when somebody asks
	Queued   bool      `json:"queued,omitempty"`
	Look
	Critical int `json:"critical"` // findings that nobody decided about
	Warning  int `json:"warning"`
	Info     int `json:"info"`
}

// Looking is the server that is being looked at.
type Looking struct {
	Instance string    `json:"instance"` // its ID
	Since    time.Time `json:"since"`
	Tables   int       `json:"tables"` // so far
}

// The states of Kept besides those of decisions.
const (
	stateOpen = "open"
	stateGone = "gone"
)

// bucket gathers what is in one state by one decision.
type bucket struct {
	state    string
	decision *Decision
	names    []string
	found    map[string][]advise.Finding
	places   map[key]map[string]Place
}

const defaultLimit = 500

// List returns what is kept.
func (r *Room) List(ctx context.Context, q Query) (Answer, error) {
	now := time.Now()
	a := Answer{Findings: []Kept{}, Kinds: []Kind{}, Servers: []Server{}, Silences: []Decision{}, Every: r.Config.Every.Seconds()}
	decisions, err := r.Facts.AdviceDecisions(ctx)
	if err != nil {
		return a, err
	}
	for _, d := range decisions {
		if d.Kind == state.AdviceSilenced {
			a.Silences = append(a.Silences, d)
		}
	}
	servers := r.chosen(q)
	if a.Servers, a.Looking, err = r.servers(ctx, servers, now); err != nil {
		return a, err
	}
	var ids []string
	by := map[string]int{}
	for i, w := range servers {
		ids = append(ids, w.Instance.ID)
		by[w.Instance.ID] = i
	}
	if len(ids) == 0 {
		return a, nil
	}
	rows, err := r.Facts.Advice(ctx, state.AdviceQuery{Instances: ids, Severity: q.Severity})
	if err != nil {
		return a, err
	}
	standing, err := r.watched(servers, now)
	if err != nil {
		return a, err
	}
	rows = append(rows, slices.DeleteFunc(standing, func(row state.AdviceRow) bool { return row.Severity < q.Severity })...)
	buckets := map[string]*bucket{}
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return a, context.Cause(ctx)
		}
		i := by[row.Instance]
		inst := servers[i].Instance
		f, fits, err := q.read(row)
		if err != nil {
			return a, err
		}
		if !fits {
			continue
		}
		b := bucketOf(buckets, decisions, row, inst, now)
		if b.state == stateOpen {
			a.Servers[i].count(row.Severity)
		}
		b.add(row, f, inst.Name, a.Servers[i].Looked)
	}
	a.fill(buckets, q)
	return a, nil
}

// count counts a finding of the server.
func (s *Server) count(severity fleet.Severity) {
	switch severity {
	case fleet.SeverityCritical:
		s.Critical++
	case fleet.SeverityWarning:
		s.Warning++
	default:
		s.Info++
	}
}

// chosen are the servers that are meant.
func (r *Room) chosen(q Query) []config.Watched {
	groups := map[string]string{} // as they are now: the config file may have been read again
	for _, i := range r.Board.Instances() {
		groups[i.ID] = i.Group
	}
	list := slices.Clone(r.Servers())
	for i := range list {
		list[i].Instance.Group = groups[list[i].Instance.ID]
	}
	return slices.DeleteFunc(list, func(w config.Watched) bool {
		return len(q.Instances) > 0 && !slices.Contains(q.Instances, w.Instance.ID) || q.Group != "" && !pattern.Stars(q.Group, w.Instance.Group)
	})
}

// servers says how the last looks went.
func (r *Room) servers(ctx context.Context, list []config.Watched, now time.Time) (out []Server, looking *Looking, err error) {
	looks, err := r.Facts.AdviceLooks(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy != "" {
		looking = &Looking{Instance: r.busy, Since: r.since, Tables: r.tables}
	}
	out = []Server{}
	for _, w := range list {
		s := Server{Instance: w.Instance.ID, Name: w.Instance.Name, Group: w.Instance.Group, Queued: slices.Contains(r.asked, w.Instance.ID)}
		if i := slices.IndexFunc(looks, func(l state.AdviceLook) bool { return l.Instance == s.Instance }); i >= 0 {
			s.Looked, s.Tried = looks[i].Looked, looks[i].Tried
			if err := json.Unmarshal(looks[i].Body, &s.Look); err != nil {
				return nil, nil, fmt.Errorf("the last look at %s: %w", s.Name, err)
			}
		}
		if r.Config.Every > 0 {
			s.Next = due(s.Instance, s.Looked.In(now.Location()), s.Tried, r.started, r.Config.Every, r.Config.At)
		}
		out = append(out, s)
	}
	return out, looking, nil
}

// read is the finding of a row, and whether it is asked for.
func (q Query) read(row state.AdviceRow) (f advise.Finding, fits bool, err error) {
	if len(q.IDs) > 0 && !slices.ContainsFunc(q.IDs, func(p string) bool { return pattern.Stars(p, row.ID) }) {
		return f, false, nil
	}
	if err := json.Unmarshal(row.Body, &f); err != nil {
		return f, false, fmt.Errorf("%s of %s on %s: %w", row.ID, row.Object, row.Instance, err)
	}
	text := strings.ToLower(q.Text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	f.Since = earlier(row.Since, row.First)
	return f, text == "" || has(f.Object) || has(f.What) || has(f.ID) || has(f.Statement), nil
}

// bucketOf is where a row belongs.
func bucketOf(buckets map[string]*bucket, decisions []Decision, row state.AdviceRow, i fleet.Instance, now time.Time) *bucket {
	name, of := stateOpen, (*Decision)(nil)
	if !row.Ended.IsZero() {
		name = stateGone
	} else if of = decided(decisions, i, row.ID, row.Object, row.Severity, now); of != nil {
		name = of.Kind
	}
	at := name
	if of != nil {
		at += fmt.Sprint(of.ID)
	}
	b := buckets[at]
	if b == nil {
		b = &bucket{state: name, decision: of, found: map[string][]advise.Finding{}, places: map[key]map[string]Place{}}
		buckets[at] = b
	}
	return b
}

// add takes what was found on a server, which was last looked at at a moment.
func (b *bucket) add(row state.AdviceRow, f advise.Finding, name string, looked time.Time) {
	if b.found[row.Instance] == nil {
		b.names = append(b.names, row.Instance)
	}
	b.found[row.Instance] = append(b.found[row.Instance], f)
	k := key{row.ID, row.Object}
	if b.places[k] == nil {
		b.places[k] = map[string]Place{}
	}
	b.places[k][row.Instance] = Place{Instance: row.Instance, Name: name, Since: f.Since, Seen: row.Seen, Ended: row.Ended, Unsure: row.Ended.IsZero() && row.Seen.Before(looked)}
}

// kept is what is in a bucket, told once for all servers.
func (b *bucket) kept() (list []Kept) {
	found := make([][]advise.Finding, len(b.names))
	for i, n := range b.names {
		found[i] = b.found[n]
	}
	for _, f := range advise.Several(b.names, found) {
		k := Kept{Finding: f, State: b.state, Decision: b.decision}
		k.Servers = nil
		for _, id := range f.Servers {
			p := b.places[key{f.ID, f.Object}][id]
			k.On, k.Servers = append(k.On, p), append(k.Servers, p.Name)
			k.Since = earlier(k.Since, p.Since)
		}
		list = append(list, k)
	}
	return list
}

// fill counts and ranks what is in the buckets.
func (a *Answer) fill(buckets map[string]*bucket, q Query) {
	kinds := map[string]*Kind{}
	titles := map[string]string{}
	for _, c := range Checks() {
		titles[c.ID] = c.Title
	}
	var list []Kept
	for _, at := range slices.Sorted(maps.Keys(buckets)) {
		b := buckets[at]
		for _, k := range b.kept() {
			shown := true
			switch {
			case b.state == stateGone:
				a.Counts.Gone++
				shown = q.State == stateGone || q.State == "all"
			case b.state != stateOpen:
				a.Counts.Decided++
				shown = q.State == "decided" || q.State == "all"
			default:
				a.Counts.add(k.Severity)
				shown = q.State != "decided" && q.State != stateGone
			}
			if !shown {
				continue
			}
			list = append(list, k)
			kind := kinds[k.ID]
			if kind == nil {
				kind = &Kind{ID: k.ID, Title: titles[k.ID]}
				kinds[k.ID] = kind
			}
			kind.Count++
			kind.Severity = max(kind.Severity, k.Severity)
		}
	}
	slices.SortStableFunc(list, func(x, y Kept) int { return advise.Compare(x.Finding, y.Finding) })
	limit := cmp.Or(q.Limit, defaultLimit)
	if len(list) > limit {
		a.Left = len(list) - limit
		list = list[:limit]
	}
	a.Findings = append(a.Findings, list...)
	for _, k := range kinds {
		a.Kinds = append(a.Kinds, *k)
	}
	slices.SortFunc(a.Kinds, func(x, y Kind) int { return cmp.Or(cmp.Compare(y.Severity, x.Severity), strings.Compare(x.ID, y.ID)) })
}

// add counts a finding that nobody decided about.
func (c *Counts) add(s fleet.Severity) {
	switch s {
	case fleet.SeverityCritical:
		c.Critical++
	case fleet.SeverityWarning:
		c.Warning++
	default:
		c.Info++
	}
}

// ErrNothing says that a decision is about nothing that is kept.
var ErrNothing = errors.New("no such finding holds")

// About is what a decision is about: a finding by its ID and object, on some servers or on all that have it.
type About struct {
	ID, Object string
	Instances  []string // none: all servers
}

// Decide accepts or postpones a finding that holds; ErrNothing: there is none. It returns the servers that have it, and what was seen.
func (r *Room) Decide(ctx context.Context, about About, d Decision) (servers []string, what string, err error) {
	rows, err := r.Facts.Advice(ctx, state.AdviceQuery{Instances: about.Instances, Open: true})
	if err != nil {
		return nil, "", err
	}
	standing, err := r.watched(r.chosen(Query{Instances: about.Instances}), time.Now())
	if err != nil {
		return nil, "", err
	}
	d.Finding, d.Object = about.ID, about.Object
	for _, row := range append(rows, standing...) {
		w, ok := r.server(row.Instance)
		if !ok || row.ID != about.ID || row.Object != about.Object {
			continue
		}
		servers = append(servers, w.Instance.Name)
		d.Severity = max(d.Severity, row.Severity)
		what = noted(row).What
	}
	if len(servers) == 0 {
		return nil, "", ErrNothing
	}
	list := []Decision{d}
	if len(about.Instances) > 0 {
		list = nil
		for _, id := range about.Instances {
			d.Server = id
			list = append(list, d)
		}
	}
	err = r.Facts.DecideAdvice(ctx, list...)
	r.poke()
	return servers, what, err
}

// Silence lets nobody be told of what fits patterns of d.
func (r *Room) Silence(ctx context.Context, d Decision) error {
	d.Kind = state.AdviceSilenced
	err := r.Facts.DecideAdvice(ctx, d)
	r.poke()
	return err
}

// Undo takes back what was decided: by its number, or about a finding; ErrNothing: there is no such decision. It says what was taken back.
func (r *Room) Undo(ctx context.Context, number int64, about About) ([]Decision, error) {
	list, err := r.Facts.AdviceDecisions(ctx)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	var undone []Decision
	for _, d := range list {
		same := d.ID == number
		if number == 0 {
			same = d.Finding == about.ID && d.Object == about.Object && (len(about.Instances) == 0 || slices.Contains(about.Instances, d.Server))
		}
		if same {
			numbers, undone = append(numbers, d.ID), append(undone, d)
		}
	}
	if len(numbers) == 0 {
		return nil, ErrNothing
	}
	err = r.Facts.UndoAdvice(ctx, numbers...)
	r.poke()
	return undone, err
}

// poke lets what was decided be among what is wrong now.
func (r *Room) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
