package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// applies makes a finding of a table say what its statement needs on this server, or takes the statement out where it would fail, or break
// another table.
func applies(s *Server, t *Table, f *Finding) {
	if !strings.HasPrefix(f.Statement, t.alter()) {
		return
	}
	if t.Merge != "" {
		f.Statement, f.Undo, f.Effect = "", "", ""
		f.Advice = "the MERGE table " + t.Merge + " and all tables that it is made of must have the same columns and indexes, and be of MyISAM: change them together, or drop " + t.Merge + " first"
		return
	}
	if !t.innodb() && slices.Contains([]string{dropsAtOnce, rebuilds, rebuildsShared}, f.Effect) {
		f.Effect = copies // only InnoDB changes a table in place
	}
	say := func(text string) { f.Advice = strings.TrimPrefix(f.Advice+"; "+text, "; ") }
	doubt := func(text string) {
		f.Sure, f.Doubt = Likely, strings.TrimPrefix(f.Doubt+"; "+text, "; ")
	}
	modifies := strings.Contains(f.Statement, "MODIFY COLUMN") || strings.Contains(f.Statement, "CONVERT TO")
	if s.Blind != "" && (modifies || strings.Contains(f.Statement, "ADD PRIMARY KEY") && strings.Contains(f.Statement, "DROP INDEX")) {
		doubt("the account does not see " + s.Blind)
	}
	var without []string
	zero, within := s.RefusesZeroDates(s.text("sql_mode"))
	if c := zeroDefault(t, zero, within); c != "" {
		without = append(without, "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "TRADITIONAL")
		say("the default of its column " + c + " is a date that this server's sql_mode refuses in each ALTER TABLE")
	} else if c := dateColumn(t); zero && c != "" && f.Effect == copies {
		doubt("it fails if a row has the date 0000-00-00 in " + c + ", which this server's sql_mode refuses")
	}
	if strings.Contains(f.Statement+f.Undo, `\`) && slices.Contains(modes(s), "NO_BACKSLASH_ESCAPES") {
		without = append(without, "NO_BACKSLASH_ESCAPES")
		say(`this server's sql_mode takes \ for an ordinary letter`)
	}
	if len(without) > 0 {
		kept := slices.DeleteFunc(modes(s), func(m string) bool { return slices.Contains(without, m) })
		say("first, in the same session, and before the undo, too: SET SESSION sql_mode = '" + strings.Join(kept, ",") + "'")
	}
}

func modes(s *Server) []string { return strings.Split(s.text("sql_mode"), ",") }

// zeroDefault is a column whose default is 0000-00-00, or has a month or day of 00, as far as sql_mode refuses it; "" if there is none.
func zeroDefault(t *Table, zero, within bool) string {
	if !zero && !within {
		return ""
	}
	for _, c := range t.Columns {
		if !is("date", "datetime", "timestamp")(c.Type) || !c.Default {
			continue
		}
		code := sqltext.Tokens(t.ColumnText(c.Name, ""))
		for i := 1; i < len(code); i++ {
			if code[i].Kind != sqltext.TokenString || !strings.EqualFold(code[i-1].Text, "DEFAULT") {
				continue
			}
			day, _, _ := strings.Cut(strings.Trim(code[i].Text, "'"), " ")
			if day == "0000-00-00" && zero || day != "0000-00-00" && strings.Contains(day+"-", "-00-") && within {
				return c.Name
			}
		}
	}
	return ""
}

// dateColumn is the first column with a date, "" if there is none.
func dateColumn(t *Table) string {
	for _, c := range t.Columns {
		if is("date", "datetime", "timestamp")(c.Type) {
			return c.Name
		}
	}
	return ""
}

// notInnoDB says why a table cannot be of InnoDB; "" if it can. Sources: MySQL manual, "InnoDB Limits" (names of columns that it keeps for itself,
// rows of at most half a page), "InnoDB Full-Text Indexes" (FTS_DOC_ID).
func notInnoDB(s *Server, t *Table) string {
	for _, c := range t.Columns {
		switch {
		case is("DB_ROW_ID", "DB_TRX_ID", "DB_ROLL_PTR")(c.Name):
			return "it keeps the name " + c.Name + " for a column of its own"
		case is("FTS_DOC_ID")(c.Name) && !(c.Name == "FTS_DOC_ID" && c.Type == "bigint" && c.Unsigned && !c.Nullable):
			return "a column called FTS_DOC_ID must be BIGINT UNSIGNED NOT NULL there, and written so"
		}
		if !c.Auto {
			continue
		}
		first := false
		for _, k := range t.Keys {
			first = first || len(k.Parts) > 0 && strings.EqualFold(k.Parts[0].Column, c.Name)
		}
		if !first {
			return "its AUTO_INCREMENT column " + c.Name + " is not the first of any index"
		}
	}
	page, _ := s.number("innodb_page_size")
	if most := int(page/2) - 66; page > 0 && page <= 16384 && longestRow(t) > most {
		return fmt.Sprintf("its rows can be longer than %d bytes, which is half a page; VARCHAR, TEXT and BLOB keep the rest of long values elsewhere, CHAR and BINARY do not", most)
	}
	return ""
}

// longestRow is how much of the longest row InnoDB keeps on its page in the row format DYNAMIC: what has a fixed length whole, of all else at
// most 40 bytes. Source: storage/innobase/dict/dict0dict.cc, dict_index_too_big_for_tree, of MySQL and MariaDB.
func longestRow(t *Table) int {
	sum := 5 + 6 + 6 + 7 + (len(t.Columns)+7)/8
	for _, c := range t.Columns {
		switch {
		case c.Type == "char" && oneByte(c.Charset), c.Type == "binary":
			sum += max(chars(c), 1)
		case define.LargestInteger(c.Type, true) > 0, is("float", "double", "date", "datetime", "timestamp", "time", "year", "bit", "enum", "set")(c.Type):
			sum += 8 // or less
		case is("decimal")(c.Type):
			sum += 30 // or less
		default:
			sum += 42
		}
	}
	return sum
}

// oneByte reports whether each character of a character set has one byte.
func oneByte(charset string) bool {
	return strings.HasPrefix(charset, "latin") || strings.HasPrefix(charset, "cp12") || strings.HasPrefix(charset, "cp8") || is("ascii", "binary", "koi8r", "koi8u", "greek", "hebrew", "tis620", "dec8", "hp8", "swe7", "armscii8", "geostd8", "keybcs2", "macce", "macroman")(charset)
}
