package read

import (
	"context"
	sqldriver "database/sql/driver"
	"strconv"

	"github.com/rissodb/risso/internal/mysql"
)

// SessionState is what a session does now.
type SessionState struct {
	There     bool   // the session exists
	State     string // as the server names it
	Statement string // "" it runs none
	Waits     bool   // it waits for a lock that is not of rows: a metadata lock, a table to be closed, a backup
}

// SessionStateOf reads what one session does. It is read several times a second while an ALTER TABLE runs, and not remembered among Risso's texts.
func SessionStateOf(ctx context.Context, c *mysql.Conn, id int64) (s SessionState, err error) {
	statement := "SELECT /* risso: what does it do */ STATE, INFO FROM information_schema.PROCESSLIST WHERE ID = "
	if c.Server.PerformanceSchema {
		statement = "SELECT /* risso: what does it do */ PROCESSLIST_STATE, PROCESSLIST_INFO FROM performance_schema.threads WHERE PROCESSLIST_ID = "
	}
	err = c.QuietQuery(ctx, statement+strconv.FormatInt(id, 10), func(row []sqldriver.Value) error {
		s = SessionState{There: true, State: mysql.Text(row[0]), Statement: mysql.Text(row[1])}
		_, s.Waits = kindOfState(s.State)
		return nil
	})
	return s, err
}
