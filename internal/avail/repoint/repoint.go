// Package repoint points replicas at another source, lets them stay behind on purpose, and lets them pass over one transaction. What is to be done is a plan that can be
// printed; whether it can be done is judged by a pure function over what package topology found. A replica is never pointed elsewhere before it has applied what it
// received. A rebuild replaces all that a replica has by a copy that a Filler brings: until that is whole the replica is left alone, then it is marked (read-only, and
// pointed at a name that leads nowhere, which a restart does not undo) and only then cleared, filled and pointed back. What was before is on disk before the first change: until a replica applies from its new source, what went wrong is taken back; after that it stays,
// and is said.
package repoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Errors that say what became of it.
var (
	ErrRefused  = errors.New("it cannot be done")
	ErrBusy     = errors.New("another risso replica is at work on this server")
	ErrSurprise = errors.New("it did not go as planned")
	ErrIntact   = errors.New("its data are all there") // of a step that may take them: it did not
)

// Repointer does it.
type Repointer struct {
	Target func(address string) mysql.Target // how the server at an address is asked, from here
	Dir    string                            // of the journals
	Wait   time.Duration                     // how long each thing may take that is waited for
	Say    func(string)                      // is told what is going on
	Flags  string                            // how printed commands find the servers: " --dsn …"
}

// Refusal is why something cannot be done.
type Refusal struct {
	Code string // as docs/replica.md has them
	fleet.Trouble
}

// Refused makes an error of refusals.
func Refused(what string, list []Refusal) error {
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = r.Why
	}
	remedy := ""
	for _, r := range list {
		if remedy == "" {
			remedy = r.Remedy
		}
	}
	return fault.New(fault.Failed, remedy, fmt.Errorf("%s: %w: %s", what, ErrRefused, strings.Join(words, "; ")))
}

// server is one that is changed, by its own connection.
type server struct {
	name    string
	c       *mysql.Conn
	several bool // channels
}

// words are the statements about one of its channels, which was asked for before.
func (s *server) words(channel string) words { return words{s.c.Server, channel, s.several, 0} }

// wordsOf are those of a channel that is pointed elsewhere.
func (s *server) wordsOf(ch read.ReplicaChannel) words {
	return words{s.c.Server, ch.Name, s.several, time.Duration(ch.BeatEvery * float64(time.Second))}
}

// lockWait is how long a statement may wait for locks. Writes wait behind one that makes a server read-only, and nobody else ends it if this process is killed.
const lockWait = 30 * time.Second

// connect opens a connection to a node.
func (r *Repointer) connect(ctx context.Context, n *topology.Node) (*server, error) {
	c, err := mysql.Connect(ctx, r.target(n), nil)
	if err != nil {
		return nil, err
	}
	if err := c.Exec(ctx, c.Server.BoundLocks(lockWait)); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	return &server{n.Name, c, len(n.Channels) > 1}, nil
}

// target is how a node is asked, with patience: a STOP may take long.
func (r *Repointer) target(n *topology.Node) mysql.Target {
	return r.Target(n.Addresses[0]).WithPatience(r.Wait + stopTime)
}

// stopTime is longer than a server takes to stop applying: in the midst of a transaction it waits for the rest, up to a minute.
const stopTime = 2 * time.Minute

// channel reads a channel as it is now.
func (s *server) channel(ctx context.Context, name string) (read.ReplicaChannel, error) {
	list, err := read.OuterChannels(ctx, s.c)
	if err != nil {
		return read.ReplicaChannel{}, fmt.Errorf("ask %s what it replicates: %w", s.name, err)
	}
	s.several = len(list) > 1
	for _, ch := range list {
		if ch.Name == name {
			return ch, nil
		}
	}
	return read.ReplicaChannel{}, fmt.Errorf("%w: %s has no channel %q any more", ErrSurprise, s.name, name)
}

// do runs a statement; the error says on which server, and what privilege it lacks.
func (s *server) do(ctx context.Context, statement string) error {
	err := s.c.Exec(ctx, statement)
	if err == nil {
		return nil
	}
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		err = fleet.WithRemedy(err, s.c.Server.Grant(s.c.Server.ReplicaAdmin()))
	}
	if cause := context.Cause(ctx); cause != nil && !mysql.Answered(err) && !errors.Is(err, cause) { // the driver only says that the connection broke
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%s on %s: %w", statement, s.name, err)
}

// pause is between two looks at what is waited for.
const pause = 100 * time.Millisecond

