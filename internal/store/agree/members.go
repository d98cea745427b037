package agree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/store/state"
)

// The kinds of documents in which controllers say of themselves what Raft does not know.
const (
	kindMember  = "controller"
	kindRemoved = "controller-removed" // by fingerprint
)

// Member is a controller as the others know it.
type Member struct {
	Name        string `json:"name"`
	Address     string `json:"address"`               // at which the others reach it
	URL         string `json:"url,omitempty"`         // of its page
	Version     string `json:"version,omitempty"`     // of its Risso
	Fingerprint string `json:"fingerprint,omitempty"` // of its certificate
	Votes       bool   `json:"votes"`                 // false: it is still being brought up to date
}

func (n *Node) memberOf(ctx context.Context, name string) (m Member, err error) {
	d, err := n.Store.Document(ctx, kindMember, name)
	if err == nil {
		err = json.Unmarshal(d.Body, &m)
	}
	return m, err
}

// putMember writes what is known of a controller, if it is not what is written.
func (n *Node) putMember(ctx context.Context, m Member) error {
	d, err := n.Store.Document(ctx, kindMember, m.Name)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	m.Votes = false // Raft knows
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if string(body) == string(d.Body) {
		return nil
	}
	_, err = n.Store.PutDocument(ctx, state.Document{Kind: kindMember, Key: m.Name, Version: d.Version, By: n.Folder.Name, Body: body})
	return err
}

