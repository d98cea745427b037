package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Label is what a node does, in one short line.
func (n *Node) Label() string {
	words := n.what()
	for _, f := range []struct {
		on   bool
		word string
	}{
		{n.Covering, "covering"}, {n.Temporary && n.Kind != KindTemporary && n.Kind != KindMaterialise, "temporary table"},
		{n.Filesort && n.Kind != KindSort, "filesort"}, {n.JoinBuffer != "", "join buffer (" + n.JoinBuffer + ")"},
		{n.Dependent, "dependent"}, {n.Uncacheable && !n.Dependent, "uncacheable"}, {n.Recursive, "recursive"},
		{n.Message != "" && n.Kind != KindMessage, n.Message},
	} {
		if f.on && f.word != "" {
			words += ", " + f.word
		}
	}
	if n.Role != "" && n.Kind != KindTable && n.Kind != KindRowidFilter && n.Kind != KindSubquery && n.Kind != KindMaterialise && n.Role != string(n.Kind) {
		words = n.Role + ", " + words
	}
	return words
}

// what is the label without its flags.
func (n *Node) what() string {
	switch n.Kind {
	case KindTable:
		return n.tableWords()
	case KindQuery:
		if n.SelectID > 0 {
			return "query block #" + strconv.Itoa(n.SelectID)
		}
		return "query"
	case KindSubquery:
		return strings.TrimSpace(n.Role + " " + selectNumber(n))
	case KindMaterialise:
		if n.Title != "" && strings.Contains(strings.ToLower(n.Title), "material") {
			return lowerFirst(n.Title)
		}
		return strings.TrimSpace("materialise " + selectNumber(n))
	case KindCache:
		return strings.TrimSpace("expression cache of subquery " + selectNumber(n))
	case KindUnion:
		if n.Title != "" {
			return lowerFirst(n.Title)
		}
		return strings.TrimSpace("union result " + n.Table)
	case KindSort:
		return listed("filesort", n.SortKeys)
	case KindWindow:
		return listed("window", n.Functions)
	case KindGroup:
		return listed("group", n.Functions)
	case KindLimit:
		return fmt.Sprintf("limit %d", n.Limit)
	case KindFilter:
		return "filter"
	case KindHashJoin, KindNestedLoop:
		return strings.TrimSpace(strings.ReplaceAll(string(n.Kind), "_", " ") + " " + strings.TrimSuffix(strings.TrimPrefix(n.JoinType, "inner"), "join"))
	case KindInsert, KindUpdate, KindDelete, KindReplace:
		return strings.TrimSpace(string(n.Kind) + " " + n.Table)
	case KindMessage:
		return "no rows: " + n.Message
	case KindIndexMerge:
		return "index merge: " + lowerFirst(n.Title)
	case KindRowidFilter:
		return strings.TrimSpace("row id filter " + n.Key)
	case KindOther, KindStream, KindConstantRows, KindHash, KindDistinct:
		if n.Title != "" {
			return lowerFirst(n.Title)
		}
	}
	return strings.ReplaceAll(string(n.Kind), "_", " ")
}

func (n *Node) tableWords() string {
	var b strings.Builder
	switch n.Role {
	case "insert", "update", "delete", "replace":
		b.WriteString(n.Role + " ")
	}
	name := n.Table
	if n.Alias != "" && n.Alias != n.Table {
		name += " " + n.Alias
	}
	b.WriteString(name)
	if n.Access != "" && n.Role != "insert" {
		b.WriteString(" " + n.Access)
	}
	if n.Key != "" {
		b.WriteString(" " + n.Key)
		if len(n.KeyParts) > 0 && !(len(n.KeyParts) == 1 && n.KeyParts[0] == n.Key) {
			b.WriteString(" (" + strings.Join(n.KeyParts, ", ") + ")")
		}
	}
	return strings.TrimSpace(b.String())
}

func selectNumber(n *Node) string {
	if n.SelectID == 0 {
		return ""
	}
	return "#" + strconv.Itoa(n.SelectID)
}

func listed(word string, list []string) string {
	if len(list) == 0 {
		return word
	}
	return word + " " + pretty(strings.Join(list, ", "))
}

func lowerFirst(s string) string {
	if len(s) < 2 || s[1] >= 'A' && s[1] <= 'Z' {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// count is a number of rows or executions as people write it: 1,809,458; below ten with one digit behind the point.
func count(f float64) string {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "?"
	case f >= 1e15 || f <= -1e15:
		return fmt.Sprintf("%.2e", f)
	case f != math.Trunc(f) && math.Abs(f) < 10:
		s := strconv.FormatFloat(f, 'f', 1, 64)
		if s == "0.0" || s == "-0.0" {
			return strconv.FormatFloat(f, 'g', 2, 64)
		}
		return s
	}
	s := strconv.FormatFloat(math.Abs(math.Round(f)), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if f <= -0.5 {
		return "-" + s
	}
	return s
}

// milliseconds is a time as people write it.
func milliseconds(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "?"
	case ms >= 100_000:
		return fmt.Sprintf("%s s", count(ms/1000))
	case ms >= 1000:
		return fmt.Sprintf("%.2f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 0.01 || ms == 0:
		return fmt.Sprintf("%.2f ms", ms)
	default:
		return fmt.Sprintf("%.2g µs", ms*1000)
	}
}

// size is a number of bytes in powers of 1,024.
func size(b float64) string {
	unit := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; b >= 1000 && i < len(unit)-1; i++ {
		b /= 1024
	}
	if i == 0 || b >= 100 {
		return fmt.Sprintf("%.0f %s", b, unit[i])
	}
	return fmt.Sprintf("%.3g %s", b, unit[i])
}

func (f Figure) count() string {
	if !f.Known() {
		return ""
	}
	return count(float64(f))
}
