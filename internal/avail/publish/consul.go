package publish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/oneline"
)

// Consul tells views to Consul: the key PREFIX/GROUP/view has the view, PREFIX/GROUP/primary the address of the primary, and the service of a group's name has its
// servers, tagged primary or replica. All of it changes in one transaction, which holds only if nobody wrote since it was looked: a view of an older epoch never
// replaces a newer one, and there are never two primaries, whichever controllers write. Within an epoch the last one who tells is right: it is who leads, and
// the clocks of controllers are not compared. That is why services are in the catalog, at a node of their own, and not
// with the agent of a controller: that of a controller which died would go on telling its last view.
type Consul struct {
	URL        string // of an agent, such as http://127.0.0.1:8500
	Token      string
	Prefix     string       // of keys; empty: risso
	Service    string       // what stands before the group's name in the name of its service
	NoServices bool         // only keys
	Client     *http.Client // nil: one with a time-out
}

// consulTime bounds one question to Consul.
const consulTime = 5 * time.Second

// ErrNewer says that Consul has a view of a newer epoch than the one that was to be told.
var ErrNewer = errors.New("Consul has a newer view")

// key is a key of a group.
func (c *Consul) key(name, of string) string {
	return cmp.Or(c.Prefix, "risso") + "/" + name + "/" + of
}

// node is the node of the catalog that has a group's services.
func (c *Consul) node(name string) string { return cmp.Or(c.Prefix, "risso") + "-" + name }

// kept is a key as Consul shows it.
type kept struct {
	ModifyIndex uint64
	Flags       uint64 // of ours: the epoch
	Value       []byte
}

// operation is one of a transaction.
type operation struct {
	KV      *keyStep     `json:",omitempty"`
	Node    *nodeStep    `json:",omitempty"`
	Service *serviceStep `json:",omitempty"`
}

type keyStep struct {
	Verb  string
	Key   string
	Value []byte `json:",omitempty"`
	Flags uint64 `json:",omitempty"`
	Index uint64
}

type nodeStep struct {
	Verb string
	Node node
}

type node struct {
	Node    string
	Address string
	Meta    map[string]string `json:",omitempty"`
}

type serviceStep struct {
	Verb    string
	Node    string
	Service service
}

// service is one of the catalog.
type service struct {
	ID      string
	Service string            `json:",omitempty"`
	Tags    []string          `json:",omitempty"`
	Address string            `json:",omitempty"`
	Port    int               `json:",omitempty"`
	Meta    map[string]string `json:",omitempty"`
	Weights *weights          `json:",omitempty"`
}

type weights struct{ Passing, Warning int }

// consulTries is how often a view is told where others write at the same time.
const consulTries = 5

// Tell brings a view to Consul.
func (c *Consul) Tell(ctx context.Context, v group.View) error {
	var err error
	for range consulTries {
		var done bool
		if done, err = c.once(ctx, v); done {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("tell Consul about %s, epoch %d: %w", v.Group, v.Epoch, err)
	}
	return nil
}

// once looks and writes; done is false where somebody wrote in between.
func (c *Consul) once(ctx context.Context, v group.View) (done bool, err error) {
	var list []kept
	if _, err := c.ask(ctx, http.MethodGet, "/v1/kv/"+path(c.key(v.Group, "view"))+"?consistent", nil, &list); err != nil {
		return true, err
	}
	var there kept
	if len(list) == 1 {
		there = list[0]
	}
	if there.Flags > v.Epoch {
		return true, fmt.Errorf("%w: epoch %d", ErrNewer, there.Flags)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return true, err
	}
	address := ""
	if v.Primary != nil {
		address = v.Primary.Address
	}
	steps := []operation{{KV: &keyStep{Verb: "cas", Key: c.key(v.Group, "view"), Value: body, Flags: v.Epoch, Index: there.ModifyIndex}},
		{KV: &keyStep{Verb: "set", Key: c.key(v.Group, "primary"), Value: []byte(address), Flags: v.Epoch}}}
	if !c.NoServices {
		more, err := c.services(ctx, v)
		if err != nil {
			return true, err
		}
		steps = append(steps, more...)
	}
	code, err := c.ask(ctx, http.MethodPut, "/v1/txn", steps, nil)
	return code != http.StatusConflict, err
}

// services are the operations that bring the catalog to a view.
func (c *Consul) services(ctx context.Context, v group.View) (steps []operation, err error) {
	var there struct{ Services map[string]service }
	if _, err := c.ask(ctx, http.MethodGet, "/v1/catalog/node/"+url.PathEscape(c.node(v.Group))+"?consistent", nil, &there); err != nil {
		return nil, err
	}
	want := map[string]bool{}
	put := func(s group.Server, tag string) error {
		host, text, err := net.SplitHostPort(s.Address)
		if err != nil {
			return err
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s: its port is no number", s.Address)
		}
		r := service{ID: s.Name, Service: c.Service + v.Group, Tags: []string{tag}, Address: host, Port: port, Meta: map[string]string{"risso_epoch": strconv.FormatUint(v.Epoch, 10)}}
		if s.Weight > 0 {
			w := max(1, min(math.MaxUint16, int(s.Weight*100)))
			r.Weights = &weights{w, w}
		}
		want[r.ID] = true
		steps = append(steps, operation{Service: &serviceStep{"set", c.node(v.Group), r}})
		return nil
	}
	steps = append(steps, operation{Node: &nodeStep{"set", node{c.node(v.Group), "127.0.0.1", map[string]string{"external-node": "true"}}}}) // its services have addresses of their own
	for _, s := range v.Replicas {
		if s.Weight > 0 {
			if err := put(s, "replica"); err != nil {
				return nil, err
			}
		}
	}
	if v.Primary != nil {
		if err := put(*v.Primary, "primary"); err != nil {
			return nil, err
		}
	}
	for id := range there.Services {
		if !want[id] {
			steps = append(steps, operation{Service: &serviceStep{"delete", c.node(v.Group), service{ID: id}}})
		}
	}
	return steps, nil
}

// path escapes the parts of a key.
func path(key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// ask asks Consul. That there is no such key (404) is no error.
func (c *Consul) ask(ctx context.Context, method, target string, in, out any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, consulTime)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.URL, "/")+target, body)
	if err != nil {
		return 0, err
	}
	if c.Token != "" {
		req.Header.Set("X-Consul-Token", c.Token)
	}
	client := cmp.Or(c.Client, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}) // a token must not follow
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return resp.StatusCode, err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound && method == http.MethodGet:
		return resp.StatusCode, nil
	case resp.StatusCode != http.StatusOK:
		return resp.StatusCode, fmt.Errorf("%s %s: status %d: %s", method, strings.SplitN(target, "?", 2)[0], resp.StatusCode, oneline.Cut(oneline.Of(string(text)), 200))
	case out == nil:
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(text, out)
}
