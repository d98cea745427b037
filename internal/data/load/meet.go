package load

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// mayMeet reports whether strings that a collation distinguishes may be equal in its replacement here, and which that is.
func (r *run) mayMeet(name string) (to string, may bool) {
	to, mapped := r.mapped[strings.ToLower(name)]
	if !mapped || strings.HasSuffix(to, "_bin") {
		return to, false
	}
	_, same := otherName(strings.ToLower(name), r.known.collations)
	return to, !same
}

// meeting is a unique key over columns whose collations become others.
type meeting struct {
	key, column  string
	from, to     string
	schema, name string // of the table
}

// meetingsOf are those of a table.
func (r *run) meetingsOf(t *repo.Table) (list []meeting, err error) {
	if len(r.mapped) == 0 {
		return nil, nil
	}
	shape, err := define.ParseTable(t.Schema, t.Create)
	if err != nil {
		return nil, err
	}
	for _, k := range shape.Keys {
		if !k.Unique {
			continue
		}
		for _, p := range k.Parts {
			c, ok := shape.Column(p.Column)
			if !ok || c.Charset == "" {
				continue
			}
			from := c.Collation
			if from == "" && c.Charset == shape.Charset {
				from = shape.Collation
			}
			if to, may := r.mayMeet(from); may {
				list = append(list, meeting{k.Name, c.Name, from, to, t.Schema, t.Name})
			}
		}
	}
	return list, nil
}

// tellMeetings says in the plan which collations become others under which unique keys may take two values for one.
func (r *run) tellMeetings() error {
	if len(r.mapped) == 0 {
		return nil
	}
	found := map[[2]string][]string{}
	var order [][2]string
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		list, err := r.meetingsOf(l.Table)
		if err != nil {
			return err
		}
		for _, m := range list {
			pair := [2]string{m.from, m.to}
			if found[pair] == nil {
				order = append(order, pair)
			}
			if what := mysql.Quote(m.schema) + "." + mysql.Quote(m.name) + " (" + mysql.Quote(m.key) + ")"; !slices.Contains(found[pair][max(0, len(found[pair])-1):], what) {
				found[pair] = append(found[pair], what)
			}
		}
	}
	for _, pair := range order {
		list := found[pair]
		text := strings.Join(list[:min(len(list), maxNamed)], ", ")
		if n := len(list) - maxNamed; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("collation %s becomes %s, in which more values are equal: such rows cannot be inserted into %s: %s",
			pair[0], pair[1], digits.Plural(len(list), "unique key", "unique keys"), text))
	}
	return nil
}

// explainMeeting adds to an error about two rows that are one to a unique key which key of the table that may be, and why.
func (r *run) explainMeeting(t *table, err error) error {
	n := mysql.ErrorNumber(err)
	var w *warned
	if n != errno.DuplicateEntry && n != errno.DuplicateEntryOf && !(errors.As(err, &w) && w.code == strconv.Itoa(errno.DuplicateEntry)) {
		return err
	}
	list, perr := r.meetingsOf(&t.Table)
	if perr != nil {
		return errors.Join(err, perr)
	}
	var words []string
	for _, m := range list {
		words = append(words, fmt.Sprintf("%s over %s, whose collation %s became %s, in which more values are equal", mysql.Quote(m.key), mysql.Quote(m.column), m.from, m.to))
	}
	if len(words) == 0 {
		for _, k := range t.shape.Keys {
			if k.Unique {
				words = append(words, mysql.Quote(k.Name))
			}
		}
	}
	return fmt.Errorf("%w of %s (%s): %w", ErrMeet, t.quoted(), strings.Join(words, "; "), err)
}