// await asks is until it says yes, for as long as each thing may take. what says for what, once it takes too long.
func (r *Repointer) await(ctx context.Context, is func() (bool, error), what func() string) error {
	began := time.Now()
	for {
		yes, err := is()
		if err != nil || yes {
			return err
		}
		if time.Since(began) > r.Wait {
			return fault.New(fault.Failed, "--wait lets it take longer", fmt.Errorf("%w: %s, after %s", ErrSurprise, what(), r.Wait))
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
	}
}

// drained waits until a channel has applied what it received.
func (r *Repointer) drained(ctx context.Context, s *server, channel string) error {
	var last read.ReplicaChannel
	return r.await(ctx, func() (yes bool, err error) {
		if last, err = s.channel(ctx, channel); err != nil {
			return false, err
		}
		switch yes, err = s.applied(ctx, last); {
		case err != nil || yes:
			return yes, err
		case !last.SQLRunning:
			return false, fmt.Errorf("%w: %s stopped applying%s", ErrSurprise, s.name, because(last.Status.SQL))
		}
		return false, nil
	}, func() string { return s.name + " has not applied what it received" + pending(last) })
}

// applied reports whether a channel that does not receive has applied all that it received. A transaction of which only a part came does not count: it is received again.
func (s *server) applied(ctx context.Context, ch read.ReplicaChannel) (bool, error) {
	switch {
	case ch.GTID:
		return mysql.ReceivedAll(ctx, s.c, ch.Received)
	case ch.Status.Unapplied == 0 || ch.RelayLog == "":
		return ch.Status.Unapplied == 0, nil
	}
	rows, err := s.c.Maps(ctx, s.words(ch.Name).relayEvents(ch.RelayLog, ch.RelayPos))
	if err != nil { // it applies on, and the place is gone
		return false, nil
	}
	return len(rows) < mostEvents && partial(rows), nil
}

// settle lets a channel receive a moment longer, some times, if it stopped receiving in the midst of a transaction: a server that stops applying there waits for the
// rest.
func (r *Repointer) settle(ctx context.Context, s *server, channel string) error {
	w := s.words(channel)
	for range 8 {
		ch, err := s.channel(ctx, channel)
		if err != nil {
			return err
		}
		rows, err := s.c.Maps(ctx, w.relayEvents(ch.RelayLog, ch.RelayPos))
		if err != nil || len(rows) == 0 || !ch.SQLRunning || ch.Status.IO.Text != "" {
			return nil // it may wait
		}
		if partial(rows) {
			if err := s.do(ctx, w.start(mysql.Receiver)); err != nil {
				return err
			}
			if err := delay.For(ctx, pause); err != nil {
				return err
			}
			if err := s.do(ctx, w.stop(mysql.Receiver)); err != nil {
				return err
			}
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
		if err := r.drained(ctx, s, channel); err != nil {
			return err
		}
	}
	return nil
}

// because is the error at which replication stopped, to be put after what it led to.
func because(e fleet.ReplicaError) string {
	if e.Text == "" {
		return ""
	}
	return ": " + e.Text
}

func pending(ch read.ReplicaChannel) string {
	if ch.Delay > 0 {
		return " (it is told to stay " + seconds(ch.Delay) + " behind)"
	}
	return ""
}

// seconds is a delay in words.
func seconds(n int) string { return digits.Span(time.Duration(n) * time.Second) }

// split takes an address apart.
func split(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0
	}
	port, _ = strconv.Atoi(text)
	return host, port
}

// address is a host:port as servers show it; "" if it is none: a service's name, or a number that no port has, would be taken for something else.
func address(text string) string {
	host, port, err := net.SplitHostPort(text)
	n, nerr := strconv.ParseUint(port, 10, 16)
	if err != nil || nerr != nil || host == "" || n == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10))
}

// RebuildHost is the host name at which a replica of a source points while it is rebuilt. The name of the source is left out if no server would take it with that.
func RebuildHost(host string) string {
	if len(host)+len(follow.RebuildingSuffix) > longestHost {
		host = "source"
	}
	return host + follow.RebuildingSuffix
}

// Rebuilt reports whether a channel belongs to a replica that is being rebuilt, and the address that it had before, which may be of a host called "source".
func Rebuilt(source string) (address string, ok bool) {
	return follow.Unmarked(source, follow.RebuildingSuffix)
}

// longestHost is how long the name of a source may be, on servers before MySQL 8.0.17 and MariaDB before 10.6.
const longestHost = 60

// Attached is the address that a detached channel had before; ok is false if it is not detached.
func Attached(source string) (address string, ok bool) {
	return follow.Unmarked(source, follow.DetachedSuffix)
}
