package read

import (
	"context"
	sqldriver "database/sql/driver"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// Client is a session of a client: no thread of the server's own, no replica that reads the binary log, nobody who is still logging in.
type Client struct {
	ID      int64  `json:"id"`
	User    string `json:"user"`
	Host    string `json:"host,omitempty"`
	Command string `json:"command"` // Sleep: it is idle; Killed: it is to end
	State   string `json:"state,omitempty"`
}

// Killed reports whether it was told to end. Its client has no connection any more.
func (c Client) Killed() bool { return c.Command == "Killed" }

// Clients lists the sessions of clients. It waits for no lock that statements hold.
func Clients(ctx context.Context, c *mysql.Conn) (list []Client, err error) {
	// Columns: Id, User, Host, db, Command, Time, State, Info, and some more.
	err = c.Query(ctx, "SHOW /* risso: which clients are there? */ PROCESSLIST", func(row []sqldriver.Value) error {
		p := Client{ID: whole(row[0]), User: mysql.Text(row[1]), Host: mysql.Text(row[2]), Command: mysql.Text(row[4]), State: mysql.Text(row[6])}
		if p.User != systemUser && p.User != "unauthenticated user" && p.Command != "Daemon" && !strings.HasPrefix(p.Command, "Binlog Dump") && !strings.HasPrefix(p.Command, "Slave") {
			list = append(list, p)
		}
		return nil
	})
	return list, err
}
