package web

import (
	"context"
	"fmt"
	"regexp/syntax"
	"strings"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/strutil"

	"github.com/rissodb/risso/internal/serve/config"
)

// What an expression may be. The engine bounds the samples of a query, but neither how deep its text nests, nor what its
// regular expressions take to compile, nor how many series it names.
const (
	mostExpression = 64 << 10 // bytes
	mostTokens     = 4000     // they nest no deeper than there are of them
	mostRegexp     = 5000     // instructions that repeats add to the regular expressions of one text
	mostMatches    = 100      // match[] parameters
	mostLabel      = 4 << 10  // bytes of a label's value that label_replace or label_join makes
	mostCursors    = 2000     // series that are read side by side, each with an hour in memory
)

// checkExpression refuses a text whose reading alone would cost too much. Other errors are left to the parser.
func checkExpression(text string) error {
	if len(text) > mostExpression {
		return badData("the expression has more than %d bytes", mostExpression)
	}
	l := parser.Lex(text)
	instructions := 0
	for n := 0; ; n++ {
		var item parser.Item
		l.NextItem(&item)
		switch {
		case item.Typ == parser.EOF || item.Typ == parser.ERROR:
			return nil
		case n >= mostTokens:
			return badData("the expression has more than %d words", mostTokens)
		case item.Typ != parser.STRING:
			continue
		}
		// It may become a regular expression, as a matcher or in label_replace.
		s, err := strutil.Unquote(item.Val)
		if err != nil {
			return nil
		}
		if re, err := syntax.Parse(s, syntax.Perl|syntax.DotNL); err == nil {
			plain, all := regexpCost(re)
			if instructions += all - plain; instructions > mostRegexp {
				return badData("the regular expressions are too costly: repeat less, or shorter parts")
			}
		}
	}
}

// regexpCost is about how many instructions a regular expression has as written, and how many it becomes when its repeats
// are written out. Far more than mostRegexp is as good as any number.
func regexpCost(re *syntax.Regexp) (plain, all int) {
	plain, all = 1, 1
	for _, sub := range re.Sub {
		p, a := regexpCost(sub)
		plain, all = plain+p, all+a
	}
	if re.Op == syntax.OpRepeat {
		all *= max(re.Max, re.Min, 1)
	}
	return plain, min(all, 1000*mostRegexp)
}

// labelSize is how long a label's value may become in an expression. label_replace and label_join work on all series at once
// and multiply their arguments: ten letters become gigabytes in three calls.
func labelSize(node parser.Node) int {
	const given = 256 // longer values in the store are not expected, and are few
	size := given
	for child := range parser.ChildrenIter(node) {
		size = max(size, labelSize(child))
	}
	call, ok := node.(*parser.Call)
	if !ok {
		return size
	}
	text := func(i int) string {
		arg := call.Args[i]
		for {
			switch a := arg.(type) {
			case *parser.ParenExpr:
				arg = a.Expr
			case *parser.StringLiteral:
				return a.Val
			default:
				return ""
			}
		}
	}
	grown := 0
	switch {
	case call.Func.Name == "label_replace" && len(call.Args) == 5:
		grown = len(text(2)) + strings.Count(text(2), "$")*size
	case call.Func.Name == "label_join" && len(call.Args) >= 3:
		grown = (len(call.Args) - 3) * (len(text(2)) + size)
	}
	return min(max(size, grown), mostLabel+1)
}

// checkLabels refuses an expression that makes labels too long.
func checkLabels(expr parser.Expr) error {
	if labelSize(expr) > mostLabel {
		return badData("label_replace or label_join may make labels of more than %d bytes", mostLabel)
	}
	return nil
}

// bounds counts what one question touches.
type bounds struct {
	limits  config.Limits
	series  atomic.Int64
	cursors atomic.Int64
}

func newBounds(l config.Limits) *bounds { return &bounds{limits: l} }

// left is how many more series the question may touch.
func (b *bounds) left() int { return max(b.limits.Series-int(b.series.Load()), 0) }

func (b *bounds) tooMany() error {
	return fmt.Errorf("%w: the question touches more than %d series; name fewer by matchers, or ask part by part", errTooLarge, b.limits.Series)
}

// boundQueryable ends a question that touches too many series, or too many side by side.
type boundQueryable struct {
	storage.Queryable
	b *bounds
}

// Querier implements storage.Queryable.
func (q boundQueryable) Querier(mint, maxt int64) (storage.Querier, error) {
	base, err := q.Queryable.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	return boundQuerier{base, q.b}, nil
}

type boundQuerier struct {
	storage.Querier
	b *bounds
}

// Select implements storage.Querier.
func (q boundQuerier) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if hints == nil {
		return &boundSet{SeriesSet: q.Querier.Select(ctx, sortSeries, nil, matchers...), b: q.b, ctx: ctx}
	}
	h := *hints
	left := q.b.left()
	if h.Limit <= 0 || h.Limit > left+1 {
		h.Limit = left + 1
	}
	return &boundSet{SeriesSet: q.Querier.Select(ctx, sortSeries, &h, matchers...), b: q.b, ctx: ctx}
}

// boundSet counts the series that it returns.
type boundSet struct {
	storage.SeriesSet
	b    *bounds
	over bool
	ctx  context.Context
}

// Next implements storage.SeriesSet.
func (s *boundSet) Next() bool {
	if s.over || !s.SeriesSet.Next() {
		return false
	}
	s.over = s.b.series.Add(1) > int64(s.b.limits.Series)
	return !s.over
}

// Err implements storage.SeriesSet.
func (s *boundSet) Err() error {
	if s.over {
		return s.b.tooMany()
	}
	return s.SeriesSet.Err()
}

// At implements storage.SeriesSet.
func (s *boundSet) At() storage.Series { return boundSeries{s.SeriesSet.At(), s.b, s.ctx} }

// Warnings implements storage.SeriesSet.
func (s *boundSet) Warnings() annotations.Annotations { return s.SeriesSet.Warnings() }

type boundSeries struct {
	storage.Series
	b   *bounds
	ctx context.Context
}

// Iterator implements storage.Series. One that is not used again stays in memory as long as the question.
func (s boundSeries) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	if old == nil && s.b.cursors.Add(1) > mostCursors {
		return failedIterator{chunkenc.NewNopIterator(), fmt.Errorf("%w: it reads more than %d series side by side; name fewer by matchers", errTooLarge, mostCursors)}
	}
	if err := check(s.ctx); err != nil {
		return failedIterator{chunkenc.NewNopIterator(), err}
	}
	return s.Series.Iterator(old)
}

// failedIterator has no samples but an error.
type failedIterator struct {
	chunkenc.Iterator
	err error
}

// Err implements chunkenc.Iterator.
func (f failedIterator) Err() error { return f.err }
