package plan

import (
	"encoding/json"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// Explained is a plan with everything Risso says about it.
type Explained struct {
	ID        string     `json:"id"` // identifies the plan's shape: see ID
	Server    string     `json:"server,omitempty"`
	Plan      *Plan      `json:"plan"`
	Sentences []Sentence `json:"sentences"` // worst first
	Advice    []Advice   `json:"advice"`
	Notes     []string   `json:"notes"` // what could not be found out; never null
}

// Explain says what a plan means. tables may be empty: then there is no arithmetic. sql is the statement, or "": some
// servers do not show which columns a plan uses, the statement does.
func Explain(p *Plan, tables []TableFacts, sql string) Explained {
	return Explained{ID: ID(p), Plan: p, Sentences: sentences(newAdviser(p, tables, sql)), Advice: Advise(p, tables, sql), Notes: []string{}}
}

// Redact puts ? in place of all literals in a plan: conditions, lists, the server's own words. Do it before
// Explain, and before a plan is kept. The text that the server returned (Taken.Text) is not touched.
func Redact(p *Plan) {
	p.Rewritten = redact(p.Rewritten)
	p.Root.Walk(func(n, _ *Node, _ int) {
		n.Condition, n.IndexCondition = redact(n.Condition), redact(n.IndexCondition)
		switch n.Kind {
		case KindSubquery, KindLimit, KindMaterialise, KindQuery:
		default:
			n.Title = redact(n.Title)
		}
		for _, list := range [][]string{n.SortKeys, n.Functions, n.Ref} {
			for i := range list {
				list[i] = redact(list[i])
			}
		}
		for i := range n.Extra {
			n.Extra[i].Value = redactJSON(n.Extra[i].Value)
		}
	})
}

// redactJSON hides the literals in all strings of a JSON value, but not its numbers: those are figures of the plan.
func redactJSON(b json.RawMessage) json.RawMessage {
	v, err := decode(string(b))
	if err != nil {
		return json.RawMessage(`"?"`)
	}
	out, err := json.Marshal(redactValue(v))
	if err != nil {
		return json.RawMessage(`"?"`)
	}
	return out
}

func redactValue(v any) any {
	switch v := v.(type) {
	case string:
		return redact(v)
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
	case object:
		for i := range v {
			v[i].value = redactValue(v[i].value)
		}
	}
	return v
}

// Lines is all of it as text for a terminal of that width (0: as wide as it gets).
func (e Explained) Lines(width int) []string {
	var out []string
	head := "plan " + e.ID + ", " + e.Plan.Format.Words()
	if e.Server != "" {
		head += ", " + e.Server
	}
	if e.Plan.Analyzed {
		head += ", measured"
	}
	out = append(out, head, "")
	out = append(out, Text(e.Plan, TextOptions{Width: width, Conditions: true})...)
	if len(e.Sentences) > 0 {
		out = append(out, "", "What it says, worst first:")
		for _, s := range e.Sentences {
			out = append(out, wrapped(s.mark()+" #"+digits.Count(float64(s.Node))+" ", s.Text, width)...)
		}
	}
	for _, a := range e.Advice {
		out = append(out, "")
		out = append(out, a.lines(width)...)
	}
	for _, n := range e.Notes {
		out = append(out, "", "note: "+n)
	}
	if e.Plan.Repaired {
		out = append(out, "", "note: the plan was not valid JSON (quotes in conditions) and was repaired")
	}
	return out
}

// wrapped breaks text at blanks into lines of that width, the first after head, the others indented as far.
func wrapped(head, text string, width int) []string {
	if width <= 0 {
		width = 120
	}
	indent := strings.Repeat(" ", len([]rune(head)))
	var out []string
	line := head
	length := len([]rune(head))
	for i, w := range strings.Fields(text) {
		n := len([]rune(w))
		if i > 0 && length+1+n > width && length > len(indent) {
			out = append(out, line)
			line, length = indent, len(indent)
		}
		if length > len(indent) {
			line, length = line+" ", length+1
		}
		line, length = line+w, length+n
	}
	return append(out, line)
}
