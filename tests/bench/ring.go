package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/ring"
)

// ofRing are the questions whose answers are in a moment, with whether only the ring and what is kept of incidents need them: the others
// serve charts and findings, too.
var ofRing = map[string]bool{
	"what sessions run and wait for":      false,
	"does any session run a statement?":   false,
	"which transactions wait for which?":  false,
	"whose are transactions?":             false,
	"who blocks whom":                     false,
	"does a transaction wait for a lock?": false,
	"who waits, and who is in the way?":   false,
	"their whole statements":              false,
	"do sessions wait for row locks?":     false,
	"who waits for which row":             false,
	"who waits for which metadata lock":   false,
	"who waits for a lock of the server":  false,
	"who holds metadata locks":            false,
	"who uses tables":                     false,
	"who has a user lock":                 false,
	"who may hold a metadata lock":        false,
	"what blocking sessions do":           false,
	"what blocking sessions ran last":     false,
	"how long transactions are open":      false,
	"open transactions":                   true,
	"the latest deadlock":                 true,
}

// ringLoad is a load: transactions a second, and sessions that run longer statements, one after the other.
type ringLoad struct{ tps, slow int }

func (l ringLoad) String() string {
	return fmt.Sprintf("%d transactions/s and %d reports", l.tps, l.slow)
}

func (b *bench) ringLoads() []ringLoad {
	if b.quick {
		return []ringLoad{{}, {40, 6}}
	}
	return []ringLoad{{}, {40, 6}, {300, 6}, {300, 24}}
}

// ringOf is what was measured of a server under a load, a value for each round.
type ringOf struct {
	kind        string
	load        ringLoad
	alone, with []float64 // shares of a core that the server used
	bytes       []float64 // a second, on disk
	seconds     float64   // in which Risso was measured, in all rounds
	asked       map[string]asking
	moment      figures
}

// figures are sizes of the load, as a moment tells them.
type figures struct{ Connected, Running, Open, Waits float64 }

// ringCost measures what the moments of a server cost it, and their space.
func (b *bench) ringCost(ctx context.Context, s *section) error {
	t := s.table("a server, by its load: its processor, and the space of its moments", "server", "transactions/s", "reports", "sessions", "running", "open transactions", "server alone", "with Risso", "its sessions", "moments' questions",
		"only theirs", "bytes a second", "MB a day")
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		if err := b.ringServer(ctx, s, t, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	s.note("Space is that of the first minutes: after five of them fewer literals are kept where a day would take more than 50 MB.")
	s.note("Server columns are shares of a core by the whole process. Sessions are the threads that serve Risso, exact to the microsecond; the questions are what they did of it.")
	return nil
}

func (b *bench) ringServer(ctx context.Context, s *section, t *table, kind string) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Name: "ring-" + kind, Dir: filepath.Join(b.work, "sb"), Servers: []string{kind}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	for _, load := range b.ringLoads() {
		r := ringOf{kind: kind, load: load, asked: map[string]asking{}}
		if err := b.ringUnder(ctx, sb.Primary(), &r); err != nil {
			return err
		}
		r.report(s, t)
	}
	return nil
}

// ringUnder measures in rounds: first nobody watches, then Risso does.
func (b *bench) ringUnder(ctx context.Context, n *sandbox.Node, r *ringOf) error {
	end, err := begin(ctx, n, r.load)
	if err != nil {
		return err
	}
	defer end()
	for i := range b.rounds {
		say("ring: %s, %s, round %d of %d", r.kind, r.load, i+1, b.rounds)
		if err := pause(ctx, b.short(5*time.Second, 2*time.Second)); err != nil {
			return err
		}
		used, err := cores(ctx, b.window/2, n.PID)
		if err != nil {
			return err
		}
		r.alone = append(r.alone, used[0])
		if err := b.ringRound(ctx, n, r); err != nil {
			return err
		}
	}
	return nil
}

