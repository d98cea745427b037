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

	// Of a class that runs once a month there are not so many calls: it is worse if it reads very many more rows.
	rareCalls = 20
	rareTimes = 10.0
	rareMore  = 1000.0

	doubtfulRows = 1000.0 // by a call of a class that did not run before
)

// Judgement is what became of classes of statements since an index was hidden.
type Judgement struct {
	Worse    []Regression
	Doubtful []Regression // classes that cannot be compared, for they did not run before, and read many rows: the index may have spared them that
	Watched  int          // classes that touch the table and ran since
	Fresh    int          // thereof such as did not run before
}

// Judge compares what classes cost since an index was hidden with what they did before. touches says whether a class reads the index's
// table. late says that before is of a time when the index was hidden already.
func Judge(before, now []Class, r *Record, touches func(Class) bool, late bool) (j Judgement) {
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
		j.Watched++
		if known = known && !late && b.Cost.Calls > 0; !known {
			b.Cost = fleet.Cost{}
		}
		j.add(c, b.Cost, after, r)
	}
	return j
}

// add compares a class.
func (j *Judgement) add(c Class, before, after fleet.Cost, r *Record) {
	g := Regression{Schema: c.Schema, Digest: c.Digest, Text: c.Text}
	switch {
	case after.Errors > 0 && names(c.Text, r.Index):
		g.What = fmt.Sprintf("fails: it names the index in a hint, and %s failed since (error 1176)", digits.Counted(after.Errors, "call"))
	case before.Calls == 0:
		j.Fresh++
		if rows := float64(after.RowsExamined) / float64(after.Calls); rows >= doubtfulRows && r.mayServe(c.Text) {
			g.What = fmt.Sprintf("examines %s rows by a call, and did not run before, so that nobody knows whether the index would spare it that", digits.Count(rows))
			j.Doubtful = append(j.Doubtful, g)
		}
		return
	default:
		g.What = slower(before, after)
	}
	if g.What != "" {
		j.Worse = append(j.Worse, g)
	}
}

// join adds what was judged of another server, or by other counters of the same.
func (j *Judgement) join(o Judgement, server string) {
	for _, g := range o.Worse {
		g.Server = server
		j.Worse = append(j.Worse, g)
	}
	for _, g := range o.Doubtful {
		g.Server = server
		j.Doubtful = append(j.Doubtful, g)
	}
	j.Watched, j.Fresh = j.Watched+o.Watched, j.Fresh+o.Fresh
}

// sort puts first what is there in each check, so that the same is told.
func (j *Judgement) sort() {
	for _, list := range [][]Regression{j.Worse, j.Doubtful} {
		slices.SortStableFunc(list, func(a, b Regression) int { return strings.Compare(a.Digest, b.Digest) })
	}
}

// mayServe reports whether an index may serve a statement: it names one of the index's columns, or reads the table by a view, which may call
// columns otherwise.
func (r *Record) mayServe(text string) bool {
	if !names(text, r.Table) {
		return true
	}
	_, columns, _ := strings.Cut(r.Definition, "(")
	return slices.ContainsFunc(sqltext.Tokens(columns), func(t sqltext.Token) bool { return t.Kind == sqltext.TokenName && names(text, t.Text) })
}

// works reports whether a statement reads or writes rows: others, such as the ALTER TABLE that hid the index, tell nothing.
func works(text string) bool {
	switch strings.ToLower(sqltext.Verb([]byte(strings.TrimPrefix(text, "EXECUTE ")))) {
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
	if before.Calls < rareCalls && is >= was*rareTimes && is-was >= rareMore {
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

// fold is a name without regard to case: one too many is watched then, not one too few.
func fold(t mysql.TableName) mysql.TableName {
	return mysql.TableName{Schema: strings.ToLower(t.Schema), Name: strings.ToLower(t.Name)}
}

// reading are a table and the views that read it, directly or not.
func (v Views) reading(table mysql.TableName) []mysql.TableName {
	list := []mysql.TableName{fold(table)}
	for grown := true; grown; {
		grown = false
		for view, reads := range v {
			if !slices.Contains(list, fold(view)) && slices.ContainsFunc(reads, func(t mysql.TableName) bool { return slices.Contains(list, fold(t)) }) {
				list, grown = append(list, fold(view)), true
			}
		}
	}
	return list
}

// touchesAny reports whether a class reads or writes one of these tables and views.
func touchesAny(list []mysql.TableName) func(Class) bool {
	hit := map[mysql.TableName]bool{}
	var odd []string // MySQL's DIGEST_TEXT does not double a backtick in a name, so that such texts are looked at as they are
	for _, t := range list {
		hit[t] = true
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
