package trial

import (
	"context"

	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/mysql"
)

// PlanChange is a statement whose plan is another on the new server.
type PlanChange struct {
	Class  string   `json:"class"`
	SQL    string   `json:"sql"`
	Calls  int64    `json:"calls"`
	Before []string `json:"before,omitempty"` // the plan in text, on the old version
	After  []string `json:"after,omitempty"`
	Error  string   `json:"error,omitempty"` // the new server refuses it
}

// statementsByRules looks at statements where there is no server to ask.
func (t *trial) statementsByRules() {
	for _, s := range t.Statements {
		t.out.Problems = append(t.out.Problems, upgrade.Statement(t.d, t.kind, s.Class, s.SQL)...)
	}
}

func (t *trial) plans(ctx context.Context, to mysql.Target) error { return nil }
