package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
)

// Paths at which a Desk answers. Those that end with a slash are checks: a name follows.
const (
	pathPrimary  = "/primary"
	pathReplicas = "/replicas"
	pathView     = "/api/view"
	checkPrimary = "/primary/"
	checkReplica = "/replica/"
	checkGroup   = "/group/"
)

// Paths are those of a Desk that tell addresses.
func Paths() []string { return []string{pathPrimary, pathReplicas, pathView} }

// IsCheck reports whether a path is that of a check, which tells no more than yes or no.
func IsCheck(path string) bool {
	return strings.HasPrefix(path, checkPrimary) || strings.HasPrefix(path, checkReplica) || strings.HasPrefix(path, checkGroup)
}

// What bounds questions that wait.
const (
	mostWait    = 30 * time.Second
	mostWaiting = 128         // at a time; the others are answered at once
	waitLook    = time.Second // how often it is looked whether a view got too old
)

// Desk answers over HTTP who asks where the clients of groups go. It asks for no token.
type Desk struct {
	views   Views
	maxAge  time.Duration
	now     func() time.Time
	waiting atomic.Int32

	mu   sync.Mutex
	told map[string]map[string]time.Time // by group and server: when a check last had yes for its answer
}

// NewDesk makes one that tells no view older than maxAge; 0: DefaultMaxAge.
func NewDesk(v Views, maxAge time.Duration) *Desk {
	return &Desk{views: v, maxAge: cmp.Or(maxAge, DefaultMaxAge), now: time.Now, told: map[string]map[string]time.Time{}}
}

// Fresh says why a view is not to be told any more; nil: it is.
func (d *Desk) Fresh(v group.View) error { return Fresh(v, d.now(), d.maxAge) }

// said is an answer.
type said struct {
	status int
	text   string // with ?format=text
	body   any    // in JSON
	age    time.Duration
	tag    string
}

// problem is a question that cannot be answered, whoever asks.
type problem struct {
	status int
	words  string
}

// Error is what is wrong with it.
func (p *problem) Error() string { return p.words }

const allowed = "GET, HEAD, OPTIONS"

// ServeHTTP answers one question.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	a, err := d.answer(r, func(wait time.Duration) {
		_ = http.NewResponseController(w).SetWriteDeadline(d.now().Add(wait + 2*mostWait)) // a writer that knows no deadlines is one of a test
	})
	text := r.URL.Query().Get("format") == "text" || IsCheck(r.URL.Path)
	var bad *problem
	var no *Refusal
	switch {
	case errors.As(err, &bad):
		a = said{status: bad.status, text: bad.words, age: -1, body: struct {
			Error string `json:"error"`
		}{bad.words}}
		switch bad.status {
		case http.StatusMethodNotAllowed:
			h.Set("Allow", allowed)
		case http.StatusServiceUnavailable:
			h.Set("Retry-After", "1")
		}
	case errors.As(err, &no):
		a = no.said()
		if IsCheck(r.URL.Path) && !no.Stale { // a balancer that asks another controller where one does not know must not ask on until one says yes that is late
			a.status = http.StatusConflict
			break
		}
		h.Set("Retry-After", "1")
	case err != nil: // the question ended
		a = said{status: http.StatusServiceUnavailable, text: err.Error(), age: -1}
	}
	a.tellAge(h)
	if a.tag != "" {
		h.Set("ETag", `"`+a.tag+`"`)
	}
	a.send(w, r, text)
}

// said is the answer of a refusal.
func (r *Refusal) said() said {
	return said{status: http.StatusServiceUnavailable, text: r.Reason, age: r.Age, body: struct {
		Error string  `json:"error"`
		Group string  `json:"group"`
		Epoch uint64  `json:"epoch"`
		Age   float64 `json:"age_s"`
	}{r.Reason, r.Group, r.Epoch, r.Age.Seconds()}}
}

// ServeHTTP answers with the refusal, in JSON, as a Desk does.
func (r *Refusal) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "1")
	a := r.said()
	a.tellAge(w.Header())
	a.send(w, req, false)
}

// tellAge says how old the view is.
func (a said) tellAge(h http.Header) {
	if a.age >= 0 {
		h.Set("Age", strconv.Itoa(int(a.age.Seconds())))
		h.Set("Risso-Age", strconv.FormatInt(a.age.Milliseconds(), 10)+"ms")
	}
}

// send writes an answer.
func (a said) send(w http.ResponseWriter, r *http.Request, asText bool) {
	var out []byte
	kind := "text/plain; charset=utf-8"
	switch {
	case a.status == http.StatusNotModified:
		w.WriteHeader(a.status)
		return
	case asText || a.body == nil:
		out = append([]byte(a.text), '\n')
	default:
		kind = "application/json"
		var err error
		if out, err = json.Marshal(a.body); err != nil { // a weight that is no number
			a.status, out = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
		}
		out = append(out, '\n')
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(out)
	}
}

