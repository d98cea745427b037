package load

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/oneline"
)

// errUnseen says that there were more warnings than the server keeps: one of them may be of a row that broke a CHECK.
var errUnseen = errors.New("the server had more warnings than it reports")

// ofValues are warnings about values that a server computes with, or changes. Where it computes nothing, they are about a row's own values.
// Source: MySQL manual, "Server Error Message Reference": wrong value, out of range, truncated, wrong for its column, division by 0, wrong for a
// function, date out of range, no JSON for a CAST.
var ofValues = map[string]bool{"1292": true, "1264": true, warnTruncated: true, "1366": true, "1365": true, "1411": true, "1441": true, "3156": true}

// computes reports whether a server computes something of each row of a table: for a CHECK, a generated column, a key over an expression, a
// partition. It then warns each time about the values; the comparison shows whether the rows are as they were.
func (d definition) computes() bool {
	return partitioning(d.tail) >= 0 || slices.ContainsFunc(d.items, func(item string) bool {
		if isAnyKey(item) {
			return strings.Contains(item, "((") || strings.Contains(item, ",(")
		}
		return asDefault.Has(item, "CHECK") || strings.HasPrefix(item, "`") && generatedAt(item[nameEnd(item):]) >= 0
	})
}

// hasChecks reports whether the target may refuse rows of a table for a CHECK.
func (r *run) hasChecks(d definition) bool {
	return r.server.AlwaysChecks() && slices.ContainsFunc(d.items, func(item string) bool { return asDefault.Has(item, "CHECK") })
}

// refusedByCheck reports whether rows may have been refused by a CHECK: one that they break, on a server that did not check it, was told not to,
// or computes otherwise; or one that cannot be computed here.
func (t *table) refusedByCheck(err error) bool {
	var w *warned
	if errors.As(err, &w) {
		return w.code == strconv.Itoa(errno.CheckViolated)
	}
	return errors.Is(err, errUnseen) || mysql.ErrorNumber(err) != 0 && !passes(err)
}

// loosen relaxes a table's checks if they may have kept rows out. It is true once none is in the way.
func (r *run) loosen(ctx context.Context, s *session, t *table) (loose bool, err error) {
	if !t.checked || !t.loose.Load() {
		return !t.checked, nil
	}
	names, err := r.checksOf(ctx, s, t, true)
	if err != nil || len(names) == 0 {
		return true, err
	}
	return true, s.Exec(ctx, "ALTER TABLE "+mark+" "+t.quoted()+" ALTER CHECK "+strings.Join(names, " NOT ENFORCED, ALTER CHECK ")+" NOT ENFORCED")
}

// checksOf returns the quoted names of a table's checks in the target: of those that are enforced, or of those that are not.
func (r *run) checksOf(ctx context.Context, s *session, t *table, enforced bool) (names []string, err error) {
	there, err := r.defined(ctx, s, t.schema, t.name)
	if err != nil {
		return nil, err
	}
	for _, item := range there.items {
		name, _ := constraintName(item)
		if name != "" && !isForeignKey(item) && asDefault.Has(item, "CHECK") && asDefault.Has(item, "NOT", "ENFORCED") != enforced {
			names = append(names, mysql.Quote(name))
		}
	}
	return names, nil
}

// tighten enforces the checks again that were relaxed. One that the rows break, or that the server cannot compute, stays relaxed, and is
// reported.
func (r *run) tighten(ctx context.Context, s *session, t *table) error {
	if !t.checked || !t.loose.Load() && !r.resumed {
		return nil
	}
	names, err := r.checksOf(ctx, s, t, false)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(t.def.items, func(item string) bool {
			own, _ := constraintName(item)
			return mysql.Quote(own) == name && asDefault.Has(item, "NOT", "ENFORCED")
		}) {
			continue // it was not on its original server
		}
		err := s.Exec(ctx, "ALTER TABLE "+mark+" "+t.quoted()+" ALTER CHECK "+name+" ENFORCED")
		if err != nil && (mysql.ErrorNumber(err) == 0 || passes(err)) {
			return err
		}
		if err == nil {
			continue
		}
		f := Finding{Trouble: fleet.Trouble{What: "table " + t.quoted(), Why: "rows of the backup violate its constraint " + name + " (" + oneline.Of(err.Error()) + ")"}, Mapped: "the constraint NOT ENFORCED"}
		if err := r.tell(ctx, s, t, told{Otherwise: &f}); err != nil {
			return err
		}
	}
	return nil
}

// oneLine is an error's text without line feeds.
