package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What servers hold of a name. Source: MySQL manual, "Schema Object Names" and "Identifier Length Limits"; MariaDB documentation,
// "Identifier Names".
const (
	nameChars   = 64
	nameLast    = 0xFFFF // names are kept in utf8mb3
	fileBytes   = 255    // of a file's or folder's name, on each file system that Linux has for a server
	tableEnding = len(".ibd")
)

// CheckSchemaName says why no server can hold a schema of that name; nil: some can.
func CheckSchemaName(name string) error { return checkName(name, fileBytes) }

// CheckTableName says why no server can hold a table or view of that name; nil: some can.
func CheckTableName(name string) error { return checkName(name, fileBytes-tableEnding) }

func checkName(name string, most int) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case !utf8.ValidString(name):
		return errors.New("it is not UTF-8")
	case strings.IndexByte(name, 0) >= 0:
		return errors.New("it contains a NUL")
	case strings.HasSuffix(name, " "):
		return errors.New("it ends in a blank")
	}
	for _, c := range name {
		if c > nameLast {
			return fmt.Errorf("it contains %q, and names have no characters beyond U+FFFF", c)
		}
	}
	if n := utf8.RuneCountInString(name); n > nameChars {
		return fmt.Errorf("it has %d characters, and a name has at most %d", n, nameChars)
	}
	if n := fileNameBytes(name); n > most {
		return fmt.Errorf("its file name would have %d bytes or more, and %d are the maximum", n, most)
	}
	return nil
}

// encodedLetters are the ranges in which letters take three bytes in a file's name; what else is no letter of ASCII, digit or _ takes
// five. Source: MySQL manual, "Mapping of Identifiers to File Names".
var encodedLetters = [][2]rune{{0x00C0, 0x058F}, {0x1E00, 0x1FFF}, {0x2160, 0x217F}, {0x24B6, 0x24E9}, {0xFF21, 0xFF5A}}

// fileNameBytes is how long the name of a table's file or a schema's folder is at least, without its ending.
func fileNameBytes(name string) (n int) {
	for _, c := range name {
		switch {
		case c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
			n++
		case inRanges(c, encodedLetters):
			n += 3
		default:
			n += 5
		}
	}
	return n
}

func inRanges(c rune, ranges [][2]rune) bool {
	for _, r := range ranges {
		if c >= r[0] && c <= r[1] {
			return true
		}
	}
	return false
}

// systemSchemas belong to the server and are made by it.
var systemSchemas = []string{"information_schema", "performance_schema", "mysql", "sys", "ndbinfo"}

// SystemSchema reports whether a schema belongs to the server itself.
func SystemSchema(name string) bool { return slices.Contains(systemSchemas, strings.ToLower(name)) }

// Literal is a text as SQL takes it, in a session whose sql_mode has no NO_BACKSLASH_ESCAPES.
func Literal(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`, "\x00", `\0`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}

// Literals are texts as IN (…) takes them.
func Literals(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = Literal(s)
	}
	return strings.Join(parts, ", ")
}

// TableName names a table.
type TableName struct{ Schema, Name string }

func (n TableName) String() string { return Quote(n.Schema) + "." + Quote(n.Name) }
