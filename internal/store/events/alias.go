package events

import (
	"context"
	"strings"
)

// A class has one ID and two kinds of aliases: what pt-query-digest calls it, and the DIGEST that each server has for it.

// hexName is a name in hex as it was pasted: pt-query-digest prints 0x before its IDs. "" is none.
func hexName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = strings.TrimPrefix(name, "0x")
	if strings.Trim(name, "0123456789abcdef") != "" {
		return ""
	}
	return name
}

// checkName refuses what can be no name of a class: IDs, pt-query-digest's and DIGEST of MySQL 5.7 and MariaDB have 32 hex
// digits, DIGEST of MySQL 8 has 64.
func checkName(name string) error {
	if h := hexName(name); len(h) == 32 || len(h) == 64 {
		return nil
	}
	_, err := key(strings.TrimPrefix(name, "0x"))
	if err == nil {
		err = badQuestion("a class ID consists of hex digits, not %q", name)
	}
	return err
}

// resolve finds the class of a name. One that is not known stays what it is, and then nothing is found.
func (a asker) resolve(ctx context.Context, name string) (int64, error) {
	h := hexName(name)
	k, err := key(h[:32])
	if err != nil {
		return 0, err
	}
	for _, find := range []struct{ from, name string }{
		{"risso_classes WHERE id = ?", strings.ToUpper(h)}, {"risso_classes WHERE pt_id = ?", strings.ToUpper(h)}, {"risso_seen WHERE lower(digest) = ?", h},
	} {
		found := false
		err := a.b.query(ctx, "SELECT class FROM "+find.from+" LIMIT 1", []any{find.name}, func(scan func(...any) error) error {
			found = true
			return scan(&k)
		})
		if err != nil || found {
			return k, wrap("find the class of a name", err)
		}
	}
	return k, nil
}

// searchName is a search that may be the beginning of a name, without 0x; "" if it is something else.
func searchName(search string) string {
	if h := hexName(search); len(h) >= 8 {
		return h
	}
	return ""
}
