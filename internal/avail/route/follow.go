package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/delay"
)

// Controller is a risso serve that knows the group.
type Controller struct {
	URL   string
	Token string // empty: none
}

const (
	viewWait  = time.Second            // how long a controller waits for news before it says that there are none
	viewLimit = 4 * time.Second        // how long its answer may take in all
	viewPause = 100 * time.Millisecond // between two questions at least, if nothing is new
	viewRetry = time.Second            // after an error at most
	viewMost  = 1 << 20                // bytes of a view
	// silent is how long a controller may say nothing before what others say of the same epoch counts in its place.
	silent = 3 * time.Second
)

// told is what a controller answered.
type told struct {
	view *group.View
	same bool          // as it told before
	age  time.Duration // of what it saw, by its own clock
	err  error
}

// ask is one question. seen is the tag of the view that is known, and becomes that of the answer.
func (c Controller) ask(ctx context.Context, client *http.Client, name string, seen *string) (*group.View, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, viewLimit)
	defer cancel()
	q := url.Values{"group": {name}, "wait": {viewWait.String()}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(c.URL, "/")+"/api/view?"+q.Encode(), nil)
	if err != nil {
		return nil, 0, err
	}
	if *seen != "" {
		req.Header.Set("If-None-Match", *seen)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, viewMost))
	switch {
	case err != nil:
		return nil, 0, err
	case resp.StatusCode == http.StatusNotModified && *seen != "":
		return nil, ageOf(resp.Header), nil
	case resp.StatusCode != http.StatusOK:
		var said struct{ Error string }
		_ = json.Unmarshal(body, &said) // without JSON the status says enough
		return nil, 0, fmt.Errorf("status %d: %s", resp.StatusCode, cmp.Or(said.Error, http.StatusText(resp.StatusCode)))
	}
	v, err := readView(body, name)
	if err != nil {
		return nil, 0, err
	}
	*seen = resp.Header.Get("ETag")
	return v, ageOf(resp.Header), nil
}

// ageOf is how long before its answer a controller saw what it says, by its own clock.
func ageOf(h http.Header) time.Duration {
	d, err := time.ParseDuration(h.Get("Risso-Age"))
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// readView reads a view, and refuses one that would send clients nowhere.
func readView(body []byte, name string) (*group.View, error) {
	v := new(group.View)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("the view cannot be read: %w", err)
	}
	if v.Group != name {
		return nil, fmt.Errorf("the view is of group %q", v.Group)
	}
	if v.Primary != nil && v.Primary.Address == "" {
		return nil, errors.New("the primary of the view has no address")
	}
	for _, s := range v.Replicas {
		if s.Address == "" {
			return nil, fmt.Errorf("replica %q of the view has no address", s.Name)
		}
	}
	return v, nil
}

// poll asks a controller again and again until ctx ends.
func (c Controller) poll(ctx context.Context, name string, hear func(told)) {
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: false},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a token must not follow one
	}
	defer client.CloseIdleConnections()
	seen, wait := "", viewPause
	var last *group.View
	for {
		began := time.Now()
		before := seen
		v, age, err := c.ask(ctx, client, name, &seen)
		if ctx.Err() != nil {
			return
		}
		same := err == nil && v == nil
		if err == nil && !same {
			last = v
		}
		hear(told{last, same, age, err})
		switch {
		case err != nil:
			seen = "" // it may be another one when it answers again
			if delay.For(ctx, wait) != nil {
				return
			}
			wait = min(2*wait, viewRetry)
			continue
		case seen == before || seen == "": // nothing new: a controller that does not wait is not asked without a pause
			if delay.For(ctx, viewPause-time.Since(began)) != nil {
				return
			}
		}
		wait = viewPause
	}
}

// newest is the view in force, out of what several controllers tell.
type newest struct {
	view *group.View
	from int           // which controller told it
	at   time.Time     // when it was last told, or said to be unchanged
	age  time.Duration // of what the controller saw, then
	last map[int]word  // by controller
}

// word is what a controller told last.
type word struct {
	view *group.View
	at   time.Time
	age  time.Duration
}

// hear takes what a controller told. A view of a lower epoch never replaces one of a higher.
func (n *newest) hear(from int, t told, now time.Time) (changed bool, older *group.View) {
	if t.err != nil {
		return false, nil
	}
	if n.last == nil {
		n.last = map[int]word{}
	}
	n.last[from] = word{t.view, now, t.age}
	if n.view != nil && t.view.Epoch < n.view.Epoch {
		return false, t.view
	}
	epoch := t.view.Epoch
	from = n.believed(epoch, now)
	w := n.last[from]
	changed = n.view != w.view
	n.view, n.from, n.at, n.age = w.view, from, w.at, w.age
	return changed, nil
}

// believed is the controller whose view of an epoch counts: of those that are not silent, one that names the primary that most of them name, so that one that
// sees what nobody else sees moves no clients; where they are even, the one that was believed before, else they would go to and fro.
func (n *newest) believed(epoch uint64, now time.Time) int {
	votes := map[string]int{}
	var list []int
	for from, w := range n.last {
		if w.view.Epoch == epoch && now.Sub(w.at) < silent {
			votes[primaryAddress(w.view)]++
			list = append(list, from)
		}
	}
	rank := func(from int) int { // the higher, the more
		r := 2 * votes[primaryAddress(n.last[from].view)]
		if from == n.from {
			r++
		}
		return r
	}
	slices.Sort(list)
	return slices.MaxFunc(list, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
}

func primaryAddress(v *group.View) string {
	if v.Primary == nil {
		return ""
	}
	return v.Primary.Address
}

// old is how old what the view says of lags is.
func (n *newest) old(now time.Time) time.Duration { return n.age + now.Sub(n.at) }
