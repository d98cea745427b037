package scenario_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestKilledAnywhere: several Rissos watch the same servers, on which trouble begins and ends at known times. Each is killed at random moments: while it
// starts, while nothing happens, when a receiver has a message, when a request was answered. At the end what each of them kept, told and
// answered is compared with what there was. RISSO_KILLS says how often they are killed in all; with more than 20, the test waits until all
// alerts are over and wants each of them told, which takes minutes.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	kills, rissos := 8, 2
	if text := os.Getenv("RISSO_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		rissos = max(2, min(kills/40, 5))
	}
	whole := kills > 20
	s := up(t, sandbox.Options{Name: "s", Servers: []string{"mariadb", "mysql-9.7"}, Settings: []string{"innodb_lock_wait_timeout=600", "lock_wait_timeout=600", "max_connections=300"}})
	spoiler := newTroubles(t, s, whole)
	var all []*killed
	for i := range rissos {
		all = append(all, newKilled(t, i, s, kills/rissos))
	}
	var troubling, living sync.WaitGroup
	troubling.Go(spoiler.run)
	for _, k := range all {
		living.Go(k.live)
	}
	living.Wait()
	spoiler.stop()
	troubling.Wait()
	for _, k := range all {
		living.Go(func() { k.lastLife(whole) })
	}
	living.Wait()
	if t.Failed() {
		for _, k := range all {
			t.Logf("risso %d said: %s", k.number, k.said())
		}
		return
	}
	for _, k := range all {
		k.judge(spoiler.had, whole)
	}
}

// life is one life of a Risso.
type life struct {
	launched, ready, killed time.Time // ready zero: it was killed before
	how                     string    // the moment was chosen
}

// killed is a Risso that is killed again and again.
type killed struct {
	t         *testing.T
	number    int
	kills     int
	conf      string
	data      string
	env       []string
	hook      *hook
	random    *rand.Rand
	lives     []life
	programs  []*risso
	asked     *asked
	asking    chan struct{} // closed: nothing is asked any more
	answering sync.WaitGroup
}

// victims are the names of the watched servers, in the order of the sandbox.
var victims = []string{"maria", "mysql"}

// ownRule fires while many sessions are connected.
const (
	crowd   = 70
	ownRule = `groups:
- name: own
  rules:
  - {record: 'own:connected', expr: 'mysql_global_status_threads_connected'}
  - {alert: Crowded, expr: 'mysql_global_status_threads_connected > 60', for: 2s, annotations: {summary: 'many are connected'}}
`
)

func newKilled(t *testing.T, number int, s *sandbox.Sandbox, kills int) *killed {
	t.Helper()
	k := &killed{t: t, number: number, kills: kills, data: dataDir(t), env: environment(tempDir(t), "HOOK_SECRET=s"), hook: newHook(t, "s"),
		random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(number))), asking: make(chan struct{})}
	k.hook.heard = make(chan struct{}, 1)
	k.asked = newAsked(k)
	dir := tempDir(t)
	rules := filepath.Join(dir, "own.yml")
	write(t, rules, ownRule)
	k.conf = filepath.Join(dir, "risso.yaml")
	write(t, k.conf, fmt.Sprintf(`
alerts:
  rules: [%q]
  receivers: [{name: hook, webhook: {url: %q, secret_env: HOOK_SECRET}}]
  thresholds: [{finding: "*", for: 0s}]
servers:
  - {name: %s, dsn: %q}
  - {name: %s, dsn: %q}
`, rules, k.hook.URL, victims[0], s.Nodes[0].DSN, victims[1], s.Nodes[1].DSN))
	return k
}

// launch begins a life; it does not wait for anything.
func (k *killed) launch() *risso {
	r := launch(k.t, k.env, "serve", "--listen", "127.0.0.1:0", "--no-host", "--data", k.data, "--config", k.conf)
	r.data = k.data
	k.programs = append(k.programs, r)
	k.lives = append(k.lives, life{launched: time.Now()})
	return r
}

