package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
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

func (f Figure) count() string {
	if !f.Known() {
		return ""
	}
	return digits.Count(float64(f))
}
