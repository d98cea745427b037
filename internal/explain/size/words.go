package size

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// worthTelling is the least that a sentence is about.
const worthTelling = 1 << 20

// Words is what a report says, in sentences.
func Words(r *Report) []string {
	tables := r.Rest.Tables + len(r.Tables)
	inTables := Sum{}
	for _, s := range r.Schemas {
		inTables.add(s.Sum)
	}
	first := fmt.Sprintf("%s in %s of %s", digits.Bytes(inTables.Allocated), digits.Counted(tables, "table"), digits.Counted(len(r.Schemas), "schema"))
	if r.Source == SourceEstimates {
		first += ", as the server estimates"
	}
	if other := r.Total.Allocated - inTables.Allocated; r.Schema == "" {
		first += fmt.Sprintf(", and %s of logs, undo, system and temporary space", digits.Bytes(other))
	}
	words := []string{first + "."}
	if hole := r.Total.File - r.Total.Allocated; hole >= worthTelling {
		words = append(words, fmt.Sprintf("The files are %s long, but %s of that are holes that take no space on disk.", digits.Bytes(r.Total.File), digits.Bytes(hole)))
	}
	words = append(words, r.disk()...)
	for i := range r.Tables {
		words = append(words, r.Tables[i].words(i == 0, r.Source == SourceFiles, inTables.Allocated)...)
	}
	for _, s := range r.Spaces {
		if s.Free != nil && *s.Free >= 64*worthTelling && *s.Free*2 > s.Allocated {
			words = append(words, fmt.Sprintf("%s (%s): %s of its %s are free inside.", s.Name, s.Kind, digits.Bytes(*s.Free), digits.Bytes(s.Allocated)))
		}
	}
	return words
}

// disk says what is left and for how long.
func (r *Report) disk() (words []string) {
	if d := r.Disk; d != nil {
		words = append(words, fmt.Sprintf("The disk of %s has %s left of %s (%s).", d.Path, digits.Bytes(d.Left), digits.Bytes(d.Size), digits.Percent(float64(d.Left)/float64(max(d.Size, 1)))))
	}
	g := r.Growth
	switch {
	case g == nil:
		return append(words, "How fast it grows is not known: that takes a risso serve that watches this server, and --url to ask it.")
	case g.Since.IsZero():
		return append(words, "How fast it grows is not known yet: Risso has not watched it for six hours.")
	case g.PerDay <= 0:
		words = append(words, fmt.Sprintf("%s did not grow in %s.", g.what(), digits.Span(g.Until.Sub(g.Since))))
	default:
		w := fmt.Sprintf("%s grew by %s a day in %s", g.what(), digits.Bytes(g.PerDay), digits.Span(g.Until.Sub(g.Since)))
		switch {
		case !g.Full.IsZero():
			w += fmt.Sprintf(": if it goes on like this the disk is full in %s", digits.Age(g.Full.Sub(r.At).Seconds()))
		case r.Disk == nil:
			w += "; what is left on the disk is not known"
		}
		words = append(words, w+".")
	}
	if len(g.Tables) > 0 && g.Tables[0].PerDay > 0 {
		t := g.Tables[0]
		words = append(words, fmt.Sprintf("%s grows most: %s a day.", mysql.TableName{Schema: t.Schema, Name: t.Name}, digits.Bytes(t.PerDay)))
	}
	return words
}

// what is the beginning of a sentence about growth.
func (g *Growth) what() string {
	if g.Of == OfDisk {
		return "What is on it"
	}
	return "Tables and binary logs"
}

// words are what is to be said of a table. files: its files were seen; all is what all tables take.
func (t *Table) words(largest, files bool, all int64) (words []string) {
	name := mysql.TableName{Schema: t.Schema, Name: t.Name}.String()
	if share := float64(t.Allocated) / float64(max(all, 1)); largest && share > 0.3 {
		words = append(words, fmt.Sprintf("%s alone takes %s of what tables take.", name, digits.Percent(share)))
	}
	hole := t.File - t.Allocated
	switch compressed := t.compressesPages(); {
	case compressed && hole*20 > t.File:
		words = append(words, fmt.Sprintf("%s takes %s of the %s that its file is long: its pages are compressed.", name, digits.Bytes(t.Allocated), digits.Bytes(t.File)))
	case compressed && files && t.File >= worthTelling:
		words = append(words, fmt.Sprintf("%s is to compress its pages, and its file of %s has next to no holes: the file system cannot make them, the rows were written before that (OPTIMIZE TABLE writes them anew), or they do not compress.", name, digits.Bytes(t.File)))
	case hole >= worthTelling && hole*10 > t.File:
		words = append(words, fmt.Sprintf("%s takes %s of the %s that its file is long.", name, digits.Bytes(t.Allocated), digits.Bytes(t.File)))
	}
	if t.Free != nil && *t.Free >= 16*worthTelling && *t.Free*5 > t.File {
		words = append(words, fmt.Sprintf("%s has %s of %s free inside: new rows go there; how much a rebuild gives back, risso size --measure %s measures.", name, digits.Bytes(*t.Free), digits.Bytes(t.File), shellName(t)))
	}
	if t.Data != nil && t.IndexBytes != nil && *t.IndexBytes > *t.Data && *t.IndexBytes >= 16*worthTelling {
		words = append(words, fmt.Sprintf("The secondary indexes of %s take more than its rows: %s to %s.", name, digits.Bytes(*t.IndexBytes), digits.Bytes(*t.Data)))
	}
	return words
}

// compressesPages reports whether InnoDB's page compression is on: COMPRESSION or PAGE_COMPRESSED among the options, which is neither
// NONE nor 0.
func (t *Table) compressesPages() bool {
	o := strings.NewReplacer("`", "", `"`, "", "'", "").Replace(strings.ToLower(t.Options))
	for _, word := range strings.Fields(o) {
		key, value, _ := strings.Cut(word, "=")
		if (key == "compression" && value != "none" && value != "") || (key == "page_compressed" && value != "0" && value != "off" && value != "no") {
			return true
		}
	}
	return false
}

// shellName is a table as --measure takes it.
func shellName(t *Table) string {
	return "'" + strings.ReplaceAll(t.Schema+"."+t.Name, "'", `'\''`) + "'"
}
