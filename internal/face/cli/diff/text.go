package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/sqltext"
)

// titles say what a rank means.
var titles = map[differ.Rank]string{
	differ.RankData:        "loses data or breaks replication",
	differ.RankBehaviour:   "other results, or failures",
	differ.RankPerformance: "another speed",
	differ.RankVersion:     "defaults and parts of the versions",
	differ.RankNames:       "paths, ports and names",
}

// mostValue is how much of a value is shown; JSON has all of it.
const mostValue = 100

func short(s string) string {
	s = sqltext.Printable(s)
	if r := []rune(s); len(r) > mostValue {
		return string(r[:mostValue]) + "…"
	}
	return s
}

// text writes how two servers differ, for people.
func (f diffFlags) text(w io.Writer, r *differ.Report) error {
	fmt.Fprintf(w, "A (here):  %s\nB (there): %s\n", sqltext.Printable(r.A), sqltext.Printable(r.B))
	for _, rank := range differ.Ranks() {
		n := r.Counts[rank]
		if n == 0 {
			continue
		}
		if !f.all && (rank == differ.RankVersion || rank == differ.RankNames) {
			fmt.Fprintf(w, "\n%s: %s (--all lists them)\n", strings.ToUpper(titles[rank][:1])+titles[rank][1:], digits.Plural(n, "difference", "differences"))
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", strings.ToUpper(titles[rank][:1])+titles[rank][1:])
		for _, d := range r.Differences {
			if d.Rank == rank {
				f.difference(w, d)
			}
		}
	}
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "\nno difference in what was compared")
	}
	for i, n := range r.NotCompared {
		if i == 0 {
			fmt.Fprintln(w, "\nNot compared; it may differ:")
		}
		on := ""
		if n.Server != "" {
			on = sqltext.Printable(n.Server) + ": "
		}
		fmt.Fprintf(w, "  %s%s\n", on, sqltext.Printable(troubleWords(n.Area, n.Trouble)))
	}
	_, err := fmt.Fprintf(w, "\nCompared: %s\n", strings.Join(r.Compared, ", "))
	return err
}

func (f diffFlags) difference(w io.Writer, d differ.Difference) {
	fmt.Fprintf(w, "  %s", sqltext.Printable(d.Name))
	switch {
	case len(d.What) > 0:
	case d.A == "":
		fmt.Fprintf(w, ": only there: %s", short(d.B))
	case d.B == "":
		fmt.Fprintf(w, ": only here: %s", short(d.A))
	default:
		fmt.Fprintf(w, ": %s here, %s there", short(d.A), short(d.B))
	}
	fmt.Fprintln(w)
	for _, what := range d.What {
		if !f.all && len([]rune(what)) > 3*mostValue {
			what = string([]rune(what)[:3*mostValue]) + "…"
		}
		fmt.Fprintf(w, "      %s\n", sqltext.Printable(what))
	}
	fmt.Fprintf(w, "    %s\n", d.Why)
}
