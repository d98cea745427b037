package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/delay"
)

// heard is a controller's answer, or why there was none.
type heard struct {
	from string
	sent Moment
	age  time.Duration // of the view, when it was given
	view group.View
	err  error
}

// errNoGroup says that a controller knows of no such group.
var errNoGroup = errors.New("it controls no such group")

// mostAnswer is how much of an answer is read.
const mostAnswer = 1 << 20

// askController asks a controller again and again, until ctx ends. A question that is not answered is given up before the lease would end by it.
func (a *Agent) askController(ctx context.Context, base string, out chan<- heard) {
	client := &http.Client{Transport: a.o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a token must not follow it elsewhere
	at := a.at(base)
	for ctx.Err() == nil {
		began := time.Now()
		h := heard{from: base, sent: now()}
		h.view, h.age, h.err = a.askOnce(ctx, client, at)
		select {
		case out <- h:
		case <-ctx.Done():
		}
		_ = delay.For(ctx, a.o.Every-time.Since(began))
	}
}

// at is where a controller tells who the primary is.
func (a *Agent) at(base string) string {
	return base + "/api/view?group=" + url.QueryEscape(a.o.Group)
}

func (a *Agent) askOnce(ctx context.Context, client *http.Client, at string) (v group.View, age time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.o.TTL/2)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return v, 0, err
	}
	if a.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.o.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return v, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return v, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		var said struct{ Error string }
		_ = json.Unmarshal(body, &said) // without JSON the status says enough
		if said.Error == "" {
			said.Error = http.StatusText(resp.StatusCode)
		}
		if resp.StatusCode == http.StatusNotFound {
			return v, 0, fmt.Errorf("%w: %s", errNoGroup, said.Error)
		}
		return v, 0, fmt.Errorf("status %d: %s", resp.StatusCode, said.Error)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, 0, fmt.Errorf("it answers what is no view of a group: %w", err)
	}
	if v.Group != a.o.Group {
		return v, 0, fmt.Errorf("it answers about the group %q", v.Group)
	}
	return v, ageOf(resp.Header.Get("Risso-Age")), nil
}

// ageOf reads how old an answer was, such as 1200ms.
func ageOf(header string) time.Duration {
	d, err := time.ParseDuration(header)
	if err != nil {
		return 0
	}
	return d
}
