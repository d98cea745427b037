package perform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ErrReplicas is wrapped where replicas cannot be altered before their primary.
var ErrReplicas = errors.New("the replicas cannot be altered first")

// catchUp is how long a replica may take to have everything from its primary after it was altered.
const catchUp = time.Hour

// CheckReplicas makes sure that replicas may be altered first: the change lets row events through, they replicate from that primary, all that it has are
// named, and none has replicas of its own, which would never get the change.
func CheckReplicas(ctx context.Context, first alter.ReplicasFirst, primary mysql.Target, replicas []mysql.Target, connected []string, known bool) error {
	no := func(remedy, format string, args ...any) error {
		return fault.New(fault.Failed, remedy, fmt.Errorf("%w: %s", ErrReplicas, fmt.Sprintf(format, args...)))
	}
	if !first.Can {
		return no("leave --replicas-first out", "%s", first.Text)
	}
	if !known {
		return no("the account needs the privilege to list them", "the primary does not tell which replicas it has")
	}
	if len(connected) != len(replicas) {
		return no("name each of them with --replicas-first: on any other the change would be missing for good", "the primary has %d connected (%s), and %d are named", len(connected), strings.Join(connected, ", "), len(replicas))
	}
	p, err := mysql.Connect(ctx, primary, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	id, err := read.ServerID(ctx, p)
	if err != nil {
		return err
	}
	for _, t := range replicas {
		c, err := mysql.Connect(ctx, t, nil)
		if err != nil {
			return err
		}
		err = checkReplica(ctx, c, id, no)
		c.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

func checkReplica(ctx context.Context, c *mysql.Conn, primary string, no func(string, string, ...any) error) error {
	channels, err := read.ReplicaChannels(ctx, c)
	if err != nil {
		return err
	}
	follows := false
	for _, ch := range channels {
		follows = follows || ch.SourceID == primary && ch.IORunning && ch.SQLRunning
	}
	if !follows {
		return no("", "it does not replicate from the primary now")
	}
	below, err := read.ReplicaAddresses(ctx, c)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return no("", "it has replicas of its own (%s), which would never get the change", strings.Join(below, ", "))
	}
	v, err := read.Variables(ctx, c, []string{"super_read_only"})
	if err != nil {
		return err
	}
	if v["super_read_only"] == "ON" || v["super_read_only"] == "1" {
		return no("SET GLOBAL super_read_only = OFF there for that time; read_only may stay on", "super_read_only is on there, which no account can pass")
	}
	return nil
}

// Replica alters one replica, on it alone, and waits until it has everything from its primary again.
func Replica(ctx context.Context, primary mysql.Target, o Options) (Result, error) {
	o.NotLogged = true
	r, err := Run(ctx, o)
	if err != nil {
		return r, err
	}
	p, err := mysql.Connect(ctx, primary, nil)
	if err != nil {
		return r, err
	}
	defer p.Close()
	m, err := read.MarkOf(ctx, p)
	if err != nil {
		return r, fmt.Errorf("how far has the primary written: %w", err)
	}
	c, err := mysql.Connect(ctx, o.Target, nil)
	if err != nil {
		return r, err
	}
	defer c.Close()
	for end := time.Now().Add(catchUp); time.Now().Before(end); {
		reached, err := read.Reach(ctx, c, m, 5*time.Second)
		if err != nil || reached {
			return r, err
		}
		if err := delay.For(ctx, time.Second); err != nil {
			return r, err
		}
	}
	return r, fmt.Errorf("%s was altered, and has not caught up with its primary in %s", o.Target, catchUp)
}
