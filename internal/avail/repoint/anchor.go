package repoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Without GTIDs a place in one server's binary log says nothing of a place in another one's. It is matched by a server that stands still, the anchor. It is the new
// source, if that is a replica of the same source: both stop where the same event of the source ends, and where the new source's own log ends is where the replica
// goes on. Or it is the old source, if the new one is that one's source: the replica comes to the end of the anchor's log, and the anchor's place is its own.

// planAnchor adds the steps by which the anchor stands still.
func (m *Move) planAnchor(step func(what, where, why string, do func(context.Context) error)) {
	name, channel := m.anchor.Name, m.anchor.Channels[0].Name
	w := words{server: mysql.Of(m.anchor.Server), channel: channel}
	step(w.stop(mysql.Receiver), "on "+name, "it stands still, so that positions can be matched", func(ctx context.Context) error {
		ch, err := m.stand.channel(ctx, channel)
		if err != nil {
			return err
		}
		m.standStop, err = m.borrow(m.stand, m.anchor, channel, ch.Status.IORunning != "No", ch.SQLRunning, func() bool { return false })
		if err != nil {
			return err
		}
		return m.stand.do(ctx, w.stop(mysql.Receiver))
	})
	step("wait", "until "+name+" has applied what it received", "", func(ctx context.Context) (err error) {
		if err = m.r.drained(ctx, m.stand, channel); err == nil {
			err = m.r.settle(ctx, m.stand, channel)
		}
		if err == nil {
			m.standsAt, err = m.stand.channel(ctx, channel)
		}
		return err
	})
	if !m.standFirst {
		step(w.stopBoth(), "on "+name, "", func(ctx context.Context) error { return m.stopAnchor(ctx) })
		step("wait", "until "+m.Replica.Name+" has come to the end of its binary log", "", m.comes)
	}
}

// stopAnchor stops the anchor wholly, and reads where it stands.
func (m *Move) stopAnchor(ctx context.Context) error {
	channel := m.anchor.Channels[0].Name
	err := m.stand.do(ctx, m.stand.words(channel).stopBoth())
	if err == nil {
		m.standsAt, err = m.stand.channel(ctx, channel)
	}
	return err
}

// logEnd is where a server's own binary log ends.
func (s *server) logEnd(ctx context.Context) (log string, pos int64, err error) {
	rows, err := s.c.Maps(ctx, s.c.Server.LogStatusStatement())
	if err != nil || len(rows) == 0 {
		return "", 0, errors.Join(err, fmt.Errorf("%w: %s does not say where its binary log ends", ErrSurprise, s.name))
	}
	pos, err = strconv.ParseInt(rows[0]["Position"], 10, 64)
	return rows[0]["File"], pos, err
}

// comes waits until the replica has applied all that the anchor, its old source, has written. Its place is the anchor's own then.
func (m *Move) comes(ctx context.Context) error {
	log, pos, err := m.stand.logEnd(ctx)
	if err != nil {
		return err
	}
	m.log, m.pos = m.standsAt.Status.Log, m.standsAt.Status.Pos
	return m.r.await(ctx, func() (bool, error) {
		ch, err := m.node.channel(ctx, m.Channel.Name)
		return err == nil && ch.Status.Log == log && ch.Status.Pos == pos, err
	}, func() string {
		return fmt.Sprintf("%s has not come to %s:%d, where %s ends", m.node.name, log, pos, m.stand.name)
	})
}

