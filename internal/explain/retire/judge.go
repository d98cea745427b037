// Package retire takes an index out of use step by step, over weeks: hidden first, so that no statement uses it while it is still maintained
// and can come back at once; watched, class of statements by class; shown again when one gets slower; dropped in the end. Where it stands
// is on disk before each step, so that a process that is killed at any moment leaves nothing behind that nobody knows of.
package retire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Class is a class of statements as a server counted it until a moment, since counting began.
type Class struct {
	Schema string     `json:"schema,omitempty"`
	Digest string     `json:"digest"`
	First  string     `json:"first"` // when counting began; another one means that it began anew
	Text   string     `json:"text,omitempty"`
	Cost   fleet.Cost `json:"cost"`
}

func (c Class) key() string { return c.Schema + "\x00" + c.Digest }

// Regression is a class that got worse since an index was hidden.
type Regression struct {
	Server string `json:"server"`
	Schema string `json:"schema,omitempty"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
	What   string `json:"what"` // in words
}

// What counts as worse. Rows that are read for a call do not depend on the machine's moods; time does, so it takes more of it, and more calls.
const (
	rowsTimes  = 1.5
	rowsMore   = 100.0 // by a call
	rowsCalls  = 5
	timesTimes = 2.0
	timeMore   = 0.002 // seconds by a call
	timeCalls  = 20
)

// Judge compares what classes cost since an index was hidden with what they did before. touches says whether a class reads the index's
// table; watched is how many of those ran since. fresh are classes that touch the table and did not run before, so that there is nothing
// to compare them with.
func Judge(before, now []Class, index string, touches func(Class) bool) (worse []Regression, watched, fresh int) {
	old := map[string]Class{}
	for _, c := range before {
		old[c.key()] = c
	}
	for _, c := range now {
		b, known := old[c.key()]
		after := c.Cost
		if known && b.First == c.First {
			after = c.Cost.Since(b.Cost)
		}
		if after.Calls == 0 || !works(c.Text) || !touches(c) {
			continue
		}
		watched++
		r := Regression{Schema: c.Schema, Digest: c.Digest, Text: c.Text}
		switch {
		case after.Errors > 0 && names(c.Text, index):
			r.What = fmt.Sprintf("fails: it names the index in a hint, and %s failed since (error 1176)", digits.Counted(after.Errors, "call"))
		case !known || b.Cost.Calls == 0:
			fresh++
			continue
		default:
			r.What = slower(b.Cost, after)
		}
		if r.What != "" {
			worse = append(worse, r)
		}
	}
	slices.SortFunc(worse, func(a, b Regression) int { return strings.Compare(a.Digest, b.Digest) })
	return worse, watched, fresh
}

// works reports whether a statement reads or writes rows: others, such as the ALTER TABLE that hid the index, tell nothing.
func works(text string) bool {
	switch strings.ToLower(sqltext.Verb([]byte(text))) {
	case "select", "with", "insert", "replace", "update", "delete", "table", "call":
		return true
	}
	return strings.HasPrefix(text, "(")
}

// slower says in which way a class is worse than before, "" if it is not.
func slower(before, after fleet.Cost) string {
	per := func(v float64, c fleet.Cost) float64 { return v / float64(max(1, c.Calls)) }
	was, is := per(float64(before.RowsExamined), before), per(float64(after.RowsExamined), after)
	if after.Calls >= rowsCalls && is >= was*rowsTimes && is-was >= rowsMore {
		return fmt.Sprintf("examines %s rows by a call, %s before", digits.Count(is), digits.Count(was))
	}
	was, is = per(before.Seconds, before), per(after.Seconds, after)
	if after.Calls >= timeCalls && is >= was*timesTimes && is-was >= timeMore {
		return fmt.Sprintf("takes %s by a call, %s before", digits.Seconds(is), digits.Seconds(was))
	}
	return ""
}

// names reports whether a text names something, in small letters or not.
func names(text, name string) bool {
	return strings.Contains(strings.ToLower(text), "`"+strings.ToLower(name)+"`") || slices.ContainsFunc(sqltext.Tokens(text), func(t sqltext.Token) bool { return t.Name() && strings.EqualFold(t.Text, name) })
}

// Views are the tables and views that each view reads.
type Views map[mysql.TableName][]mysql.TableName

// Touches reports whether a class reads or writes a table, itself or by a view. Names are compared without regard to case: one too many is
// watched then, not one too few.
func Touches(table mysql.TableName, views Views) func(Class) bool {
	fold := func(t mysql.TableName) mysql.TableName {
		return mysql.TableName{Schema: strings.ToLower(t.Schema), Name: strings.ToLower(t.Name)}
	}
	hit := map[mysql.TableName]bool{fold(table): true}
	for grown := true; grown; {
		grown = false
		for view, reads := range views {
			if !hit[fold(view)] && slices.ContainsFunc(reads, func(t mysql.TableName) bool { return hit[fold(t)] }) {
				hit[fold(view)], grown = true, true
			}
		}
	}
	var odd []string // MySQL's DIGEST_TEXT does not double a backtick in a name, so that such texts are looked at as they are
	for t := range hit {
		if strings.Contains(t.Schema+t.Name, "`") {
			odd = append(odd, "`"+t.Name+"`")
		}
	}
	return func(c Class) bool {
		return slices.ContainsFunc(odd, func(name string) bool { return strings.Contains(strings.ToLower(c.Text), name) }) || slices.ContainsFunc(sqltext.Tables([]byte(c.Text)), func(t sqltext.Table) bool {
			if t.Schema == "" {
				t.Schema = c.Schema
			}
			return hit[fold(mysql.TableName(t))]
		})
	}
}
