package sandboxtest

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
)

// LogPosition is where a server writes its binary log now: file and byte.
func LogPosition(t testing.TB, c *mysql.Conn) (file string, pos int64) {
	t.Helper()
	rows, err := c.Maps(t.Context(), "SHOW MASTER STATUS")
	if err != nil { // the old words were removed in MySQL 8.4
		var again error
		if rows, again = c.Maps(t.Context(), "SHOW BINARY LOG STATUS"); again != nil {
			t.Fatal(errors.Join(err, again))
		}
	}
	if len(rows) == 0 {
		t.Fatal("the server writes no binary log (log_bin is off)")
	}
	if pos, err = strconv.ParseInt(rows[0]["Position"], 10, 64); err != nil {
		t.Fatal(fmt.Errorf("the position of the binary log: %w", err))
	}
	return rows[0]["File"], pos
}
