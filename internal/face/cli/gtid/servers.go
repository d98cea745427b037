package gtid

import (
	"context"
	"errors"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/mysql"
)

// named is a server that is asked.
type named struct {
	name   string
	target mysql.Target
}

// ask connects and reads.
func (n named) ask(ctx context.Context) (errant.Reading, error) {
	c, err := mysql.Connect(ctx, n.target, nil)
	if err != nil {
		return errant.Reading{}, err
	}
	defer c.Close()
	return errant.Read(ctx, n.name, c)
}

// servers are those that --dsn names.
func servers(f flags.Servers) (list []named, err error) {
	watched, err := f.Watched()
	if err != nil {
		return nil, err
	}
	for _, w := range watched {
		list = append(list, named{w.Instance.Name, w.Target})
	}
	return list, nil
}

// source is the server that --source names; ok is false if it names none.
func source(f flags.Servers, dsn string) (n named, ok bool, err error) {
	if dsn == "" {
		return n, false, nil
	}
	f.Dsns, f.All = []string{dsn}, false
	list, err := servers(f)
	if err != nil || len(list) == 0 {
		return n, false, errors.Join(errors.New("--source"), err)
	}
	return list[0], true, nil
}