// answer finds it.
func (d *Desk) answer(r *http.Request, extend func(time.Duration)) (said, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions {
		return said{}, &problem{http.StatusMethodNotAllowed, "ask by GET, HEAD or OPTIONS"}
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return said{}, &problem{http.StatusBadRequest, "the address, behind the ?, cannot be read"}
	}
	if r.URL.Path != pathView { // programs of another version ask for that
		if err := known(q); err != nil {
			return said{}, err
		}
	}
	name := q.Get("group")
	path, of := r.URL.Path, ""
	if i := strings.LastIndexByte(path, '/'); i > 0 && IsCheck(path) {
		path, of = path[:i+1], path[i+1:]
	}
	if path == checkGroup {
		name = of
	}
	name, v, err := d.find(name)
	if err != nil {
		return said{}, err
	}
	switch path {
	case pathPrimary:
		return d.primary(v)
	case pathReplicas:
		return d.replicas(v, q)
	case pathView:
		return d.view(r, name, q, extend)
	case checkPrimary:
		return d.isPrimary(v, of, q)
	case checkReplica:
		return d.isReplica(v, of, q)
	case checkGroup:
		if err := fresh(v, d.now(), d.maxAge); err != nil {
			return said{}, err
		}
		return said{status: http.StatusOK, text: "Where the clients of " + name + " go is known.", age: ageOf(v, d.now())}, nil
	}
	return said{}, &problem{http.StatusNotFound, "there is no " + r.URL.Path}
}

// known refuses what is not asked for by that name: without max_lag, written another way, a replica that is late would do.
func known(q url.Values) error {
	for name, values := range q {
		if len(values) > 1 {
			return &problem{http.StatusBadRequest, "?" + name + " is given " + strconv.Itoa(len(values)) + " times, and only one answer is possible: ask for each by itself"}
		}
		if !slices.Contains([]string{"group", "format", "max_lag", "max-lag", "settle"}, name) {
			return &problem{http.StatusBadRequest, "?" + name + " means nothing here: group, format, max_lag and settle do"}
		}
	}
	return nil
}

// errStarting is the answer about a group while it is not known which there are.
func errStarting() error {
	return &problem{http.StatusServiceUnavailable, "this risso serve starts, and does not know yet which groups there are: ask again, or another controller"}
}

// find finds a group; the only one needs no name.
func (d *Desk) find(name string) (string, group.View, error) {
	if name == "" {
		switch all := d.views.Groups(); {
		case !d.views.Sure():
			return "", group.View{}, errStarting()
		case len(all) == 0:
			return "", group.View{}, &problem{http.StatusServiceUnavailable, "there is no group of servers"}
		case len(all) == 1:
			name = all[0]
		default:
			return "", group.View{}, &problem{http.StatusBadRequest, "there are several groups: say which one with ?group=NAME"}
		}
	}
	v, ok := d.views.View(name)
	if !ok && !d.views.Sure() {
		return "", v, errStarting()
	}
	if !ok {
		return "", v, &problem{http.StatusNotFound, "there is no group of that name"}
	}
	return name, v, nil
}

// Told is the answer about a primary.
type Told struct {
	Group   string    `json:"group"`
	Server  string    `json:"server"`
	Address string    `json:"address"` // host:port
	Since   time.Time `json:"since"`
	Epoch   uint64    `json:"epoch"`
}

func (d *Desk) primary(v group.View) (said, error) {
	p, err := PrimaryOf(v, d.now(), d.maxAge)
	if err != nil {
		return said{}, err
	}
	return said{status: http.StatusOK, text: p.Address, age: ageOf(v, d.now()), body: Told{v.Group, p.Name, p.Address, v.Since, v.Epoch}}, nil
}

func (d *Desk) replicas(v group.View, q url.Values) (said, error) {
	lag, err := maxLag(q)
	if err != nil {
		return said{}, err
	}
	list, err := ReplicasOf(v, d.now(), d.maxAge, lag)
	if err != nil {
		return said{}, err
	}
	var lines []string
	for _, s := range list {
		lines = append(lines, s.Address)
	}
	return said{status: http.StatusOK, text: strings.Join(lines, "\n"), age: ageOf(v, d.now()), body: list}, nil
}

// maxLag reads how far a replica may be behind: seconds, or a length of time; 0: any.
func maxLag(q url.Values) (time.Duration, error) {
	return length("max_lag", cmp.Or(q.Get("max_lag"), q.Get("max-lag"))) // the second as /health/ calls it
}

