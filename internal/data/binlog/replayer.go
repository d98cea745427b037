package binlog

import (
	"context"
	"fmt"
	"strconv"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql"
)

// replayer is a session that replays: several statements together, for as long as they take, byte for byte. What a log has is sent as
// a single statement. It belongs to one goroutine.
type replayer struct {
	s         *mysql.Stream
	Server    mysql.Server
	MaxPacket int // max_allowed_packet, in bytes
}

// replayPatience is how long a replayed statement may take: an ALTER of a large table takes days.
const replayPatience = 30 * 24 * time.Hour

// connectReplayer opens a session. It waits for statements as long as they take: the caller ends their contexts.
func connectReplayer(ctx context.Context, t mysql.Target) (*replayer, error) {
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := &replayer{Server: c.Server}
	most, err := c.Text(ctx, "SELECT /* risso: how long may a statement be? */ @@GLOBAL.max_allowed_packet")
	if err != nil {
		return nil, fmt.Errorf("%s: ask for max_allowed_packet: %w", t, err)
	}
	r.MaxPacket, _ = strconv.Atoi(most)
	r.s, err = t.WithDatabase("").ConnectStream(ctx, mysql.StreamOptions{Patience: replayPatience})
	return r, err
}

// Exec runs Risso's own statements, separated by semicolons; the first error ends them. When ctx ends, so does the session.
func (r *replayer) Exec(ctx context.Context, statements string) error {
	return r.exec(ctx, statements, true)
}

// ExecOne runs a statement from elsewhere. The server reads it as one, whatever is in it: if another one follows it, it is
// refused as a syntax error.
func (r *replayer) ExecOne(ctx context.Context, statement string) error {
	return r.exec(ctx, statement, false)
}

func (r *replayer) exec(ctx context.Context, statements string, several bool) error {
	if len(statements)+1 > r.MaxPacket && r.MaxPacket > 0 {
		return driver.ErrPktTooLarge
	}
	return r.s.ExecText(ctx, statements, several)
}

// Value runs one statement and returns the first value of its first row; "" for NULL or no row.
func (r *replayer) Value(ctx context.Context, statement string) (string, error) {
	list, err := r.Values(ctx, statement)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0], nil
}

// Values runs one statement and returns the first value of each row; "" for NULL.
func (r *replayer) Values(ctx context.Context, statement string) (list []string, err error) {
	err = r.s.Query(ctx, statement, func(row [][]byte) error {
		list = append(list, string(row[0]))
		return nil
	})
	return list, err
}

// Close ends the session. What it has not committed is rolled back.
func (r *replayer) Close() error { return r.s.Close() }
