package galera

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

// text writes a report for people.
func (c *command) text(r *galera.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, watched for %s\n", oneline.Of(r.Cluster), r.At.Local().Format(time.DateTime), digits.Seconds(r.Looked))
	for _, w := range r.Words {
		fmt.Fprintf(&b, "%s\n", oneline.Of(w))
	}
	width := screen.Width(c.Out)
	b.WriteString("\n" + strings.Join(members(r).Lines(width), "\n") + "\n")
	for _, m := range r.Members {
		if m.NotSeen != nil {
			fmt.Fprintf(&b, "  %s: not seen: %s\n", oneline.Of(m.Name), oneline.Of(fault.Line(strings.Trim(m.NotSeen.What+": "+m.NotSeen.Why, ": "), m.NotSeen.Remedy)))
		}
	}
	if r.Quorum != nil {
		b.WriteString("\nQuorum\n")
		quorum(&b, r.Quorum)
	}
	if len(r.Transfers) > 0 {
		b.WriteString("\nIf it is started now\n")
		for _, t := range r.Transfers {
			fmt.Fprintf(&b, "  %s: %s\n", oneline.Of(t.Node), oneline.Of(t.Words))
		}
	}
	b.WriteString("\n")
	for _, f := range r.Findings {
		screen.Advice(&b, f, seen(r))
	}
	if len(r.Findings) == 0 {
		b.WriteString("Nothing is wrong.\n")
	}
	for _, u := range r.Unknown {
		fmt.Fprintf(&b, "not known: %s\n", oneline.Of(fault.Line(strings.Trim(u.What+": "+u.Why, ": "), u.Remedy)))
	}
	_, err := io.WriteString(c.Out, b.String())
	return err
}

func seen(r *galera.Report) (n int) {
	for _, m := range r.Members {
		if m.Seen {
			n++
		}
	}
	return n
}

func members(r *galera.Report) render.Table {
	t := render.Table{Heads: []string{"member", "address", "state", "component", ">sees", ">votes", ">committed", ">queue", ">paused", ">asked", ">lost"}}
	for _, m := range r.Members {
		row := []string{oneline.Of(m.Name), oneline.Of(m.Address), "not seen", "", "", number(float64(m.Votes)), "", "", "", "", ""}
		if s := m.Status; s != nil {
			paused := "-"
			if m.Paused >= 0 {
				paused = digits.Percent(m.Paused)
			}
			row = []string{oneline.Of(m.Name), oneline.Of(m.Address), oneline.Of(s.StateComment), oneline.Of(s.ClusterStatus), number(float64(s.Size)), number(float64(m.Votes)), number(float64(s.Committed)), number(s.RecvQueue), paused,
				number(s.PausesSent), number(m.Lost())}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// number is a count; -1 is unknown.
func number(v float64) string {
	if v < 0 {
		return "-"
	}
	return digits.Count(v)
}

// quorum writes what a membership survives.
func quorum(b *strings.Builder, p *galera.Plan) {
	for _, w := range p.Words {
		fmt.Fprintf(b, "  %s\n", w)
	}
	for _, l := range p.Single {
		fmt.Fprintf(b, "  %s\n", l.Words(p.Votes))
	}
	for _, c := range p.ByCount {
		if c.Members > 1 {
			fmt.Fprintf(b, "  any %d lost at once: %s\n", c.Members, c.Words())
		}
		if c.Survived == 0 {
			break
		}
	}
	for _, l := range p.Centres {
		fmt.Fprintf(b, "  %s\n", l.Words(p.Votes))
	}
	for _, s := range p.Splits {
		goes := "neither side goes on"
		if len(s.Primary) > 0 {
			goes = strings.Join(s.Primary, ", ") + " goes on"
		}
		fmt.Fprintf(b, "  %s cut off from %s: %s (%d and %d votes)\n", strings.Join(s.Sides[0], ", "), strings.Join(s.Sides[1], ", "), goes, s.Votes[0], s.Votes[1])
	}
	for _, s := range p.Stops {
		fmt.Fprintf(b, "  %s\n", s.Words())
	}
	for _, better := range p.Better {
		fmt.Fprintf(b, "  better: %s\n", better)
	}
}

func planText(w io.Writer, p *galera.Plan) error {
	var b strings.Builder
	quorum(&b, p)
	_, err := io.WriteString(w, strings.ReplaceAll(strings.TrimPrefix(b.String(), "  "), "\n  ", "\n"))
	return err
}