// servers are who takes part, as this controller knows it.
func (n *Node) servers() []raft.Server {
	r := n.now()
	if r == nil {
		return nil
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// Members are the controllers.
func (n *Node) Members(ctx context.Context) (list []Member) {
	for _, s := range n.servers() {
		m, err := n.memberOf(ctx, string(s.ID))
		if err != nil {
			m = Member{Name: string(s.ID)}
		}
		m.Address, m.Votes = string(s.Address), s.Suffrage == raft.Voter
		list = append(list, m)
	}
	return list
}

func (n *Node) isRemoved(fingerprint string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.removed[fingerprint]
}

// readRemoved learns whose certificates do not count any more.
func (n *Node) readRemoved(ctx context.Context) error {
	list, err := n.Store.Documents(ctx, kindRemoved)
	if err != nil {
		return err
	}
	removed := map[string]bool{}
	for _, d := range list {
		removed[d.Key] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removed = removed
	return nil
}

// confTime bounds a change of who takes part.
const confTime = 10 * time.Second

// join lets a controller in, as the leader. It has no vote until it is level.
func (n *Node) join(ctx context.Context, m Member) error {
	for _, s := range n.servers() {
		switch {
		case string(s.ID) == m.Name:
			known, err := n.memberOf(ctx, m.Name)
			if err == nil && known.Fingerprint != m.Fingerprint && n.answers(ctx, string(s.Address), known.Fingerprint) {
				return fmt.Errorf("%w: there is a controller %s, and it answers at %s; choose another name, or stop and remove it first", state.ErrRejected, m.Name, s.Address)
			}
			if err := n.now().RemoveServer(s.ID, 0, confTime).Error(); err != nil { // it comes without what it promised
				return outcome(err)
			}
		case string(s.Address) == m.Address:
			return fmt.Errorf("%w: %s is the address of controller %s", state.ErrRejected, m.Address, s.ID)
		}
	}
	if err := n.putMember(ctx, m); err != nil {
		return err
	}
	if err := n.now().AddNonvoter(raft.ServerID(m.Name), raft.ServerAddress(m.Address), 0, confTime).Error(); err != nil {
		return outcome(err)
	}
	n.Logger.Warn("a controller was let in", "name", m.Name, "address", m.Address)
	return nil
}

// answers says whether the controller with a certificate works at an address.
func (n *Node) answers(ctx context.Context, address, fingerprint string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var s Status
	return n.client.ask(ctx, address, "/status", nil, &s) == nil && s.Fingerprint == fingerprint
}

// promote gives a controller that is level its vote, as the leader.
func (n *Node) promote(m Member) error {
	for _, s := range n.servers() {
		if string(s.ID) == m.Name && string(s.Address) == m.Address {
			if err := n.now().AddVoter(s.ID, s.Address, 0, confTime).Error(); err != nil {
				return outcome(err)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: controller %s does not take part", state.ErrRejected, m.Name)
}

// remove ends that a controller takes part, as the leader.
func (n *Node) remove(ctx context.Context, name string) error {
	servers := n.servers()
	there := false
	for _, s := range servers {
		there = there || string(s.ID) == name
	}
	if !there {
		return fmt.Errorf("%w: there is no controller %q", state.ErrRejected, name)
	}
	if len(servers) == 1 {
		return fmt.Errorf("%w: %s is the only controller; to make its state unshared, stop it and run risso controller leave", state.ErrRejected, name)
	}
	if err := n.enoughWithout(ctx, name); err != nil {
		return err
	}
	if m, err := n.memberOf(ctx, name); err == nil {
		if m.Fingerprint != "" {
			if _, err := n.Store.PutDocument(ctx, state.Document{Kind: kindRemoved, Key: m.Fingerprint, By: n.Folder.Name, Body: json.RawMessage(`"` + name + `"`)}); err != nil && !errors.Is(err, state.ErrConflict) {
				return err
			}
		}
		d, err := n.Store.Document(ctx, kindMember, name)
		if err == nil {
			err = n.Store.DropDocument(ctx, kindMember, name, d.Version)
		}
		if err != nil {
			return err
		}
	}
	if err := n.now().RemoveServer(raft.ServerID(name), 0, confTime).Error(); err != nil {
		return outcome(err)
	}
	n.Logger.Warn("a controller was removed", "name", name)
	return nil
}

// enoughWithout refuses where of those that vote, but for one, no more than half answer: without that one nothing could be agreed on any more, not even that
// another one is removed.
func (n *Node) enoughWithout(ctx context.Context, name string) error {
	var all errgroup.Group
	var mu sync.Mutex
	var silent []string
	left := 0
	for _, s := range n.servers() {
		if string(s.ID) == name || s.Suffrage != raft.Voter {
			continue
		}
		left++
		if string(s.ID) == n.Folder.Name {
			continue
		}
		all.Go(func() error {
			m, err := n.memberOf(ctx, string(s.ID))
			if err != nil || !n.answers(ctx, string(s.Address), m.Fingerprint) {
				mu.Lock()
				silent = append(silent, string(s.ID))
				mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // none fails
	if 2*(left-len(silent)) > left {
		return nil
	}
	slices.Sort(silent)
	return fmt.Errorf("%w: without %s nothing could be agreed on: %s of the %d that would be left do not answer; start them, or remove those that are lost first: risso controller remove %s",
		state.ErrRejected, name, strings.Join(silent, " and "), left, silent[0])
}

// self is this controller as it wants to be known.
func (n *Node) self() Member {
	return Member{Name: n.Folder.Name, Address: n.Folder.Address, URL: n.URL, Version: release.Version(), Fingerprint: n.wire.keys.print}
}

// askIn asks the controllers of the invitation to let this one in, until one does.
func (n *Node) askIn(ctx context.Context) error {
	body, err := json.Marshal(n.self())
	if err != nil {
		return err
	}
	told := ""
	for {
		var why []string
		for _, p := range n.Folder.Peers {
			actx, cancel := context.WithTimeout(ctx, 2*confTime)
			err := n.client.ask(actx, p.Address, "/join", body, nil)
			cancel()
			if err == nil {
				return nil
			}
			why = append(why, fmt.Sprintf("%s (%s): %v", p.Name, p.Address, err))
		}
		if text := strings.Join(why, "; "); text != told {
			n.Logger.Warn("no controller lets this one in yet; it keeps asking", "why", text)
			told = text
		}
		if err := delay.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

// introduce keeps what the others know of this controller right, and asks for its vote when it is level.
func (n *Node) introduce(ctx context.Context) error {
	told := ""
	for delay.For(ctx, 500*time.Millisecond) == nil {
		err := n.readRemoved(ctx)
		if err == nil {
			err = n.present(ctx)
		}
		if err == nil || ctx.Err() != nil {
			told = ""
			continue
		}
		if text := err.Error(); text != told {
			n.Logger.Debug("this controller could not tell the others of itself", "err", err)
			told = text
		}
	}
	return nil
}

func (n *Node) present(ctx context.Context) error {
	for _, s := range n.servers() {
		if string(s.ID) != n.Folder.Name {
			continue
		}
		if err := n.putMember(ctx, n.self()); err != nil {
			return err
		}
		if s.Suffrage == raft.Voter {
			return nil
		}
		if err := n.Level(ctx); err != nil {
			return err
		}
		m := n.self()
		body, err := json.Marshal(m)
		if err != nil {
			return err
		}
		_, err = n.byLeader(ctx, "/promote", body, func() (uint64, error) { return 0, n.promote(m) })
		return err
	}
	return nil
}
