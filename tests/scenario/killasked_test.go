package scenario_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/alert"
)

// asked is what a Risso was asked to do, and what it answered: what it answered with success must hold after a kill.
type asked struct {
	k        *killed
	answered chan struct{} // there was an answer a moment ago

	mu   sync.Mutex
	base string // of the Risso that lives; empty: none does

	thresholds, silences map[string]int64 // that must be there, with their numbers
	gone                 map[string]bool  // that must not be
	marks                map[string]bool  // events that must be there once; false: the answer is not known yet
	acked                map[string]bool  // alerts, by key and when they rang
	said                 []string         // of what must be an event
}

func newAsked(k *killed) *asked {
	return &asked{k: k, answered: make(chan struct{}, 1), thresholds: map[string]int64{}, silences: map[string]int64{}, gone: map[string]bool{}, marks: map[string]bool{}, acked: map[string]bool{}}
}

func (a *asked) at(base string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.base = base
}

// ask sends one request; false: there was no answer of success.
func (a *asked) ask(method, path string, body any, out any) bool {
	a.mu.Lock()
	base := a.base
	a.mu.Unlock()
	if base == "" {
		return false
	}
	text, err := json.Marshal(body)
	if err != nil {
		a.k.t.Error(err)
		return false
	}
	req, err := http.NewRequest(method, base+path, bytes.NewReader(text))
	if err != nil {
		a.k.t.Error(err)
		return false
	}
	res, err := mortal.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return false
	}
	if res.StatusCode != http.StatusOK {
		if res.StatusCode != http.StatusNotFound {
			a.k.t.Errorf("%s %s %s: got %d %s, want 200", method, path, text, res.StatusCode, answer)
		}
		return false
	}
	if err := json.Unmarshal(answer, out); err != nil {
		a.k.t.Errorf("%s %s: %v: %s", method, path, err, answer)
		return false
	}
	if method != http.MethodGet {
		select {
		case a.answered <- struct{}{}:
		default:
		}
	}
	return true
}

// run asks for one thing after the other until asking is closed.
func (a *asked) run() {
	for n := 0; ; n++ {
		select {
		case <-a.k.asking:
			return
		case <-time.After(time.Duration(200+n*37%500) * time.Millisecond):
		}
		a.mu.Lock()
		alive := a.base != ""
		a.mu.Unlock()
		if !alive {
			continue
		}
		switch name := fmt.Sprintf("try.%d", n); n % 6 {
		case 0:
			var set struct{ ID int64 }
			if a.ask(http.MethodPut, "/api/thresholds", map[string]string{"finding": name, "for": "1s"}, &set) {
				a.thresholds[name] = set.ID
				a.said = append(a.said, "set the threshold for finding "+name+": ")
			}
		case 1:
			var made alert.Silence
			if a.ask(http.MethodPost, "/api/silences", map[string]string{"server": "nobody", "for": "1h", "reason": name}, &made) {
				a.silences[name] = made.ID
				a.said = append(a.said, ": "+name+" by ")
			}
		case 2, 5:
			a.mark(name)
		case 3:
			a.acknowledge()
		case 4:
			a.end()
		}
	}
}

// mark makes the marks of which it is not known that they were made, and a new one.
func (a *asked) mark(name string) {
	a.marks[name] = false
	for text, made := range a.marks {
		var answer struct{ Events []fleet.Event }
		if !made && a.ask(http.MethodPost, "/api/events", map[string]string{"text": text, "key": text}, &answer) {
			a.marks[text] = true
		}
	}
}

// acknowledge says of an alert that somebody knows of it.
func (a *asked) acknowledge() {
	var now alertsNow
	if !a.ask(http.MethodGet, "/api/alerts", nil, &now) {
		return
	}
	for _, s := range now.Alerts {
		if s.Phase != alert.Firing || !s.Acked.IsZero() || !s.Gone.IsZero() {
			continue
		}
		var answer struct{ Acknowledged string }
		if a.ask(http.MethodPost, "/api/alerts/ack?key="+url.QueryEscape(s.Key), nil, &answer) {
			a.acked[ringing(s.Alert)] = true
			a.said = append(a.said, "alert "+s.Key+" was acknowledged")
		}
		return
	}
}

// ringing names one time that an alert rang.
func ringing(a alert.Alert) string { return a.Key + " " + a.Rang.UTC().Format(time.RFC3339Nano) }

// mostAsked is how many thresholds, and how many silences, there are before one is ended.
const mostAsked = 4

// end ends a threshold and a silence.
func (a *asked) end() {
	var answer map[string]any
	for what, list := range map[string]map[string]int64{"/api/thresholds": a.thresholds, "/api/silences": a.silences} {
		if len(list) < mostAsked {
			continue
		}
		for name, id := range list {
			delete(list, name) // without an answer, nobody knows
			if a.ask(http.MethodDelete, fmt.Sprintf("%s?id=%d", what, id), nil, &answer) {
				a.gone[name] = true
				if what == "/api/silences" {
					a.said = append(a.said, fmt.Sprintf("silence %d was ended", id))
				} else {
					a.said = append(a.said, "deleted the threshold for finding "+name+": ")
				}
			}
			break
		}
	}
}

// check compares what was answered with what there is.
func (a *asked) check(r *risso) {
	t, number := a.k.t, a.k.number
	var now struct{ Page []struct{ Finding string } }
	r.get(t, "/api/thresholds", url.Values{}, &now)
	there := map[string]int{}
	for _, x := range now.Page {
		there[x.Finding]++
	}
	for _, s := range r.alerts(t).Silences {
		there[s.Reason]++
	}
	for _, list := range []map[string]int64{a.thresholds, a.silences} {
		for name := range list {
			if there[name] != 1 {
				t.Errorf("risso %d: the threshold or silence %s was answered, and is there %d times", number, name, there[name])
			}
		}
	}
	for name := range a.gone {
		if there[name] > 0 {
			t.Errorf("risso %d: the threshold or silence %s was ended, and is there", number, name)
		}
	}
	texts := a.texts(r)
	for text, made := range a.marks {
		if got := count(texts, func(s string) bool { return s == text }); got > 1 || made && got != 1 {
			t.Errorf("risso %d: the event %s, answered: %t, is there %d times", number, text, made, got)
		}
	}
	lost := 0
	for _, words := range a.said {
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, words) }) {
			lost++
			t.Errorf("risso %d: no event says %q, which was answered with success", number, words)
		}
	}
	t.Logf("risso %d: %d thresholds and silences, %d that were ended, %d events, %d acknowledgements, %d actions with their events, of which %d lost",
		number, len(a.thresholds)+len(a.silences), len(a.gone), len(a.marks), len(a.acked), len(a.said), lost)
}

// texts are those of all events.
func (a *asked) texts(r *risso) (list []string) {
	var all struct{ Events []struct{ Text string } }
	r.get(a.k.t, "/api/events", url.Values{"limit": {"10000"}}, &all)
	for _, e := range all.Events {
		list = append(list, e.Text)
	}
	return list
}

func count[T any](list []T, f func(T) bool) (n int) {
	for _, x := range list {
		if f(x) {
			n++
		}
	}
	return n
}
