package agree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/store/state"
)

// machine is the state file as Raft sees it.
type machine struct{ *Node }

// applyLimit bounds one try to apply a change, applyWait is between two of them.
const (
	applyLimit = time.Minute
	applyWait  = 200 * time.Millisecond
)

// Apply makes a change that was agreed on, and returns nil or why it was not to be made. What fails only here, because the disk is full, is
// tried until it succeeds: nothing that was agreed on may be left out. Meanwhile this controller does not lead.
func (m machine) Apply(l *raft.Log) any {
	defer m.changes.begin()(nil)
	var c state.Change
	if err := json.Unmarshal(l.Data, &c); err != nil {
		return fmt.Errorf("%w: read change %d: %w", state.ErrRejected, l.Index, err)
	}
	for {
		ctx, cancel := context.WithTimeout(m.life, applyLimit)
		err := m.Store.ApplyChange(ctx, l.Index, c)
		cancel()
		switch {
		case errors.Is(err, state.ErrStale), errors.Is(err, state.ErrRejected):
			m.mend()
			return err
		case err == nil:
			m.mend()
			m.reach(l.Index)
			return nil
		}
		m.ail(fmt.Errorf("what was agreed on cannot be written: %w", err))
		if delay.For(m.life, applyWait) != nil {
			return fmt.Errorf("%w: this controller ends: %w", state.ErrUnsure, err)
		}
	}
}

// Snapshot begins a copy of the shared tables.
func (m machine) Snapshot() (raft.FSMSnapshot, error) {
	c, err := m.Store.SharedCopy(m.life)
	if err != nil {
		return nil, err
	}
	return frozen{c, m.life}, nil
}

// Restore takes a copy of the shared tables from another controller, or from before a restart.
func (m machine) Restore(r io.ReadCloser) (err error) {
	end := m.changes.begin()
	defer func() { end(err) }()
	defer r.Close()
	ctx, cancel := context.WithTimeout(m.life, 10*applyLimit)
	defer cancel()
	if err := m.Store.RestoreShared(ctx, r); err != nil {
		return err
	}
	i, _, err := m.Store.Identity(ctx)
	if err != nil {
		return err
	}
	m.reach(i.Applied)
	m.log.writes.mended() // the copy has what could not be written
	return nil
}

// frozen is a copy that Raft writes to its folder of snapshots.
type frozen struct {
	*state.SharedCopy
	life context.Context
}

// Persist writes it.
func (f frozen) Persist(sink raft.SnapshotSink) error {
	if err := f.Write(f.life, sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// reach notes that the file has all up to a change.
func (n *Node) reach(number uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if number > n.reached {
		n.reached = number
		close(n.moved)
		n.moved = make(chan struct{})
	}
}

// await waits until the file has all up to a change.
func (n *Node) await(ctx context.Context, number uint64) error {
	for {
		n.mu.Lock()
		reached, moved := n.reached, n.moved
		n.mu.Unlock()
		if reached >= number {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for change %d (%d is here): %w", number, reached, ctx.Err())
		case <-n.life.Done():
			return errEnded
		}
	}
}

// ail notes what keeps this controller from its work, and lets another one lead.
func (n *Node) ail(err error) {
	n.mu.Lock()
	first := n.trouble == nil
	n.trouble = err
	n.mu.Unlock()
	if first {
		n.Logger.Error("this controller cannot go on for now", "err", err)
		go n.yield()
	}
}

// mend notes that it works again.
func (n *Node) mend() {
	n.mu.Lock()
	was := n.trouble
	n.trouble = nil
	n.mu.Unlock()
	if was != nil {
		n.Logger.Warn("this controller goes on", "after", was)
	}
}

// yield lets another controller lead, if one can.
func (n *Node) yield() {
	if r := n.now(); r == nil || r.State() != raft.Leader {
		return
	}
	if err := n.transfer(func(r *raft.Raft) raft.Future { return r.LeadershipTransfer() }); err != nil && n.life.Err() == nil {
		n.Logger.Warn("another controller could not be made the leader", "err", err)
	}
}