func length(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	t, err := digits.ParseDuration(text)
	if err != nil || t < 0 {
		return 0, &problem{http.StatusBadRequest, name + ": write it as 5s"}
	}
	return t, nil
}

// view answers with the whole view, with ?wait= when it is another one than the client has.
func (d *Desk) view(r *http.Request, name string, q url.Values, extend func(time.Duration)) (said, error) {
	wait, err := length("wait", q.Get("wait"))
	if err != nil {
		return said{}, err
	}
	wait = min(wait, mostWait)
	seen := tags(r.Header.Get("If-None-Match"))
	if d.waiting.Add(1) > mostWaiting {
		wait = 0
	}
	defer d.waiting.Add(-1)
	extend(wait)
	end := d.now().Add(wait)
	for {
		left := end.Sub(d.now())
		has := ""
		if _, tag := d.views.Wait(ended(), name, ""); slices.Contains(seen, tag) {
			has = tag
		}
		ctx, cancel := context.WithTimeout(r.Context(), max(0, min(left, waitLook)))
		v, tag := d.views.Wait(ctx, name, has)
		cancel()
		if r.Context().Err() != nil {
			return said{}, context.Cause(r.Context())
		}
		if tag == "" {
			return said{}, &problem{http.StatusNotFound, "there is no group of that name"}
		}
		if err := fresh(v, d.now(), d.maxAge); err != nil {
			return said{}, err
		}
		a := said{status: http.StatusOK, age: ageOf(v, d.now()), tag: tag, body: v}
		switch {
		case !slices.Contains(seen, tag):
			return a, nil
		case left <= 0:
			a.status = http.StatusNotModified
			return a, nil
		}
	}
}

// ended is a context that waits for nothing.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// tags are those of a header If-None-Match.
func tags(header string) (list []string) {
	for _, t := range strings.Split(header, ",") {
		if t = strings.Trim(strings.TrimPrefix(strings.TrimSpace(t), "W/"), `"`); t != "" {
			list = append(list, t)
		}
	}
	return list
}

// asksHere is for how long balancers are thought to ask the controller that they asked last.
const asksHere = time.Minute

// isPrimary answers a load balancer. With ?settle= nobody is told yes until all others have had no for so long: a balancer that asks more often than that
// never has two primaries at a time. A controller that just began to tell of a primary, and told of no other one, does not know: the primary may have been it
// for long, and a no would take it from its clients.
func (d *Desk) isPrimary(v group.View, name string, q url.Values) (said, error) {
	settle, err := length("settle", q.Get("settle"))
	if err != nil {
		return said{}, err
	}
	now := d.now()
	p, err := PrimaryOf(v, now, d.maxAge)
	if err != nil {
		return said{}, err
	}
	no := &Refusal{Group: v.Group, Epoch: v.Epoch, Age: ageOf(v, now)}
	if !is(p, name) {
		no.Reason = fmt.Sprintf("%s is not the primary of %s", strconv.Quote(name), v.Group)
		return said{}, no
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.told[v.Group]
	if told == nil {
		told = map[string]time.Time{}
		d.told[v.Group] = told
	}
	early, mine := false, false
	for other, at := range told {
		mine = mine || other != p.Name && now.Sub(at) < asksHere
		early = early || other != p.Name && now.Sub(at) < settle
	}
	if settle > 0 && !mine && now.Sub(d.views.Since(v.Group)) < settle { // another controller may have told balancers of the one before, or this one before it was started
		return said{}, &problem{http.StatusServiceUnavailable, "it is not known here yet whether clients had time to leave the primary before this one: ask again, or another controller"}
	}
	if early {
		no.Reason = fmt.Sprintf("%s is the primary of %s; clients follow when they had time to leave the one before", p.Name, v.Group)
		return said{}, no
	}
	told[p.Name] = now
	return said{status: http.StatusOK, text: fmt.Sprintf("%s is the primary of %s, epoch %d.", p.Name, v.Group, v.Epoch), age: ageOf(v, now)}, nil
}

func (d *Desk) isReplica(v group.View, name string, q url.Values) (said, error) {
	lag, err := maxLag(q)
	if err != nil {
		return said{}, err
	}
	list, err := ReplicasOf(v, d.now(), d.maxAge, lag)
	if err != nil {
		return said{}, err
	}
	if !slices.ContainsFunc(list, func(s group.Server) bool { return is(s, name) }) {
		return said{}, &Refusal{Reason: fmt.Sprintf("%s is no replica of %s that answers such reads", strconv.Quote(name), v.Group), Group: v.Group, Epoch: v.Epoch, Age: ageOf(v, d.now())}
	}
	return said{status: http.StatusOK, text: fmt.Sprintf("%s answers reads of %s.", name, v.Group), age: ageOf(v, d.now())}, nil
}
