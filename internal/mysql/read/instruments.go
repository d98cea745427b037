package read

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	"github.com/rissodb/risso/internal/mysql"
)

// ErrNoInstruments is what Traceable's errors wrap: the server cannot tell what a connection does.
var ErrNoInstruments = errors.New("performance_schema cannot show what a connection does")

// Traceable says whether performance_schema records what this package's readers of events need: nested statements with the
// stored program they belong to, transactions, and threads.HISTORY (MySQL 5.7.8; MariaDB took them over in 10.5). The error's
// second half is what the user must do.
func Traceable(s mysql.Server) error {
	switch {
	case s.MariaDB() && s.Number < 100500:
		return fmt.Errorf("%w: MariaDB %s keeps no nested events; that came with MariaDB 10.5", ErrNoInstruments, s.Version)
	case !s.MariaDB() && s.Number < 50708:
		return fmt.Errorf("%w: MySQL %s keeps no nested events; that came with MySQL 5.7.8", ErrNoInstruments, s.Version)
	case !s.PerformanceSchema:
		return fmt.Errorf("%w: it is off, and can be switched on only at server start: write performance_schema=ON under [%s] in the server's option file and restart it", ErrNoInstruments, optionGroup(s))
	}
	return nil
}

// optionGroup is the section of an option file for this flavour.
func optionGroup(s mysql.Server) string {
	if s.MariaDB() {
		return "mariadb"
	}
	return "mysqld"
}

// Started is when the server process began, in Unix seconds of the server's clock. It stays the same within a second or two
// as long as the process lives, whatever happens to the clock.
func Started(ctx context.Context, c *mysql.Conn) (int64, error) {
	var up, now int64
	err := c.Query(ctx, `SHOW /* risso: since when does the server run? */ GLOBAL STATUS LIKE 'Uptime'`, func(row []sqldriver.Value) (err error) {
		up, err = strconv.ParseInt(mysql.Text(row[1]), 10, 64)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = c.Query(ctx, `SELECT /* risso: the server's clock */ UNIX_TIMESTAMP()`, func(row []sqldriver.Value) (err error) {
		now, err = strconv.ParseInt(mysql.Text(row[0]), 10, 64)
		return err
	})
	return now - up, err
}
