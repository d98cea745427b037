package appliers

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/applier"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/oneline"
)

// modeWords are the modes as the heads of columns.
var modeWords = map[applier.Mode]string{
	applier.Logged: "AS LOGGED", applier.WriteSet: "WRITESET", applier.BySchema: "DATABASE",
	applier.Conservative: "CONSERVATIVE", applier.Optimistic: "OPTIMISTIC", applier.Aggressive: "AGGRESSIVE",
}

// barWidth is how long the bar of the highest speed-up is.
const barWidth = 30

// text shows an answer.
func text(w io.Writer, a *Answer) {
	if a.Transactions > 0 {
		fmt.Fprintf(w, "%s in %s, %s, %s", digits.Counted(a.Transactions, "transaction"), digits.Counted(a.Logs, "log"), digits.Counted(a.Rows, "row"), digits.Bytes(a.Bytes))
		if !a.From.IsZero() {
			fmt.Fprintf(w, ", from %s to %s", a.From.UTC().Format("2006-01-02 15:04:05Z"), a.To.UTC().Format("2006-01-02 15:04:05Z"))
		}
		fmt.Fprintf(w, ", written by %s\n\n", a.Server)
		curves(w, a)
		fmt.Fprintf(w, "\n%s\n", verdict(a))
		limits(w, a)
		advice(w, a)
		sure(w, a)
	}
	for _, n := range a.Notes {
		fmt.Fprintln(w, "note:", oneline.Of(n))
	}
}

// shown are the numbers of workers that are printed, of those that were tried.
var shown = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 1024}

// curves draws the curve of the mode that counts, with the others beside it.
func curves(w io.Writer, a *Answer) {
	main, most := a.Main(), 1
	heads := []string{">WORKERS", ">" + modeWords[main.Mode], ""}
	for i, c := range a.Curves {
		most = max(most, c.Points[len(c.Points)-1].Workers)
		switch {
		case i > 0 && c.Mode == main.Mode:
			heads = append(heads, ">ANY ORDER")
		case i > 0:
			heads = append(heads, ">"+modeWords[c.Mode])
		}
	}
	t := render.Table{Heads: heads}
	top := main.At(applier.MostWorkers)
	for _, n := range shown {
		s := main.At(n)
		bar := min(barWidth, max(1, int(s/top*barWidth+0.5)))
		line := []string{strconv.Itoa(n), times(s), strings.Repeat("█", bar)}
		if s > 1.02*top {
			line[2] += "…"
		}
		for _, c := range a.Curves[1:] {
			sign := ""
			if c.AtMost && n > 1 {
				sign = "≤ "
			}
			line = append(line, sign+times(c.At(n)))
		}
		t.Rows = append(t.Rows, line)
		if n >= most { // more of them change nothing
			break
		}
	}
	for _, l := range t.Lines(0) {
		fmt.Fprintln(w, strings.TrimRight(l, " "))
	}
	if main.Mode == applier.Logged {
		fmt.Fprintln(w, "AS LOGGED commits in the order of the log, ANY ORDER does not (replica_preserve_commit_order); DATABASE is by schema.")
	}
}

func times(v float64) string { return digits.Ratio(v) + " ×" }

// verdict is the answer in a sentence.
func verdict(a *Answer) string {
	c := a.Main()
	switch {
	case c.Enough <= 1:
		return fmt.Sprintf("Parallel appliers gain nothing here: no number of them is more than %s times as fast as one.", digits.Ratio(c.Ceiling))
	case c.Enough > applier.MostWorkers:
		return fmt.Sprintf("The log sets no limit that matters: %d workers replay it %s times as fast as one, and it would go on up to %s times with %d. Processors and disk of the replica decide.",
			applier.MostWorkers, digits.Ratio(c.At(applier.MostWorkers)), digits.Ratio(c.Ceiling), c.Enough)
	}
	return fmt.Sprintf("%s replay this %s times as fast as one; no number of them is faster than %s times.", digits.Counted(c.Enough, "worker"), digits.Ratio(c.At(c.Enough)), digits.Ratio(c.Ceiling))
}

