package replay

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// A log tells how long the server itself took, so that is what has to be known here, too: the session's own profile tells it, on
// MySQL and MariaDB, without any privilege. The server keeps the last 100 statements of a session, so they are fetched before
// there are more.
const (
	fetchAfter    = 90
	startProfiles = "SET /* risso: how long does the server take? */ SESSION profiling_history_size = 100, SESSION profiling = 1"
	askProfiles   = "SHOW PROFILES"
	// A log's times end when the answer is ready; the profile goes on until it is sent and everything is put away.
	askTails = `SELECT /* risso: how long did the server take after the answer? */ QUERY_ID, CAST(SUM(DURATION) AS CHAR) FROM information_schema.PROFILING
 WHERE STATE IN ('starting cleanup', 'freeing items', 'updating status', 'cleaning up', 'reset for next command', 'logging slow query') GROUP BY QUERY_ID`
	mostTimes = 20000 // of a class
)

// serverTimes gathers what the server took, by class.
type serverTimes struct {
	mu      sync.Mutex
	classes []timesOf
}

// timesOf are those of one class: all of them up to mostTimes, then an even part.
type timesOf struct {
	calls int64
	sum   float64
	list  []float64
}

func (t *serverTimes) add(class int, seconds float64, rng *rand.Rand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.classes[class]
	c.calls++
	c.sum += seconds
	if len(c.list) < mostTimes {
		c.list = append(c.list, seconds)
	} else if at := rng.Int64N(c.calls); at < mostTimes {
		c.list[at] = seconds
	}
}

// of returns the figures of a class; nil if the server reported nothing.
func (t *serverTimes) of(class int) *workload.ServerTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.classes[class]
	if c.calls == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(c.list))
	rank := func(share float64) float64 { return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)] }
	return &workload.ServerTime{Calls: c.calls, Avg: c.sum / float64(c.calls), Median: rank(0.5), P95: rank(0.95)}
}

// profile is one session's profile.
type profile struct {
	ask     *drive.Stmt
	tails   *drive.Stmt
	last    int64 // the number of the last statement that was fetched
	pending []sent
}

// unmeasured is the class of a statement whose time does not count, such as USE; empty that of one that does nothing.
const (
	unmeasured = -1
	empty      = -2
)

// sent is a statement that the server was sent.
type sent struct {
	sql   string
	class int
}

// startProfile begins one; nil where the server does not profile.
func startProfile(s drive.Session) (*profile, error) {
	_, err := s.Exec(drive.Other, startProfiles)
	p := &profile{}
	if err == nil {
		p.ask, err = s.Prepare(drive.Other, askProfiles)
	}
	if err == nil {
		p.tails, err = s.Prepare(drive.Other, askTails)
	}
	var refused *drive.ServerError
	if errors.As(err, &refused) && !refused.Gone() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.ask.Keep, p.tails.Keep = true, true
	return p, nil
}

// note remembers a statement that is sent.
func (p *profile) note(sql string, class int) {
	if p != nil {
		p.pending = append(p.pending, sent{sql, class})
	}
}

// fetch asks for the times of what was sent. The server's texts are beginnings of the statements, in their order; what does not
// fit is skipped.
func (p *profile) fetch(s drive.Session, add func(class int, seconds float64)) error {
	r, err := s.Do(p.tails)
	if err != nil {
		return err
	}
	tails := map[int64]float64{}
	for i := 0; i+2 <= len(r.Values) && r.Columns == 2; i += 2 {
		tails[r.Values[i].Int] = decimal(r.Values[i+1])
	}
	if r, err = s.Do(p.ask); err != nil {
		return err
	}
	at := 0
	for i := 0; i+3 <= len(r.Values) && r.Columns == 3; i += 3 {
		id, seconds, text := r.Values[i].Int, decimal(r.Values[i+1]), string(r.Values[i+2].Text)
		if id == 0 {
			id, _ = strconv.ParseInt(string(r.Values[i].Text), 10, 64)
		}
		if id <= p.last || text == "" {
			continue
		}
		p.last = id
		for n := at; n < len(p.pending); n++ {
			if !strings.HasPrefix(p.pending[n].sql, text) {
				continue
			}
			if c, took := p.pending[n].class, seconds-tails[id]; c != unmeasured && took > 0 {
				add(c, took)
			}
			at = n + 1
			break
		}
	}
	p.pending = p.pending[:0]
	return nil
}

// decimal reads a number that came as text.
func decimal(v drive.Value) float64 {
	f, err := strconv.ParseFloat(string(v.Text), 64)
	if err != nil {
		return 0
	}
	return f
}

// emptyStatement does next to nothing: what the server takes for it is what being profiled costs, and a little more.
const emptyStatement = "SELECT 1"

// emptyTime is the median of what the server takes for an empty statement.
func (p *profile) emptyTime(s drive.Session) (float64, error) {
	var took []float64
	for range trips {
		if _, err := s.Exec(drive.Other, emptyStatement); err != nil {
			return 0, err
		}
		p.note(emptyStatement, empty)
	}
	if err := p.fetch(s, func(_ int, seconds float64) { took = append(took, seconds) }); err != nil || len(took) == 0 {
		return 0, err
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
