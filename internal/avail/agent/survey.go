package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Survey is what an agent would work with.
type Survey struct {
	Server      string               `json:"server"`
	Group       string               `json:"group"`
	Member      string               `json:"member"`
	ReadOnly    bool                 `json:"read_only"`
	Replicates  bool                 `json:"replicates"`
	Controllers []ControllerAnswered `json:"controllers"`
	Boot        fence.Boot           `json:"boot"`
	Statements  []string             `json:"statements"` // by which it would fence the server
	TTL         time.Duration        `json:"ttl_ns"`     // how long a confirmation holds
	Wait        time.Duration        `json:"wait_ns"`    // how long a controller that cannot reach it waits before another server is promoted, where the group's --agent-ttl is this agent's --ttl
	Problems    []fleet.Trouble      `json:"problems,omitempty"`
}

// ControllerAnswered is what a controller says.
type ControllerAnswered struct {
	URL     string `json:"url"`
	Answers bool   `json:"answers"`
	Epoch   uint64 `json:"epoch"`
	Primary string `json:"primary,omitempty"`
	Mine    bool   `json:"mine"` // that is this server
	Error   string `json:"error,omitempty"`

	mistaken string // why the server is not the member
	absent   bool   // it has no such group
}

// Look asks the controllers and the server once, and changes nothing.
func (a *Agent) Look(ctx context.Context) (Survey, error) {
	c, err := mysql.Connect(ctx, a.o.Target, nil)
	if err != nil {
		return Survey{}, err
	}
	defer func() { _ = c.Close() }()
	s := Survey{Server: a.o.Target.Address(), Group: a.o.Group, Member: a.o.Member, TTL: a.o.TTL, Wait: Wait(a.o.TTL), Statements: fence.Statements(c.Server, fence.Options{Hold: true, Boot: a.o.Boot})}
	a.eyes.identify(ctx, c)
	a.askAll(ctx, &s)
	reader, err := read.NewHealthReader(ctx, c)
	if err != nil {
		return s, err
	}
	h, err := reader.Read(ctx)
	if err != nil {
		return s, err
	}
	s.ReadOnly = h.ReadOnly
	switch list, err := read.OuterChannels(ctx, c); {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		s.problem("whether it replicates", err.Error(), c.Server.Grant(c.Server.ReplicaPrivilege()))
	case err != nil:
		return s, err
	default:
		s.Replicates = len(list) > 0
	}
	if s.Boot, err = fence.Boots(ctx, c); err != nil {
		return s, err
	}
	if s.Boot.Writable != "no" {
		s.boots()
	}
	return s, s.waits(ctx, c, within(a.o.TTL))
}

func (s *Survey) problem(what, why, remedy string) {
	s.Problems = append(s.Problems, fleet.Trouble{What: what, Why: why, Remedy: remedy})
}

// askAll asks all controllers at once.
func (a *Agent) askAll(ctx context.Context, s *Survey) {
	client := &http.Client{Transport: a.o.Transport}
	s.Controllers = make([]ControllerAnswered, len(a.o.Controllers))
	var all sync.WaitGroup
	for i, base := range a.o.Controllers {
		all.Go(func() {
			one := ControllerAnswered{URL: base}
			v, _, err := a.askOnce(ctx, client, a.at(base))
			if one.Answers = err == nil; err != nil {
				one.absent = errors.Is(err, errNoGroup)
				one.Error = err.Error()
			} else if one.Epoch = v.Epoch; v.Primary != nil {
				one.Primary, one.Mine = v.Primary.Name, a.me(*v.Primary)
			}
			one.mistaken = mistaken(v, a.me, a.eyes.who())
			s.Controllers[i] = one
		})
	}
	all.Wait()
	answer := 0
	for _, one := range s.Controllers {
		if one.Answers {
			answer++
		} else {
			s.problem(one.URL, one.Error, "")
		}
		if one.mistaken != "" && !slices.ContainsFunc(s.Problems, func(t fleet.Trouble) bool { return t.Why == one.mistaken }) {
			s.problem("who the server is", one.mistaken, "give the right --member")
		}
		if a.o.Token != "" && inClear(one.URL) {
			s.problem(one.URL, "the token goes there in clear text: who can listen can act as this agent", "give risso serve a certificate, and write https")
		}
	}
	if answer == 0 {
		s.Problems = append(s.Problems, unled(s.Controllers, a.o.Group, a.o.TTL))
	}
}

// unled says what follows where no controller names a primary: an agent fences a server that nobody confirms, unless some controller answers that it has no such group, as
// then nobody else can be made the primary of it.
func unled(list []ControllerAnswered, group string, ttl time.Duration) fleet.Trouble {
	if slices.ContainsFunc(list, func(one ControllerAnswered) bool { return one.absent }) {
		return fleet.Trouble{What: "no controller", Why: "none has a group " + group + ": while that is all they answer, an agent does not fence a server for it", Remedy: "risso group list shows those that there are; give the right --group"}
	}
	return fleet.Trouble{What: "no controller", Why: "none answers: an agent with --fence lost fences a server that takes writes after " + digits.Span(ttl)}
}

// inClear reports whether a URL leads over a network without encryption.
func inClear(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// boots says that the server would come up writable.
func (s *Survey) boots() {
	words := "after a restart it takes writes, also if another server was promoted: " + s.Boot.Words
	if s.Boot.Writable == "unknown" {
		words = "whether it takes writes after a restart is not known: " + s.Boot.Words
	}
	remedy := ""
	for i, statement := range s.Boot.Statements {
		if i > 0 {
			remedy += "; "
		}
		remedy += statement
	}
	for i, line := range s.Boot.Lines {
		if i == 0 {
			remedy = "in the section [mysqld] of its option file: "
		} else {
			remedy += ", "
		}
		remedy += line
	}
	s.problem("it comes up writable", words, remedy)
}

// waits says that commits go on without a replica before the server would be fenced, which happens within a time.
func (s *Survey) waits(ctx context.Context, c *mysql.Conn, within time.Duration) error {
	semi, err := read.SemiSyncNow(ctx, c)
	if err != nil {
		return err
	}
	limit := time.Duration(semi.Source.Timeout) * time.Millisecond
	switch {
	case s.ReadOnly || s.Replicates:
	case !semi.Source.Enabled:
		s.problem("semi-synchronous replication is off", "what is committed between a partition and the fence, "+digits.Span(within)+" at most, is acknowledged, and no other server has it", "risso semisync on")
	case limit < within:
		s.problem("semi-synchronous replication falls back", fmt.Sprintf("after %s a commit goes on without a replica; until the server is fenced %s may pass", digits.Span(limit), digits.Span(within)), "risso semisync on")
	}
	return nil
}
