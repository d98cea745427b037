package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// PlanChange is a statement whose plan is another on the new server, or that it refuses.
type PlanChange struct {
	Class  string   `json:"class"`
	SQL    string   `json:"sql"`
	Calls  int64    `json:"calls"`
	Before []string `json:"before,omitempty"` // the plan in text on the old version
	After  []string `json:"after,omitempty"`
	Error  string   `json:"error,omitempty"` // the new server refuses it, in its words
}

// statementsByRules looks at the application's statements with the rules.
func (t *trial) statementsByRules() {
	for _, s := range t.Statements {
		t.out.Problems = append(t.out.Problems, upgrade.Statement(t.d, t.kind, s.Class, s.SQL)...)
	}
}

// plans runs the application's statements through EXPLAIN on the new server and on a throw-away one of the old version. Both have the same
// definitions and no rows, so that what differs is the version's; the live server's plans, made of real statistics, would differ for other
// reasons.
func (t *trial) plans(ctx context.Context, to mysql.Target) (err error) {
	if len(t.Statements) == 0 {
		return nil
	}
	t.statementsByRules()
	spec := string(sandbox.FamilyOf(t.d.Server.Flavour)) + "-" + t.d.Server.Number.Series()
	old, err := t.baseline(ctx, spec)
	if errors.Is(err, sandbox.ErrNoServer) {
		t.open("plans", "no "+spec+" is installed here to compare with: only what the new version refuses is told", "")
	} else if err != nil {
		return err
	} else {
		defer func() { err = errors.Join(err, down(ctx, old)) }()
		t.open("plans", "they are of tables without rows, on both versions: a plan that changes with the data is not seen", "")
	}
	after, err := mysql.Connect(ctx, to, nil)
	if err != nil {
		return err
	}
	defer after.Close()
	var before *mysql.Conn
	if old != nil {
		from, err := target(old.Primary())
		if err != nil {
			return err
		}
		if before, err = mysql.Connect(ctx, from, nil); err != nil {
			return err
		}
		defer before.Close()
	}
	t.Progress("compare plans")
	for _, s := range t.Statements {
		if err := t.plan(ctx, before, after, s); err != nil {
			return err
		}
	}
	return nil
}

// baseline is a throw-away server of the old version with the definitions.
func (t *trial) baseline(ctx context.Context, spec string) (*sandbox.Sandbox, error) {
	box, err := t.up(ctx, spec)
	if err != nil {
		return nil, err
	}
	to, err := target(box.Primary())
	if err == nil {
		quiet := *t // what it counts and notes is of the other server
		quiet.out = &Answer{}
		l := &loader{trial: &quiet}
		if err = l.open(ctx, to); err == nil {
			err = l.load(ctx)
		}
		l.close()
	}
	if err != nil {
		return nil, errors.Join(err, down(ctx, box))
	}
	return box, nil
}

// plan compares the plans of one statement; before is nil if there is no old version to ask.
func (t *trial) plan(ctx context.Context, before, after *mysql.Conn, s Statement) error {
	r := plan.Request{SQL: s.SQL, Database: s.Database}
	var was *plan.Taken
	if before != nil {
		var err error
		if was, err = plan.Take(ctx, before, r); err != nil {
			if ctx.Err() != nil {
				return err
			}
			t.open("the statement "+s.Class, "its plan cannot be had on the old version either: "+err.Error(), "")
			return nil
		}
	}
	now, err := plan.Take(ctx, after, r)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if mysql.ErrorNumber(err) == 0 {
			t.open("the statement "+s.Class, err.Error(), "")
			return nil
		}
		t.out.Compared++
		t.out.Plans = append(t.out.Plans, PlanChange{Class: s.Class, SQL: s.SQL, Calls: s.Calls, Error: fmt.Sprintf("%s (error %d)", said(err), mysql.ErrorNumber(err))})
		return nil
	}
	t.out.Compared++
	if was == nil || plan.Shape(was.Plan) == plan.Shape(now.Plan) {
		return nil
	}
	t.out.Plans = append(t.out.Plans, PlanChange{Class: s.Class, SQL: s.SQL, Calls: s.Calls,
		Before: plan.Text(was.Plan, plan.TextOptions{}), After: plan.Text(now.Plan, plan.TextOptions{})})
	return nil
}
