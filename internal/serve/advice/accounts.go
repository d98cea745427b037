package advice

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// AccountChecks are what Accounts looks for.
func AccountChecks() (list []advise.Check) {
	for _, r := range accounts.Rules() {
		list = append(list, advise.Check{ID: r.ID, Title: r.Title})
	}
	return list
}

// Accounts says what is wrong with a server's accounts by the built-in policy. Passwords are not tried: that takes time, and risso accounts does it.
func Accounts(ctx context.Context, target mysql.Target, name string) (found []advise.Finding, missing []fleet.Trouble, err error) {
	policy, err := accounts.Default()
	if err != nil {
		return nil, nil, fmt.Errorf("the built-in policy: %w", err)
	}
	r, err := read.Audit(ctx, read.Options{Sources: []read.Source{{Name: name, Target: target}}, Policy: policy}, time.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("read the accounts: %w", err)
	}
	for _, s := range r.Servers {
		if s.Error != "" {
			missing = append(missing, fleet.Trouble{What: "accounts", Why: s.Error})
		}
		missing = append(missing, s.Unread...)
	}
	for _, f := range r.Findings {
		a := advise.Finding{ID: f.ID, Object: f.Object, Severity: f.Severity, What: f.Object + " " + f.What, Why: f.Why, Evidence: []string{}, Statement: f.Statement, Undo: f.Undo, Advice: f.Remedy, Since: f.Since, Sure: advise.Certain}
		if f.Evidence != "" {
			a.Evidence = append(a.Evidence, f.Evidence)
		}
		if f.Statement != "" && f.Breaks != "" {
			a.Effect = "at once; " + f.Breaks
		}
		found = append(found, a)
	}
	return found, missing, nil
}
