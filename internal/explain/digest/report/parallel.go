package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/byschema"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// ParallelJSON writes a plan as one object.
func ParallelJSON(w io.Writer, p byschema.Plan) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(p)
}

// ParallelText writes a plan with what follows from it in a sentence.
func ParallelText(w io.Writer, p byschema.Plan, o Options) error {
	t := &textWriter{width: o.width()}
	t.line("Write time: %s in %s", digits.Seconds(p.Seconds), digits.Plural(p.Calls, "call", "calls"))
	for _, n := range o.Notes {
		t.paragraph("Note: ", line(n))
	}
	if len(p.Appliers) == 0 {
		t.line("There is nothing to plan: no writes with a time were read whose text shows what they write.")
		t.uncounted(p)
		return t.flush(w)
	}
	c := columns{heads: []string{"SCHEMA", ">TIME", ">SHARE", ">CHAIN", ">CALLS", ">ALL SO FAR AT ONCE"}, gap: 3}
	for _, s := range p.Schemas {
		c.rows = append(c.rows, []string{schemaName(s.Name), digits.Seconds(s.Seconds), digits.Percent(s.Share), digits.Percent(s.Chain), digits.Thousands(s.Calls), "≤ " + digits.Percent(s.Together)})
	}
	t.block("\n" + strings.Join(c.lines(), "\n"))
	c = columns{heads: []string{">APPLIERS", ">TIME", ">SPEED"}, gap: 3}
	for _, a := range p.Appliers {
		c.rows = append(c.rows, []string{fmt.Sprint(a.Number), "≥ " + digits.Percent(a.Time), "≤ " + digits.Ratio(a.Speedup) + " ×"})
		if a.Number > 1 && a.Time == p.Appliers[len(p.Appliers)-1].Time {
			break // more of them change nothing
		}
	}
	t.block("\n" + strings.Join(c.lines(), "\n"))
	t.line("")
	t.paragraph("", conclusion(p))
	for i, s := range p.Crossing {
		if i == 0 {
			t.line("")
			t.line("Statements that touch several schemas hold up an applier for each:")
		}
		if i == 10 {
			t.line("  and %s of schemas", digits.Counted(len(p.Crossing)-10, "more set"))
			break
		}
		t.paragraph("  ", fmt.Sprintf("%s: %s (%s) in %s", strings.Join(named(s.Schemas), " + "), digits.Seconds(s.Seconds), digits.Percent(s.Share), digits.Plural(s.Calls, "call", "calls")))
		t.paragraph("    ", oneline.Cut(line(s.Sample), 300))
	}
	t.uncounted(p)
	return t.flush(w)
}

// uncounted says which statements may write and are not in the plan.
func (t *textWriter) uncounted(p byschema.Plan) {
	if p.UnjudgedCalls > 0 {
		t.line("")
		t.paragraph("", fmt.Sprintf("Not counted: %s of CALL, COMMIT, XA or EXECUTE (%s), whose text does not show what is written.", digits.Plural(p.UnjudgedCalls, "call", "calls"), digits.Seconds(p.Unjudged)))
	}
}

// conclusion is the plan in words.
func conclusion(p byschema.Plan) string {
	first, last := p.Schemas[0], p.Appliers[len(p.Appliers)-1]
	for _, s := range p.Schemas {
		if s.Name == "" { // it may be one or many: there is no bound
			return fmt.Sprintf("The log does not show in which schemas %s of the write time was spent. If it is more than one, appliers by schema may gain more than shown here.", digits.Percent(s.Chain))
		}
	}
	if len(p.Schemas) == 1 {
		return fmt.Sprintf("All writes that were counted are in %s: appliers by schema gain nothing. Parallel appliers by commit order or write set do not depend on schemas.", schemaName(first.Name))
	}
	enough := last.Number
	for _, a := range p.Appliers {
		if a.Time == last.Time {
			enough = a.Number
			break
		}
	}
	if enough == 1 {
		return fmt.Sprintf("Appliers by schema gain nothing: all statements write to %s, some of them also to other schemas, and wait for each other.", schemaName(first.Name))
	}
	s := fmt.Sprintf("%d appliers by schema replay this at most %s times as fast as one", enough, digits.Ratio(last.Speedup))
	if first.Chain >= last.Time {
		s += fmt.Sprintf(": the statements of %s are %s of the write time and wait for each other", schemaName(first.Name), digits.Percent(first.Chain))
	}
	lightest := p.Schemas[len(p.Schemas)-1]
	return s + fmt.Sprintf(". All %d schemas are worked on at once for at most %s of that time.", len(p.Schemas), digits.Percent(lightest.Together))
}

func schemaName(s string) string {
	if s == "" {
		return "(not told)"
	}
	return line(s)
}

func named(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = schemaName(s)
	}
	return out
}

func (t *textWriter) flush(w io.Writer) error {
	_, err := io.WriteString(w, t.b.String())
	return err
}
