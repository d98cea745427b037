package events

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/rissodb/risso/internal/fleet"
)

// Limits of the lists in one answer.
const (
	maxSamples  = 50
	maxPlans    = 50
	maxFlips    = 500
	maxParts    = 100
	maxDigests  = 1000
	maxCompared = 20000 // classes of one range
)

// Class returns the history of one class.
func (a asker) Class(ctx context.Context, q ClassQuestion) (*ClassAnswer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Points < 1 || q.Points > MaxPoints {
		return nil, badQuestion("points must be 1 to %d", MaxPoints)
	}
	if err := checkName(q.ID); err != nil {
		return nil, err
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	k, err := a.resolve(ctx, q.ID)
	if err != nil {
		return nil, err
	}
	out := &ClassAnswer{Step: a.step(q.Range, q.Points)}
	f := filter{instances: q.Instances, classes: []int64{k}}
	names, err := a.names(ctx, f.classes, q.Instances)
	if err != nil {
		return nil, err
	}
	out.Class = names[k]
	for _, read := range []func(context.Context, ClassQuestion, filter, *ClassAnswer) error{a.history, a.parts, a.sightings, a.activity, a.samples, a.plans} {
		if err := read(ctx, q, f, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// history reads the points and the total.
func (a asker) history(ctx context.Context, q ClassQuestion, f filter, out *ClassAnswer) error {
	begin := q.From - q.From%out.Step
	list := a.pieces(q.Range, out.Step)
	slot := fmt.Sprintf("intDiv(time - %d, %d)", begin, out.Step)
	err := a.b.query(ctx, "SELECT "+slot+" AS slot, "+costSums+" FROM "+a.source(list, f)+" GROUP BY slot ORDER BY slot", nil, func(scan func(...any) error) error {
		var p Point
		if err := scan(append([]any{&p.Time}, costFields(&p.Cost)...)...); err != nil {
			return err
		}
		out.Total.Add(p.Cost)
		out.Points = append(out.Points, p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the history of the class: %w", err)
	}
	buckets, err := a.buckets(ctx, list, f, slot)
	if err != nil {
		return err
	}
	var all []Bucket
	for i := range out.Points {
		p := &out.Points[i]
		b := buckets[f.classes[0]][p.Time]
		all = append(all, b...)
		p.Latency = Quantiles(b)
		p.Time = begin + p.Time*out.Step
	}
	out.Latency = Quantiles(joinBuckets(all))
	return nil
}

// parts reads what the class cost by instance, schema and user.
func (a asker) parts(ctx context.Context, q ClassQuestion, f filter, out *ClassAnswer) error {
	by := [3]map[string]Part{{}, {}, {}}
	err := a.b.query(ctx, "SELECT instance, db, account, toInt64(sum(calls)), toFloat64(sum(seconds)) AS load FROM "+a.source(a.pieces(q.Range, sums), f)+
		fmt.Sprintf(" GROUP BY instance, db, account ORDER BY load DESC LIMIT %d", maxCompared), nil, func(scan func(...any) error) error {
		var names [3]string
		var v Part
		if err := scan(&names[0], &names[1], &names[2], &v.Calls, &v.Seconds); err != nil {
			return err
		}
		for i, n := range names {
			old := by[i][n]
			by[i][n] = Part{Value: n, Calls: old.Calls + v.Calls, Seconds: old.Seconds + v.Seconds}
		}
		return nil
	})
	for i, into := range []*[]Part{&out.ByInstance, &out.BySchema, &out.ByUser} {
		*into = heaviestParts(by[i])
	}
	out.ByUserFrom = "statements"
	if len(out.ByUser) == 0 || len(out.ByUser) == 1 && out.ByUser[0].Value == "" {
		out.ByUser, out.ByUserFrom = nil, ""
	}
	return wrap("read the class by instance, schema and user", err)
}

// instanceWhere is a condition on the instance, in addition to others.
func instanceWhere(instances []string) string {
	if len(instances) == 0 {
		return ""
	}
	return " AND instance IN (" + quoteList(instances) + ")"
}

// sightings reads where the class was seen, under which digest.
func (a asker) sightings(ctx context.Context, q ClassQuestion, f filter, out *ClassAnswer) error {
	err := a.b.query(ctx, fmt.Sprintf("SELECT instance, digest, toInt64(min(first_seen)), toInt64(max(last_seen)) AS last FROM risso_seen WHERE class = %d%s GROUP BY instance, digest ORDER BY last DESC, instance, digest LIMIT %d",
		f.classes[0], instanceWhere(q.Instances), maxDigests), nil, func(scan func(...any) error) error {
		var c Class
		if err := scan(&c.Instance, &c.Digest, &c.FirstSeen, &c.LastSeen); err != nil {
			return err
		}
		c.Digest = digestOf(c.Digest, q.ID)
		out.Digests = append(out.Digests, c)
		return nil
	})
	// Who looks at sessions sees a class without its digest: that is nothing more where the digest is known.
	known := map[string]bool{}
	for _, c := range out.Digests {
		known[c.Instance] = known[c.Instance] || c.Digest != ""
	}
	out.Digests = slices.DeleteFunc(out.Digests, func(c Class) bool { return c.Digest == "" && known[c.Instance] })
	if len(out.Digests) > 0 {
		out.Instance, out.Digest = out.Digests[0].Instance, out.Digests[0].Digest
	}
	return wrap("tell where the class was seen", err)
}

// samples reads the newest samples that are not newer than the range.
func (a asker) samples(ctx context.Context, q ClassQuestion, f filter, out *ClassAnswer) error {
	// Texts are long: only those that are given are read.
	where := fmt.Sprintf("class = %d AND time < %d%s", f.classes[0], q.To, instanceWhere(q.Instances))
	newest := fmt.Sprintf("SELECT instance, time FROM risso_samples WHERE %s GROUP BY instance, time ORDER BY time DESC, instance LIMIT %d", where, maxSamples)
	err := a.b.query(ctx, fmt.Sprintf("SELECT instance, time, max(text), max(seconds), max(db), max(account), max(host) FROM risso_samples WHERE %s AND (instance, time) IN (%s) GROUP BY instance, time ORDER BY time DESC, instance LIMIT %d",
		where, newest, maxSamples), nil, func(scan func(...any) error) error {
		var s Sample
		if err := scan(&s.Instance, &s.Time, &s.Text, &s.Seconds, &s.Schema, &s.User, &s.Host); err != nil {
			return err
		}
		out.Samples = append(out.Samples, s)
		return nil
	})
	if out.ByUserFrom == "" { // there is nothing else: the samples show a little
		if out.ByUser = usersOf(out.Samples); len(out.ByUser) > 0 {
			out.ByUserFrom = "samples"
		}
	}
	return wrap("read the samples", err)
}

// usersOf counts samples by who ran them, the most first.
func usersOf(samples []Sample) (out []Part) {
	for _, s := range samples {
		if s.User == "" {
			continue
		}
		i := slices.IndexFunc(out, func(p Part) bool { return p.Value == s.User })
		if i < 0 {
			i = len(out)
			out = append(out, Part{Value: s.User})
		}
		out[i].Calls++
		out[i].Seconds += s.Seconds
	}
	slices.SortStableFunc(out, func(a, b Part) int { return cmp.Compare(b.Calls, a.Calls) })
	return out
}

// plans reads all plans of the class and the flips in the range.
func (a asker) plans(ctx context.Context, q ClassQuestion, f filter, out *ClassAnswer) error {
	where := fmt.Sprintf("class = %d%s", f.classes[0], instanceWhere(q.Instances))
	newest := fmt.Sprintf("SELECT instance, db, plan FROM risso_plans WHERE %s GROUP BY instance, db, plan ORDER BY max(last_seen) DESC, instance, plan LIMIT %d", where, maxPlans)
	err := a.b.query(ctx, fmt.Sprintf(`SELECT instance, db, plan, toInt64(min(first_seen)), toInt64(max(last_seen)) AS last, max(origin), argMax(text, last_seen) FROM risso_plans
 WHERE %s AND (instance, db, plan) IN (%s) GROUP BY instance, db, plan ORDER BY last DESC, instance, plan LIMIT %d`, where, newest, maxPlans), nil, func(scan func(...any) error) error {
		var p Plan
		if err := scan(&p.Instance, &p.Schema, &p.ID, &p.FirstSeen, &p.LastSeen, &p.Origin, &p.Text); err != nil {
			return err
		}
		out.Plans = append(out.Plans, p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the plans: %w", err)
	}
	flips, err := a.flips(ctx, q.Range, f)
	out.Flips = flips[f.classes[0]]
	return err
}

// flips reads the changes of plan in a range, by class.
func (a asker) flips(ctx context.Context, r Range, f filter) (map[int64][]Flip, error) {
	out := map[int64][]Flip{}
	err := a.b.query(ctx, fmt.Sprintf("SELECT DISTINCT class, instance, db, time, old, new FROM risso_flips WHERE %s ORDER BY time, instance, class LIMIT %d", f.where(r), maxFlips), nil,
		func(scan func(...any) error) error {
			var k int64
			var p Flip
			if err := scan(&k, &p.Instance, &p.Schema, &p.Time, &p.Old, &p.New); err != nil {
				return err
			}
			out[k] = append(out[k], p)
			return nil
		})
	return out, wrap("read the changes of plan", err)
}

// Compare returns what changed between two ranges.
func (a asker) Compare(ctx context.Context, q CompareQuestion) (*CompareAnswer, error) {
	if err := q.A.check(); err != nil {
		return nil, err
	}
	if err := q.B.check(); err != nil {
		return nil, err
	}
	if q.Limit < 1 || q.Limit > MaxLimit || len(q.Schemas) > maxSchemas {
		return nil, badQuestion("limit must be 1 to %d, schemas at most %d", MaxLimit, maxSchemas)
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := new(CompareAnswer)
	classes := map[int64]*Change{}
	lengthA, lengthB := float64(q.A.To-q.A.From), float64(q.B.To-q.B.From)
	for _, side := range []struct {
		r     Range
		total *fleet.Cost
		cost  func(*Change) *fleet.Cost
	}{{q.A, &out.A, func(c *Change) *fleet.Cost { return &c.A }}, {q.B, &out.B, func(c *Change) *fleet.Cost { return &c.B }}} {
		n, err := a.side(ctx, side.r, q, func(k int64, c fleet.Cost) {
			side.total.Add(c)
			if classes[k] == nil {
				classes[k] = new(Change)
			}
			*side.cost(classes[k]) = c
		})
		if err != nil {
			return nil, err
		}
		out.Cut = out.Cut || n == maxCompared
	}
	out.Count, out.LoadA, out.LoadB = len(classes), out.A.Seconds/lengthA, out.B.Seconds/lengthB
	keys := make([]int64, 0, len(classes))
	sum := 0.0
	for k, c := range classes {
		change(c, lengthA, lengthB)
		sum += math.Abs(c.Delta)
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := math.Abs(classes[keys[i]].Delta), math.Abs(classes[keys[j]].Delta)
		return a > b || a == b && keys[i] < keys[j]
	})
	keys = keys[:min(len(keys), q.Limit)]
	if len(keys) == 0 {
		return out, nil
	}
	names, err := a.names(ctx, keys, q.Instances)
	if err != nil {
		return nil, err
	}
	// The flips from the beginning of the one range to the end of the other.
	flips, err := a.flips(ctx, Range{min(q.A.From, q.B.From), max(q.A.To, q.B.To)}, filter{instances: q.Instances, classes: keys})
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		c := classes[k]
		n := names[k]
		c.ID, c.Fingerprint, c.Verb, c.FirstSeen, c.Flips = n.ID, n.Fingerprint, n.Verb, n.FirstSeen, flips[k]
		if sum > 0 {
			c.Share = c.Delta / sum
		}
		out.Changes = append(out.Changes, *c)
	}
	return out, nil
}

// side sums up one range by class, the costliest first.
func (a asker) side(ctx context.Context, r Range, q CompareQuestion, each func(int64, fleet.Cost)) (n int, err error) {
	list := a.pieces(r, sums)
	where, args := inSchemas(q.Schemas)
	err = a.b.query(ctx, fmt.Sprintf("SELECT class, %s FROM %s%s GROUP BY class HAVING sum(calls) > 0 ORDER BY sum(seconds) DESC LIMIT %d", costSums, a.source(list, filter{instances: q.Instances}), where, maxCompared), args,
		func(scan func(...any) error) error {
			var c fleet.Cost
			var k int64
			if err := scan(append([]any{&k}, costFields(&c)...)...); err != nil {
				return err
			}
			each(k, c)
			n++
			return nil
		})
	return n, wrap("sum up a range", err)
}

// Classes lists what is known of the classes of an instance.
func (a asker) Classes(ctx context.Context, instance string, limit int) ([]Class, error) {
	if limit < 1 || limit > 100000 {
		return nil, badQuestion("limit must be 1 to 100000")
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []Class
	err = a.b.query(ctx, fmt.Sprintf(`SELECT s.instance, s.digest, s.first_seen, s.last_seen, c.id, c.pt_id, c.fingerprint, c.verb, c.tables FROM
 (SELECT instance, digest, class, toInt64(min(first_seen)) AS first_seen, toInt64(max(last_seen)) AS last_seen FROM risso_seen WHERE instance = %s GROUP BY instance, digest, class) AS s
 INNER JOIN (SELECT class, max(id) AS id, max(pt_id) AS pt_id, max(fingerprint) AS fingerprint, max(verb) AS verb, max(tables) AS tables FROM risso_classes GROUP BY class) AS c
 ON s.class = c.class ORDER BY s.last_seen DESC, s.digest LIMIT %d`, quote(instance), limit), nil, func(scan func(...any) error) error {
		var c Class
		if err := scan(&c.Instance, &c.Digest, &c.FirstSeen, &c.LastSeen, &c.ID, &c.PtID, &c.Fingerprint, &c.Verb, &c.Tables); err != nil {
			return err
		}
		c.Digest = digestOf(c.Digest, c.ID)
		out = append(out, c)
		return nil
	})
	return out, wrap("list the classes", err)
}

// digestOf is the server's digest of a class as it was reported. If there is none, the embedded store keeps the class's ID in its
// place: DuckDB 1.5.0 corrupts its heap, and ends the program, when it closes a file whose primary key of more than some 10,000 rows ends in
// a short text that is the same in all of them. No server's digest is like an ID of ours: theirs are lower case.
func digestOf(stored, id string) string {
	if stored == id {
		return ""
	}
	return stored
}
