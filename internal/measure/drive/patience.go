package drive

import "time"

// WithPatience is the target with another limit for the wait for one answer, for statements that may run long: an index
// of a large table, a check of all its rows.
func WithPatience(t Target, d time.Duration) Target {
	if p, ok := t.(interface{ withPatience(d time.Duration) Target }); ok {
		return p.withPatience(d)
	}
	return t
}

func (t mysqlTarget) withPatience(d time.Duration) Target { return mysqlTarget{t.at.WithPatience(d)} }

func (t postgresTarget) withPatience(d time.Duration) Target {
	t.patience = d
	return t
}
