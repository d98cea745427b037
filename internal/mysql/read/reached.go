package read

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Mark is a position in what a server has written: a replica that has reached it has everything that was committed before.
type Mark struct {
	GTID   string // MySQL: gtid_executed; MariaDB: gtid_binlog_pos
	File   string // without GTIDs: the binary log's name, and its end
	Offset int64
}

// ErrNoMark says that a server writes no binary log, so that nothing can replicate from it.
var ErrNoMark = errors.New("the server writes no binary log")

// MarkOf reads how far the server has written.
func MarkOf(ctx context.Context, c *mysql.Conn) (Mark, error) {
	var m Mark
	question := "SELECT /* risso: how far is it? */ @@GLOBAL.gtid_binlog_pos"
	if !c.Server.MariaDB() {
		question = "SELECT /* risso: how far is it? */ IF(@@GLOBAL.gtid_mode = 'ON', @@GLOBAL.gtid_executed, '')"
	}
	err := c.Query(ctx, question, func(row []sqldriver.Value) error {
		m.GTID = strings.ReplaceAll(mysql.Text(row[0]), "\n", "")
		return nil
	})
	if err != nil || m.GTID != "" {
		return m, err
	}
	rows, err := c.Maps(ctx, c.Server.LogStatusStatement())
	switch {
	case err != nil:
		return m, lacking(c, err, c.Server.LogsPrivilege())
	case len(rows) == 0:
		return m, ErrNoMark
	}
	m.File = rows[0]["File"]
	m.Offset, err = strconv.ParseInt(rows[0]["Position"], 10, 64)
	return m, err
}

// Reach waits at most that long for a replica to apply everything up to a mark of its primary, and says whether it did.
func Reach(ctx context.Context, c *mysql.Conn, m Mark, wait time.Duration) (bool, error) {
	const slice = time.Second // less than the time-out of a read
	end := time.Now().Add(wait)
	for {
		left := max(time.Until(end), 0)
		answer := ""
		err := c.QuietQuery(ctx, reachStatement(c, m, min(left, slice)), func(row []sqldriver.Value) error {
			answer = mysql.Text(row[0])
			return nil
		})
		if err != nil {
			return false, err
		}
		if n, err := strconv.ParseInt(answer, 10, 64); err == nil && (n == 0 || n > 0 && m.GTID == "") {
			return true, nil
		}
		if time.Until(end) <= 0 {
			return false, nil
		}
		if answer == "" { // NULL comes immediately: the applier thread is not running
			if err := delay.For(ctx, min(left, 200*time.Millisecond)); err != nil {
				return false, err
			}
		}
	}
}

// reachStatement waits on the server. Before 8.0 MySQL takes whole seconds only. Source: MySQL manual, "Functions Used with Global
// Transaction Identifiers"; MariaDB's MASTER_GTID_WAIT.
func reachStatement(c *mysql.Conn, m Mark, wait time.Duration) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "") + "'" }
	seconds := fmt.Sprint(int(max(1, wait.Seconds())))
	if c.Server.MariaDB() || c.Server.AtLeast(80000, fleet.Never) {
		seconds = fmt.Sprintf("%.3f", max(0.001, wait.Seconds()))
	}
	switch {
	case m.GTID != "" && c.Server.MariaDB():
		return "SELECT /* risso: wait for the primary's place */ MASTER_GTID_WAIT(" + quoted(m.GTID) + ", " + seconds + ")"
	case m.GTID != "":
		return "SELECT /* risso: wait for the primary's place */ WAIT_FOR_EXECUTED_GTID_SET(" + quoted(m.GTID) + ", " + seconds + ")"
	case c.Server.AtLeast(80026, fleet.Never):
		return fmt.Sprintf("SELECT /* risso: wait for the primary's place */ SOURCE_POS_WAIT(%s, %d, %s)", quoted(m.File), m.Offset, seconds)
	}
	return fmt.Sprintf("SELECT /* risso: wait for the primary's place */ MASTER_POS_WAIT(%s, %d, %s)", quoted(m.File), m.Offset, seconds)
}

// OwnWrites returns the transactions that a replica has and its primary does not, as a set of GTIDs; "" for none. known is false if
// this is unknown because GTIDs are not in use.
func OwnWrites(ctx context.Context, replica, primary *mysql.Conn) (own string, known bool, err error) {
	if replica.Server.MariaDB() != primary.Server.MariaDB() {
		return "", false, nil
	}
	question := "SELECT /* risso: does the replica have writes of its own? */ @@GLOBAL." + replica.Server.ExecutedTransactions()
	ask := func(c *mysql.Conn) (v string, err error) {
		err = c.QuietQuery(ctx, question, func(row []sqldriver.Value) error {
			v = mysql.Text(row[0])
			return nil
		})
		return v, err
	}
	there, err := ask(replica) // the replica first, as it lags behind
	if err != nil {
		return "", false, err
	}
	here, err := ask(primary)
	if err != nil || here == "" {
		return "", false, err
	}
	extra, err := mysql.ErrantTransactions(there, here)
	return extra.String(), err == nil, err
}
