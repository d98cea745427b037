package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/explain/digest/live"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// live digests performance_schema of one server.
func (j *digestJob) live(ctx context.Context) error {
	target, err := j.Target()
	if err != nil {
		return err
	}
	var traffic mysql.Traffic
	c, err := mysql.Connect(ctx, target, &traffic)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := live.New(c, &traffic, live.Options{For: j.window, GroupBy: j.groupBy, OrderBy: j.orderBy, Samples: j.options.Samples, SampleBytes: j.options.SampleBytes, Redact: j.redact, Own: j.own,
		Reconnect: func(ctx context.Context) (*mysql.Conn, error) { return mysql.Connect(ctx, target, &traffic) }})
	if err != nil {
		return fault.New(fault.Usage, "", err)
	}
	if screen.OnTerminal(j.s.Err) && j.window > 0 {
		fmt.Fprintf(j.s.Err, "watching %s for %s …", target.Address(), j.window)
		defer fmt.Fprint(j.s.Err, "\r\x1b[K")
	}
	p, err := r.Read(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case err != nil && mysql.ClassOf(err) == mysql.ClassPrivilege:
		return fault.New(fault.Failed, c.Server.GrantPerformanceSchema(), fmt.Errorf("%s: %w", target, err))
	case err != nil:
		return fmt.Errorf("%s: %w", target, err)
	}
	j.report.Source = strings.TrimSpace(target.Address())
	j.report.Notes = append(j.report.Notes, r.Notes()...)
	return j.write(p)
}