// limits says of what the chain consists that takes longest.
func limits(w io.Writer, a *Answer) {
	if a.Main().Enough > applier.MostWorkers {
		return // the log is no limit
	}
	for i, l := range a.Limits {
		if i == 0 {
			fmt.Fprintln(w, "\nWhat limits it, as shares of the chain of transactions that takes longest:")
		}
		fmt.Fprintf(w, "%7s  %s\n", digits.Percent(l.Share), oneline.Cut(oneline.Of(limitWords(l)), 300))
	}
}

// limitWords are a limit in words.
func limitWords(l applier.Limit) string {
	switch l.Kind {
	case applier.HotRow:
		return fmt.Sprintf("row %s of %s: transactions that change it wait for each other", l.Name, l.Table)
	case applier.HotTable:
		return fmt.Sprintf("table %s: transactions that change it wait for each other", l.Name)
	case applier.CommitOrder:
		what := "transactions that share no table"
		if l.Name != "" {
			what = "transactions on " + l.Name + " that share no row"
		}
		return "order: " + what + " were committed one after the other on the source, or share a unique or foreign key"
	case applier.Definition:
		if l.Name == "" {
			return "a change of definitions: nothing runs beside it"
		}
		return fmt.Sprintf("a change of definitions, of %s: nothing runs beside it", l.Name)
	}
	x := l.Long
	name := l.Name
	if name == "" {
		name = "the one"
	}
	what := fmt.Sprintf("transaction %s at %s:%d: %s", name, x.File, x.Pos, digits.Counted(x.Rows, "row"))
	if x.Rows == 0 {
		what = fmt.Sprintf("transaction %s at %s:%d: %s", name, x.File, x.Pos, digits.Bytes(x.Bytes))
	}
	if len(x.Tables) > 0 {
		what += " of " + strings.Join(x.Tables, ", ")
	}
	return what
}

func advice(w io.Writer, a *Answer) {
	for i, x := range a.Advice {
		if i == 0 {
			fmt.Fprintln(w, "\nWhat helps:")
		}
		fmt.Fprintf(w, "  on the %s: %s", x.Where, oneline.Of(x.What))
		if x.Doubt != "" {
			fmt.Fprintf(w, "; %s", x.Doubt)
		}
		fmt.Fprintln(w)
		if len(x.Statements) > 0 {
			fmt.Fprintf(w, "    %s\n", strings.Join(x.Statements, "; "))
		}
	}
}

// sure says how far the answer depends on what was assumed.
func sure(w io.Writer, a *Answer) {
	var parts []string
	for _, s := range a.Sure {
		switch s.Costs.Name {
		case "rows":
			parts = append(parts, fmt.Sprintf("%s times if rows cost (as above)", digits.Ratio(s.Ceiling)))
		case "bytes":
			parts = append(parts, fmt.Sprintf("%s if bytes do", digits.Ratio(s.Ceiling)))
		case "equal":
			parts = append(parts, fmt.Sprintf("%s if all transactions take the same", digits.Ratio(s.Ceiling)))
		}
	}
	fmt.Fprintf(w, "\nHow sure: times are assumed, %s for a transaction and %s for a row (--commit-time, --row-time). The most that any number of workers gains is %s.\n", digits.Seconds(a.Costs.Commit), digits.Seconds(a.Costs.Row), strings.Join(parts, ", "))
	if len(a.Guessed) > 0 {
		fmt.Fprintf(w, "note: the log does not name the primary keys of %s: the first column was taken for it; --dsn with a privilege on them, or binlog_row_metadata=FULL, tells\n", oneline.Of(list(a.Guessed)))
	}
	if a.Statements > 0 {
		fmt.Fprintf(w, "note: %s changed data by statements that are logged as text: which rows is not known\n", digits.Counted(a.Statements, "transaction"))
	}
	if a.Before > 0 {
		fmt.Fprintf(w, "note: %s before that time left out\n", digits.Counted(a.Before, "transaction"))
	}
}

// list names some, and how many more there are.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + digits.Counted(len(names)-most, "more table")
	}
	return strings.Join(names, ", ")
}
