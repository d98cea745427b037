package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/rissodb/risso/internal/fault"
)

// Result is the result of one statement: no columns if it returned no rows.
type Result struct {
	Columns []string    `json:"columns"`
	Rows    [][]*string `json:"rows"` // nil for NULL
}

// Query runs one or more statements, separated by semicolons, as root.
func (n *Node) Query(ctx context.Context, statements string) ([]Result, error) {
	if limit := n.sandbox.answer; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer after %s", limit))
		defer cancel()
	}
	all, err := n.query(ctx, statements)
	if cause := context.Cause(ctx); err != nil && cause != nil && ctx.Err() != cause {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return all, err
}

func (n *Node) query(ctx context.Context, statements string) ([]Result, error) {
	c := n.Config()
	c.MultiStatements = true
	db, err := open(c)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, statements)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	defer rows.Close()
	var all []Result
	for {
		r, err := readResult(rows)
		if err != nil {
			return all, fmt.Errorf("node %s: %w", n.Name, err)
		}
		all = append(all, r)
		if !rows.NextResultSet() {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return all, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return all, nil
}

func readResult(rows *sql.Rows) (Result, error) {
	names, err := rows.Columns()
	if err != nil {
		return Result{}, err
	}
	r := Result{Columns: names, Rows: [][]*string{}}
	for rows.Next() {
		values := make([]*string, len(names))
		targets := make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, values)
	}
	return r, rows.Err()
}

// Client is the command of an interactive client that is connected as root: the
// one of the server's own installation, else one on PATH.
func (n *Node) Client(ctx context.Context, args []string) (*exec.Cmd, error) {
	names := []string{"mysql", "mariadb"}
	if n.Program.Family == FamilyMariaDB {
		names = []string{"mariadb", "mysql"}
	}
	path, ok := n.Program.tool(names...)
	if !ok {
		return nil, fault.New(fault.Usage, "install a client (Debian: mariadb-client), or give statements after --", errors.New("neither mysql nor mariadb is installed"))
	}
	args = append([]string{"--no-defaults", "--user=root", "--socket=" + n.Socket}, args...)
	cmd := exec.CommandContext(ctx, path, args...)
	// A client on a terminal gets Ctrl-C itself.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = environ(basedir(path))
	return cmd, nil
}
