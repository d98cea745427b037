package read

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// errTooLong says that an answer is longer than a caller can use.
var errTooLong = errors.New("the answer is too long")

// maxPlan is the length of the longest plan that is taken, in bytes.
const maxPlan = 1 << 20

// ExplainJSON asks for the plan of a statement without running it. The caller must make sure that the statement only reads, as
// EXPLAIN materializes some derived tables on old servers. The server gives up after limit.
func ExplainJSON(ctx context.Context, c *mysql.Conn, schema, statement string, limit time.Duration) (plan string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+2*time.Second)
	defer cancel()
	if schema != "" {
		if err := c.Query(ctx, "USE /* risso: plan history */ "+mysql.Quote(schema), mysql.IgnoreRow); err != nil {
			return "", err
		}
	}
	for _, set := range explainLimits(c.Server, limit) {
		if err := c.Query(ctx, set, mysql.IgnoreRow); err != nil {
			return "", err
		}
	}
	err = c.InTheirMode(ctx, func() error {
		return c.QuietQuery(ctx, "EXPLAIN /* risso: plan history */ FORMAT=JSON "+statement, func(row []sqldriver.Value) error {
			if plan = mysql.Text(row[0]); len(plan) > maxPlan {
				return errTooLong
			}
			return nil
		})
	})
	return plan, err
}

// ExplainRunning returns the plan, in JSON, of the statement that another session runs; "" if the server does not show it: MariaDB
// before 10.9, and MySQL for prepared statements (EXPLAIN FOR CONNECTION refuses them with error 3012).
func ExplainRunning(ctx context.Context, c *mysql.Conn, s Session, limit time.Duration) (plan string, err error) {
	ways := c.Server.ExplainConnection(s.ID)
	if len(ways) == 0 || ways[0].Name != "json" || s.Prepared && !c.Server.MariaDB() {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit+2*time.Second)
	defer cancel()
	for _, set := range explainLimits(c.Server, limit) {
		if err := c.Query(ctx, set, mysql.IgnoreRow); err != nil {
			return "", err
		}
	}
	c.Traffic().Note(c.Server.ExplainConnection(0)[0].Prefix) // its class, without the number
	err = c.QuietQuery(ctx, ways[0].Prefix, func(row []sqldriver.Value) error {
		if plan = mysql.Text(row[0]); len(plan) > maxPlan {
			return errTooLong
		}
		return nil
	})
	return plan, err
}

// explainLimits bounds how long statements of this session may take: SELECT, and EXPLAIN with its derived tables.
func explainLimits(s mysql.Server, limit time.Duration) []string {
	if s.MariaDB() {
		return []string{fmt.Sprintf("SET SESSION /* risso: bound explain */ max_statement_time = %.3f, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1", limit.Seconds())}
	}
	return []string{fmt.Sprintf("SET SESSION /* risso: bound explain */ max_execution_time = %d, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1", limit.Milliseconds())}
}
