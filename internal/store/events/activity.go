package events

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Activity is how often the statements of one class were found running in one minute, doing one thing, by one user. It is
// sampled: seconds are how often they were found times the seconds between two readings.
type Activity struct {
	Class   string // class ID
	Wait    string // the class of what they waited for, as read.StatementWaits names it
	Schema  string // default schema
	User    string
	Host    string
	Blocker string // class ID of what the session ran, or ran last, that held what they waited for; empty: none, or not known
	Calls   int64  // how often they were found
	Seconds float64
}

// ActivityMinute is what was found on one instance in one minute.
type ActivityMinute struct {
	Instance string
	Time     int64 // unix seconds at which the minute began
	Rows     []Activity
}

// Blocker is a class whose statements, or rather the transactions they were in, kept others waiting.
type Blocker struct {
	ID          string  `json:"id"` // empty: it is not known what the blocking session ran
	Fingerprint string  `json:"fingerprint"`
	Wait        string  `json:"wait"`
	Calls       int64   `json:"calls"`
	Seconds     float64 `json:"seconds"`
}

// blockable are the waits that always have a blocker: if it is unknown, that is reported. For other waits, such as for user locks, a
// blocker is reported if it is known.
var blockable = map[string]bool{"row_lock": true, "metadata_lock": true}

const activityColumns = "instance, time, class, wait, db, account, host, blocker, calls, seconds"

func checkActivity(minutes []ActivityMinute) ([]ActivityMinute, error) {
	list := make([]ActivityMinute, 0, len(minutes))
	for _, m := range minutes {
		if m.Instance == "" || m.Time <= 0 || m.Time%minute != 0 {
			return nil, badQuestion("a minute needs an instance and must begin at a whole minute, not %q at %d", m.Instance, m.Time)
		}
		if len(m.Rows) > 0 {
			list = append(list, m)
		}
	}
	return list, nil
}

// freshActivity leaves out the minutes that are there, by the answer of there.
func freshActivity(list []ActivityMinute, there func(r Range, found func(instance string, time int64)) error) ([]ActivityMinute, error) {
	r := Range{list[0].Time, list[0].Time + 1}
	for _, m := range list {
		r.From, r.To = min(r.From, m.Time), max(r.To, m.Time+1)
	}
	type id struct {
		instance string
		time     int64
	}
	seen := map[id]bool{}
	if err := there(r, func(instance string, time int64) { seen[id{instance, time}] = true }); err != nil {
		return nil, err
	}
	out := make([]ActivityMinute, 0, len(list))
	for _, m := range list {
		if i := (id{m.Instance, m.Time}); !seen[i] {
			seen[i] = true
			out = append(out, m)
		}
	}
	return out, nil
}

// eachActivity hands the values of each row over, in the order of activityColumns.
func eachActivity(list []ActivityMinute, add func(...any) error) error {
	for _, m := range list {
		for _, r := range m.Rows {
			k, err := key(r.Class)
			if err != nil {
				return err
			}
			blocker := int64(0)
			if r.Blocker != "" {
				if blocker, err = key(r.Blocker); err != nil {
					return err
				}
			}
			if err := add(m.Instance, m.Time, k, r.Wait, r.Schema, r.User, r.Host, blocker, r.Calls, r.Seconds); err != nil {
				return err
			}
		}
	}
	return nil
}

// activity reads what the class was found doing, by whom, and who blocked it.
func (a asker) activity(ctx context.Context, q ClassQuestion, f filter, out *ClassAnswer) error {
	type place struct {
		class int64
		wait  string
	}
	waits, users, hosts, blockers := map[string]Part{}, map[string]Part{}, map[string]Part{}, map[place]Part{}
	err := a.b.query(ctx, fmt.Sprintf("SELECT wait, account, host, blocker, toInt64(sum(calls)), toFloat64(sum(seconds)) AS load FROM risso_activity WHERE %s GROUP BY wait, account, host, blocker ORDER BY load DESC LIMIT %d", f.where(q.Range), maxCompared), nil,
		func(scan func(...any) error) error {
			var wait, user, host string
			var p place
			var v Part
			if err := scan(&wait, &user, &host, &p.class, &v.Calls, &v.Seconds); err != nil {
				return err
			}
			sumPart(waits, wait, wait, v)
			sumPart(users, user, user, v)
			sumPart(hosts, host, host, v)
			if p.wait = wait; blockable[wait] || p.class != 0 {
				sumPart(blockers, p, wait, v)
			}
			out.Activity.Calls += v.Calls
			out.Activity.Seconds += v.Seconds
			return nil
		})
	if err != nil {
		return fmt.Errorf("read what the class waited for: %w", err)
	}
	out.Waits, out.ByHost = heaviestParts(waits), heaviestParts(hosts)
	if out.ByUserFrom == "" && len(users) > 0 {
		out.ByUser, out.ByUserFrom = heaviestParts(users), "activity"
	}
	if len(blockers) == 0 {
		return nil
	}
	keys := make([]int64, 0, len(blockers))
	for p := range blockers {
		keys = append(keys, p.class)
	}
	names, err := a.names(ctx, keys, nil)
	for p, v := range blockers {
		n := names[p.class]
		out.BlockedBy = append(out.BlockedBy, Blocker{ID: n.ID, Fingerprint: n.Fingerprint, Wait: p.wait, Calls: v.Calls, Seconds: v.Seconds})
	}
	slices.SortFunc(out.BlockedBy, func(a, b Blocker) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Wait, b.Wait))
	})
	out.BlockedBy = out.BlockedBy[:min(len(out.BlockedBy), maxParts)]
	return err
}

func sumPart[K comparable](m map[K]Part, k K, value string, v Part) {
	old := m[k]
	m[k] = Part{Value: value, Calls: old.Calls + v.Calls, Seconds: old.Seconds + v.Seconds}
}

// heaviestParts orders parts by what they cost.
func heaviestParts(m map[string]Part) []Part {
	list := slices.SortedFunc(maps.Values(m), func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Value, b.Value))
	})
	return list[:min(len(list), maxParts)]
}

// heaviestWaits sets for each class of a list what it was found doing longest.
func (a asker) heaviestWaits(ctx context.Context, q TopQuestion, out *TopAnswer, keys []int64) error {
	where, args := inSchemas(q.Schemas)
	f := filter{instances: q.Instances, classes: keys}
	best := map[int64]*Part{}
	err := a.b.query(ctx, "SELECT class, wait, toInt64(sum(calls)), toFloat64(sum(seconds)) AS load FROM (SELECT * FROM risso_activity WHERE "+f.where(q.Range)+") AS r"+where+" GROUP BY class, wait ORDER BY load DESC, wait", args, func(scan func(...any) error) error {
		var k int64
		var p Part
		if err := scan(&k, &p.Value, &p.Calls, &p.Seconds); err != nil {
			return err
		}
		if best[k] == nil {
			best[k] = &p
		}
		return nil
	})
	for i, k := range keys {
		out.Classes[i].Wait = best[k]
	}
	return wrap("read what the classes waited for", err)
}