// match makes replica and anchor stand at the same place, and knows by it where the replica goes on.
func (m *Move) match(ctx context.Context) error {
	ch, err := m.node.channel(ctx, m.Channel.Name)
	if err != nil {
		return err
	}
	if !m.standFirst { // it has come to the end of the anchor's log; nothing was written since, or it does not know where it is
		log, pos, err := m.stand.logEnd(ctx)
		if err == nil && (ch.Status.Log != log || ch.Status.Pos != pos) {
			err = fmt.Errorf("%w: %s went on writing while it was to stand still: %s is at %s:%d, and it ends at %s:%d", ErrSurprise, m.stand.name, m.node.name, ch.Status.Log, ch.Status.Pos, log, pos)
		}
		return err
	}
	if comparePlaces(ch, m.standsAt) < 0 {
		if ch, err = m.pass(ctx); err != nil {
			return err
		}
	}
	if comparePlaces(ch, m.standsAt) > 0 {
		err = m.goTo(ctx, m.stand, m.standsAt.Name, ch)
	}
	if err == nil {
		err = m.stopAnchor(ctx)
	}
	if err != nil {
		return err
	}
	if ch, err = m.node.channel(ctx, m.Channel.Name); err != nil {
		return err
	}
	if comparePlaces(ch, m.standsAt) != 0 {
		return fmt.Errorf("%w: %s stands at %s:%d and %s at %s:%d of the same source", ErrSurprise, m.node.name, ch.Status.Log, ch.Status.Pos, m.stand.name, m.standsAt.Status.Log, m.standsAt.Status.Pos)
	}
	m.log, m.pos, err = m.stand.logEnd(ctx)
	return err
}

// comparePlaces compares how far two replicas of one source have come in its log.
func comparePlaces(a, b read.ReplicaChannel) int {
	if c := mysql.CompareLogs(a.Status.Log, b.Status.Log); c != 0 {
		return c
	}
	return int(a.Status.Pos - b.Status.Pos)
}

// pass lets the replica come at least to where the anchor stands, and apply all that it received by then: it is thrown away when it is pointed elsewhere.
func (m *Move) pass(ctx context.Context) (ch read.ReplicaChannel, err error) {
	name, w := m.Channel.Name, m.node.words(m.Channel.Name)
	if err = m.node.do(ctx, w.startBoth()); err != nil {
		return ch, err
	}
	err = m.r.await(ctx, func() (bool, error) {
		ch, err = m.node.channel(ctx, name)
		if err == nil && ch.LastError != "" {
			err = fmt.Errorf("%w: %s: %s", ErrSurprise, m.node.name, ch.LastError)
		}
		return err == nil && comparePlaces(ch, m.standsAt) >= 0, err
	}, func() string { return m.node.name + " has not come to where " + m.stand.name + " stands" })
	if err == nil {
		err = m.node.do(ctx, w.stop(mysql.Receiver))
	}
	if err == nil {
		err = m.r.drained(ctx, m.node, name)
	}
	if err == nil {
		err = m.r.settle(ctx, m.node, name)
	}
	if err == nil {
		ch, err = m.node.channel(ctx, name)
	}
	return ch, err
}

// goTo lets a replica go on to where another one stands, and stop there. What it has received beyond that it keeps.
func (m *Move) goTo(ctx context.Context, s *server, channel string, at read.ReplicaChannel) error {
	w, log, pos := s.words(channel), at.Status.Log, at.Status.Pos
	for _, statement := range []string{w.stopBoth(), w.startUntil(log, pos)} {
		if err := s.do(ctx, statement); err != nil {
			return err
		}
	}
	err := m.r.await(ctx, func() (bool, error) {
		ch, err := s.channel(ctx, channel)
		if err == nil && ch.Status.SQL.Text != "" {
			err = fmt.Errorf("%w: %s stopped applying: %s", ErrSurprise, s.name, ch.Status.SQL.Text)
		}
		return err == nil && !ch.SQLRunning, err
	}, func() string { return fmt.Sprintf("%s has not come to %s:%d of its source", s.name, log, pos) })
	if err != nil {
		return err
	}
	return s.do(ctx, w.stopBoth())
}

// startAnchor lets the anchor replicate again.
func (m *Move) startAnchor(ctx context.Context) error {
	c, err := m.standStop.Return(ctx, m.stand.c)
	if c != nil {
		m.stand.c = c
	}
	if err == nil { // else it is tried once more at the end, and told
		m.standStop = nil
	}
	return err
}
