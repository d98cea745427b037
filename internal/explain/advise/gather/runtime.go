package gather

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// runtime reads which settings were made while the server ran.
func (g *gatherer) runtime(ctx context.Context) error {
	const what = "settings that the next start takes back"
	if g.o.Wanted != nil && !slices.ContainsFunc(advise.TogetherChecks(), func(c advise.Check) bool { return g.o.Wanted(c.ID) }) {
		return nil
	}
	statement := g.server.RuntimeSettings()
	if statement == "" {
		g.unread(what, "this version does not tell how a setting got its value", "")
		return nil
	}
	var list []advise.RuntimeSetting
	err := g.query(ctx, statement, func(row [][]byte) error {
		r := advise.RuntimeSetting{Name: strings.ToLower(string(row[0])), Value: string(row[1]), Persisted: string(row[2]), Kept: row[2] != nil, By: string(row[3]), At: string(row[4])}
		if !read.Moving(r.Name) && !read.IdentityVariable(r.Name) && !read.Secret(r.Name) {
			list = append(list, r)
		}
		return nil
	})
	if err != nil {
		return g.missing(what, err)
	}
	for _, r := range list {
		if newer := twin(r.Name); newer != "" && slices.ContainsFunc(list, func(o advise.RuntimeSetting) bool { return o.Name == newer }) {
			continue
		}
		global, err := g.setForAll(ctx, r)
		if err != nil {
			return err
		}
		if global {
			g.server.Runtime = append(g.server.Runtime, r)
		}
	}
	return nil
}

// setForAll reports whether a setting was made for the whole server, as far as that can be told: some servers list what a session set for itself
// as well. If sessions can have it, only one whose global value is not the compiled-in one counts; of others that value is not known.
func (g *gatherer) setForAll(ctx context.Context, r advise.RuntimeSetting) (bool, error) {
	if r.Kept {
		return true, nil
	}
	if value, known := g.server.SettingDefault(r.Name); known {
		return !differ.SameValue(r.Name, value, r.Value), nil
	}
	if !g.server.ListsSessionSettings() {
		return true, nil
	}
	err := g.query(ctx, "SELECT /* risso: do sessions have it for themselves? */ @@SESSION."+r.Name, func([][]byte) error { return nil })
	if mysql.ErrorNumber(err) == errno.ReadOnlyVariable {
		return true, nil
	}
	return false, g.missing("whether sessions have "+r.Name+" for themselves", err)
}

// twin is the other name of a setting that servers list twice; "" if it has none, or is the one to tell of.
func twin(name string) string {
	if name == "expire_logs_days" {
		return "binlog_expire_logs_seconds"
	}
	if newer := differ.Canonical(name); newer != name {
		return newer
	}
	return ""
}
