package size

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// Listing is a table of the report for people; a heading that begins with ">" is that of a column of numbers.
type Listing struct {
	Title string
	Heads []string
	Rows  [][]string
}

// Listings are the report's tables for people: for a terminal and for a page.
func (r *Report) Listings() []Listing {
	list := []Listing{r.schemaListing(), r.tableListing()}
	list = append(list, r.spaceListing(), r.indexListing(), r.widthListing(), r.measuredListing())
	out := list[:0]
	for _, l := range list {
		if len(l.Rows) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// Bar is a share as a bar of at most width characters.
func Bar(share float64, width int) string {
	eighths := int(share*float64(width)*8 + 0.5)
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return bar
}

// barWidth is that of the longest bar.
const barWidth = 20

func optional(n *int64) string {
	if n == nil {
		return digits.Unknown
	}
	return digits.Bytes(*n)
}

func (r *Report) schemaListing() Listing {
	l := Listing{Title: "Schemas", Heads: []string{"SCHEMA", ">TABLES", ">ON DISK", ">FILES", "SHARE"}}
	const most = 30
	largest := int64(1)
	for i, s := range r.Schemas {
		largest = max(largest, s.Allocated)
		if i == most {
			l.Rows = append(l.Rows, []string{fmt.Sprintf("and %d more", len(r.Schemas)-most), "", "", "", ""})
			break
		}
		l.Rows = append(l.Rows, []string{oneline.Of(s.Name), digits.Thousands(s.Tables), digits.Bytes(s.Allocated), digits.Bytes(s.File), Bar(float64(s.Allocated)/float64(largest), barWidth)})
	}
	return l
}

func (r *Report) tableListing() Listing {
	l := Listing{Title: "Largest tables", Heads: []string{"TABLE", ">ON DISK", ">FILE", ">FREE", ">ROWS", ">PER ROW", "ENGINE", "SHARE"}}
	for i := range r.Tables {
		t := &r.Tables[i]
		rows, engine := digits.Unknown, t.Engine
		if t.Rows != nil {
			rows = digits.Number(float64(*t.Rows))
		}
		if t.RowFormat != "" {
			engine += " " + strings.ToLower(t.RowFormat)
		}
		if t.compressesPages() {
			engine += ", compressed pages"
		}
		if t.PartitionCount > 0 {
			engine += ", " + digits.Counted(t.PartitionCount, "partition")
		}
		l.Rows = append(l.Rows, []string{oneline.Of(t.Schema + "." + t.Name), digits.Bytes(t.Allocated), digits.Bytes(t.File), optional(t.Free), rows, optional(t.Average), engine, Bar(float64(t.Allocated)/float64(max(r.Tables[0].Allocated, 1)), barWidth)})
	}
	if r.Rest.Tables > 0 {
		l.Rows = append(l.Rows, []string{"and " + digits.Counted(r.Rest.Tables, "smaller table"), digits.Bytes(r.Rest.Allocated), digits.Bytes(r.Rest.File), "", "", "", "", ""})
	}
	return l
}

func (r *Report) spaceListing() Listing {
	l := Listing{Title: "Logs, undo, system and temporary space", Heads: []string{"SPACE", "NAME", ">ON DISK", ">FILES", ">FREE", "NOTE"}}
	for _, s := range r.Spaces {
		l.Rows = append(l.Rows, []string{s.Kind, oneline.Of(s.Name), digits.Bytes(s.Allocated), digits.Bytes(s.File), optional(s.Free), s.Note})
	}
	return l
}

func (r *Report) indexListing() Listing {
	l := Listing{Title: "Indexes of the largest tables", Heads: []string{"INDEX", ">PAGES", "COUNTED"}}
	const most = 30
	for i := range r.Tables {
		t := &r.Tables[i]
		for _, x := range t.Indexes {
			if len(l.Rows) == most {
				return l
			}
			asOf := ""
			if !x.AsOf.IsZero() {
				asOf = x.AsOf.Format("2006-01-02 15:04")
			}
			l.Rows = append(l.Rows, []string{oneline.Of(t.Schema + "." + t.Name + "." + x.Name), digits.Bytes(x.Bytes), asOf})
		}
	}
	return l
}

func (r *Report) widthListing() Listing {
	l := Listing{Title: "Columns that are wider than what they hold", Heads: []string{"COLUMN", "TYPE", "HOLDS", "WOULD DO", "WHAT IT SAVES"}}
	for _, w := range r.Widths {
		l.Rows = append(l.Rows, []string{oneline.Of(w.Schema + "." + w.Table + "." + w.Column), w.Type, w.Holds, w.Narrower, w.Saves})
	}
	return l
}

func (r *Report) measuredListing() Listing {
	l := Listing{Title: "What a rebuild gives back", Heads: []string{"TABLE", "HOW", ">NOW", ">AFTER", ">GIVES BACK", "SURE"}}
	for _, m := range r.Measured {
		for _, w := range m.Ways {
			after, back := digits.Unknown, digits.Unknown
			if w.Failed == "" {
				after, back = digits.Bytes(w.After), digits.Bytes(max(m.Now-w.After, 0))
			}
			l.Rows = append(l.Rows, []string{oneline.Of(m.Schema + "." + m.Table), w.Statement, digits.Bytes(m.Now), after, back, w.words()})
		}
	}
	return l
}

// Costs says what reading took.
func (r *Report) Costs() string {
	return fmt.Sprintf("Read in %s with %s, %s of answers.", digits.Seconds(r.Cost.Seconds), digits.Counted(r.Cost.Statements, "statement"), digits.Bytes(r.Cost.Received))
}

//go:embed page.html
var pageSource string

type cell struct {
	Text  string
	Right bool
}

type pageTable struct {
	Title string
	Heads []cell
	Rows  [][]cell
}

// WriteHTML writes the report as one page that refers to nothing elsewhere.
func (r *Report) WriteHTML(w io.Writer, version string) error {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	var tables []pageTable
	for _, l := range r.Listings() {
		p := pageTable{Title: l.Title}
		for _, h := range l.Heads {
			text, right := strings.CutPrefix(h, ">")
			p.Heads = append(p.Heads, cell{text, right})
		}
		for _, row := range l.Rows {
			cells := make([]cell, len(row))
			for i, c := range row {
				cells[i] = cell{c, p.Heads[i].Right}
			}
			p.Rows = append(p.Rows, cells)
		}
		tables = append(tables, p)
	}
	title := r.Server
	if r.Schema != "" {
		title += ", schema " + r.Schema
	}
	return t.Execute(w, struct {
		Title, When, Version, Cost string
		Words                      []string
		Map                        template.HTML
		Tables                     []pageTable
		Unknown                    []fleet.Trouble
	}{title, "As of " + r.At.Format("2006-01-02 15:04 UTC"), version, r.Costs(), r.Words, template.HTML(r.Tree().SVG()), tables, r.Unknown})
}