// ringRound measures the server while Risso watches it.
func (b *bench) ringRound(ctx context.Context, n *sandbox.Node, r *ringOf) (err error) {
	name := "ring-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	m, err := newMeter(n, filepath.Join(b.work, name+".sock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	p, err := b.serve(ctx, filepath.Join(b.work, name), "--no-host", "--dsn", "db=root@unix("+m.path+")/")
	if err != nil {
		return err
	}
	defer p.stop()
	if err := pause(ctx, b.short(65*time.Second, 8*time.Second)); err != nil { // what is asked once a minute was asked, for the first time
		return err
	}
	began := time.Now()
	asked, used, err := m.askedFor(ctx, b.window, n.PID)
	if err != nil {
		return err
	}
	r.seconds += time.Since(began).Seconds()
	r.with = append(r.with, used[0])
	for q, a := range asked {
		sum := r.asked[q]
		r.asked[q] = asking{sum.times + a.times, sum.cost + a.cost}
	}
	var moment struct {
		Moment struct {
			Connected    float64
			Sessions     []struct{ Wait string }
			Transactions []struct{}
			Locks        []struct{}
		}
	}
	if err := get(ctx, p.url+"/api/moment?instance=db&at="+strconv.FormatInt(time.Now().Unix()-2, 10), &moment); err != nil {
		return err
	}
	r.moment = figures{Connected: moment.Moment.Connected, Open: float64(len(moment.Moment.Transactions)), Waits: float64(len(moment.Moment.Locks))}
	for _, x := range moment.Moment.Sessions {
		if x.Wait != "idle" {
			r.moment.Running++
		}
	}
	p.stop()
	perSecond, err := ringBytes(filepath.Join(b.work, name, "moments", "*"))
	r.bytes = append(r.bytes, perSecond)
	return err
}

// ringBytes is how many bytes a second the ring has on disk whose folder is meant. What ended Risso closed its last block.
func ringBytes(pattern string) (float64, error) {
	dirs, err := filepath.Glob(pattern)
	if err != nil || len(dirs) != 1 {
		return 0, fmt.Errorf("%d folders of moments, not one: %w", len(dirs), err)
	}
	kept, err := ring.Open(ring.Options{Dir: dirs[0]})
	if err != nil {
		return 0, err
	}
	oldest, newest, bytes := kept.Span()
	if err := kept.Close(); err != nil {
		return 0, err
	}
	return float64(bytes) / float64(max(newest-oldest+1, 1)), nil
}

// report adds a row, a table of the questions, and judges them.
func (r *ringOf) report(s *section, t *table) {
	const day = 86400
	name := fmt.Sprintf("%s, %s", r.kind, r.load)
	questions := s.table(name+": what Risso asks, and what the server's threads need for it; * is in the moments, ** only there", "µs each", "a second", "% of a core", "", "question")
	all, moments, own := 0.0, 0.0, 0.0
	var list []string
	for q, a := range r.asked {
		share := a.cost.Seconds() / r.seconds
		all += share
		if alone, ok := ofRing[q]; ok {
			if moments += share; alone {
				own += share
			}
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(x, y string) int { return cmp.Compare(r.asked[y].cost, r.asked[x].cost) })
	for _, q := range list {
		a, star := r.asked[q], ""
		if alone, ok := ofRing[q]; ok {
			if star = "*"; alone {
				star = "**"
			}
		}
		questions.row(fmt.Sprintf("%.0f", a.cost.Seconds()*1e6/float64(max(a.times, 1))), fmt.Sprintf("%.2f", float64(a.times)/r.seconds), fmt.Sprintf("%.4f", a.cost.Seconds()/r.seconds*100), star, q)
	}
	bytes := median(r.bytes)
	t.row(r.kind, fmt.Sprint(r.load.tps), fmt.Sprint(r.load.slow), figure(r.moment.Connected), figure(r.moment.Running), figure(r.moment.Open), percent(median(r.alone)), percent(median(r.with)), percent(all), percent(moments), percent(own), figure(bytes), figure(bytes*day/1e6))
	key := fmt.Sprintf("%s_%d_%d_", r.kind, r.load.tps, r.load.slow)
	for k, v := range map[string]float64{"alone": median(r.alone), "with": median(r.with), "sessions": all, "moments": moments, "own": own, "bytes": bytes} {
		s.Figures[key+k] = v
	}
	s.below("% of a core for the moments of "+name, moments*100, 0.3, "")
	s.below("MB a day for the moments of "+name, bytes*day/1e6, 50, "")
}