// awaitLife waits until a Risso is ready; false: not by then.
func (k *killed) awaitLife(r *risso, until time.Time) bool {
	l := &k.lives[len(k.lives)-1]
	for time.Now().Before(until) {
		select {
		case <-r.done:
			k.t.Errorf("risso %d ended by itself: %s", k.number, r.err)
			return false
		case <-time.After(10 * time.Millisecond):
		}
		if m := readyForm.FindStringSubmatch(r.err.String()); m != nil {
			r.base, l.ready = m[1], time.Now()
			return true
		}
	}
	return false
}

// live lets it live and be killed, as often as it is to be.
func (k *killed) live() {
	k.answering.Go(k.asked.run)
	for n := range k.kills {
		r := k.launch()
		how, after := k.moment(n)
		until := time.Now().Add(after)
		if how != "start" {
			until = time.Now().Add(patience)
		}
		if k.awaitLife(r, until) {
			k.asked.at(r.base)
			k.wait(r, how, after)
		}
		r.kill(k.t)
		k.asked.at("")
		l := &k.lives[len(k.lives)-1]
		l.killed, l.how = time.Now(), how
		if k.t.Failed() {
			break
		}
		time.Sleep(time.Duration(k.random.IntN(2500)) * time.Millisecond)
	}
}

// moment chooses how and when it is killed.
func (k *killed) moment(n int) (how string, after time.Duration) {
	random := func(from, to int) time.Duration { return time.Duration(from+k.random.IntN(to-from)) * time.Millisecond }
	switch n % 8 { // in turns, so that few kills have each
	case 0, 4:
		return "a time", random(7_000, 15_000)
	case 1, 5:
		return "start", random(0, 1_200)
	case 2, 6:
		return "a message", random(0, 60)
	case 3:
		return "an answer", random(0, 15)
	}
	return "a time", random(500, 9_000)
}

// longest is how long it lives at the most, where it waits for something.
const longest = 15 * time.Second

// wait waits for the moment.
func (k *killed) wait(r *risso, how string, after time.Duration) {
	var c chan struct{}
	switch how {
	case "a message":
		c = k.hook.heard
	case "an answer":
		c = k.asked.answered
	}
	if c != nil {
		time.Sleep(time.Duration(k.random.IntN(4000)) * time.Millisecond)
		select { // an old one
		case <-c:
		default:
		}
	}
	select {
	case <-c: // nil: never
	case <-time.After(after):
		if c != nil {
			select {
			case <-c:
			case <-time.After(longest):
			}
		}
		return
	case <-r.done:
		k.t.Errorf("risso %d ended by itself: %s", k.number, r.err)
		return
	}
	time.Sleep(after)
}

// lastLife lets it live until it knows how all ended, and ends it in order.
func (k *killed) lastLife(whole bool) {
	r := k.launch()
	if !k.awaitLife(r, time.Now().Add(patience)) {
		k.t.Errorf("risso %d is not ready: %s", k.number, r.err)
		return
	}
	k.asked.at(r.base)
	time.Sleep(3 * time.Second) // what was asked without an answer is asked again
	close(k.asking)
	k.answering.Wait()
	k.asked.check(r)
	limit := 8 * time.Second
	if whole {
		limit = 4 * time.Minute
	}
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(time.Second) {
		if now := r.alerts(k.t); len(now.Alerts) == 0 && now.Receivers[0].Waiting == 0 {
			break
		}
	}
	for _, d := range r.alerts(k.t).Receivers {
		if d.Waiting > 0 {
			k.t.Errorf("risso %d: %d messages wait for %s at the end", k.number, d.Waiting, d.Name)
		}
	}
	r.stop(k.t, syscall.SIGTERM)
	k.lives[len(k.lives)-1].killed = time.Now()
}

// said is what all lives said.
func (k *killed) said() (all string) {
	for i, p := range k.programs {
		all += fmt.Sprintf("%d: %s", i, p.err)
	}
	return all
}

// mortal asks a Risso that may die meanwhile.
var mortal = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
