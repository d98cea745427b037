package plan

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoPlan is what Parse's errors wrap when a text holds no plan that it knows.
var ErrNoPlan = errors.New("no query plan in it")

// Parse reads a plan in any format, as the server returned it or as a client printed it (in a box, with \G, with
// --batch). It recognises the format by itself.
func Parse(text string) (*Plan, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	if rows := rowsOf(text); len(rows) > 0 && rows[0]["select_type"] != "" {
		return FromRows(rows)
	}
	brace := strings.IndexByte(text, '{')
	arrow := strings.Index(text, "-> ")
	if arrow >= 0 && (brace < 0 || arrow < brace) {
		if !strings.Contains(text, "\n    ->") {
			text = unescape(text)
		}
		root, analyzed, err := readTree(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPlan, err)
		}
		p := &Plan{Format: FormatTree, Analyzed: analyzed, Root: root}
		total(p)
		return p, nil
	}
	if brace < 0 {
		return nil, fmt.Errorf("%w: neither JSON nor lines that begin with \"->\" nor a table with a column select_type", ErrNoPlan)
	}
	return parseJSON(text[brace:])
}

// unescape undoes what a client's --batch does to line ends and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(s)
}

// unmarked takes the comments out of JSON: MySQL writes the name of what ends after each bracket while
// end_markers_in_json is ON.
func unmarked(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			begin := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			b.WriteString(text[begin:min(i+1, len(text))])
		case '/':
			if end := strings.Index(text[i:], "*/"); strings.HasPrefix(text[i:], "/*") && end > 0 {
				i += end + 1
				continue
			}
			b.WriteByte('/')
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func parseJSON(text string) (*Plan, error) {
	repaired := false
	v, err := decode(text)
	if err != nil && strings.HasPrefix(text, `{\n`) {
		text = unescape(text)
		v, err = decode(text)
	}
	if err != nil && strings.Contains(text, "*/") {
		if again, err2 := decode(unmarked(text)); err2 == nil {
			v, err = again, nil
		}
	}
	if err != nil {
		if again, err2 := decode(repair(text)); err2 == nil {
			v, err, repaired = again, nil, true
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the JSON cannot be read: %w", ErrNoPlan, err)
	}
	o, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("%w: the JSON is not an object", ErrNoPlan)
	}
	p := &Plan{Repaired: repaired}
	if own, ok := o.get("query_plan").(object); ok {
		p.Format, p.Root = FormatMySQL2, read2(own)
		p.Rewritten, _ = o.get("query").(string)
		for _, f := range o {
			if f.name != "query_plan" && f.name != "query" {
				p.Root.extra(f.name, f.value)
			}
		}
	} else if o.has("operation") && o.has("access_type") { // explain_json_format_version=2 before it had a frame (8.3)
		p.Format, p.Root = FormatMySQL2, read2(o)
		p.Rewritten, _ = o.get("query").(string)
	} else {
		if !o.has("query_block") && !(&jsonReader{}).operator(o, 0) {
			return nil, fmt.Errorf("%w: the JSON has neither query_block nor query_plan", ErrNoPlan)
		}
		p.Format, p.Root = FormatMySQL1, (&jsonReader{}).read(o)
		if looksMariaDB(o, 0) {
			p.Format = FormatMariaDB
		}
	}
	p.Root.Walk(func(n, _ *Node, _ int) { p.Analyzed = p.Analyzed || n.Loops.Known() || n.ActualRows.Known() })
	total(p)
	return p, nil
}

// looksMariaDB distinguishes the two dialects by names that only one of them has.
func looksMariaDB(v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case object:
		for _, f := range v {
			switch f.name {
			case "rows", "r_loops", "query_optimization", "expression_cache", "subquery_cache", "block-nl-join", "filesort", "temporary_table", "subqueries", "materialized":
				return true
			case "table":
				if t, ok := f.value.(object); ok && t.has("message") {
					return true
				}
			}
			if looksMariaDB(f.value, depth+1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if looksMariaDB(e, depth+1) {
				return true
			}
		}
	}
	return false
}
