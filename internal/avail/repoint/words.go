package repoint

import (
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// words are the statements about one channel of a server.
type words struct {
	server  mysql.Server
	channel string
	several bool // it has others
	beat    time.Duration
}

// only lets a statement mean the one channel.
func (w words) only(statement string) string {
	if w.several && w.channel == "" {
		return w.server.DefaultChannel(statement)
	}
	return statement
}

func (w words) start(t mysql.Thread) string { return w.only(w.server.StartThread(w.channel, t)) }
func (w words) stop(t mysql.Thread) string  { return w.only(w.server.StopThread(w.channel, t)) }
func (w words) startBoth() string           { return w.only(w.server.StartReplica(w.channel)) }
func (w words) stopBoth() string            { return w.only(w.server.StopReplica(w.channel)) }

func (w words) startUntil(log string, pos int64) string {
	return w.only(w.server.StartUntil(w.channel, log, pos))
}

// point changes the channel; how often its source says that it lives stays, which the server would set anew.
func (w words) point(p mysql.Pointing) string {
	if p.Host != "" || !w.server.DelaysWhileReceiving() {
		p.Beat = w.beat
	}
	return w.only(w.server.Point(w.channel, p))
}

func (w words) relayEvents(log string, pos int64) string {
	return w.only(w.server.RelayEvents(w.channel, log, pos, mostEvents))
}
