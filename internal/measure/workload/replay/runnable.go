package replay

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/sqltext"
)

// Why statements are left out.
const (
	LeftWrites   = "write, which --writes allows"
	LeftCut      = "are cut in the recording"
	LeftNoValues = "are prepared statements without their values"
	LeftOther    = "are not SELECT, INSERT, UPDATE, DELETE or REPLACE"
	LeftLong     = "are too long"
	LeftControl  = "begin or end transactions, which needs --mode timeline with --writes and a thread for each session"
)

// longest is how long a statement may be: one packet of the protocol.
const longest = 1<<24 - 2

// Runnable says why a statement is not run again, or "". cut says that the recording has only its beginning, timeline that
// statements keep their order, so that transactions can be followed.
func Runnable(sql []byte, cut, writes, timeline bool) (why string) {
	verb := sqltext.Verb(sql)
	control := isControl(sql, verb)
	known := slices.Contains([]string{"SELECT", "TABLE", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE"}, verb)
	switch {
	case control && !(timeline && writes):
		return LeftControl
	case control:
		return ""
	case !known:
		return LeftOther
	case cut:
		return LeftCut
	case len(sql) > longest:
		return LeftLong
	case sqltext.HasPlaceholders(sql):
		return LeftNoValues
	case sqltext.ReadsOnly(sql) == nil:
		return ""
	case !writes:
		return LeftWrites
	case verb == "SELECT" && intoFile(sql):
		return LeftOther
	}
	return ""
}

// isControl recognizes statements that begin or end a transaction.
func isControl(sql []byte, verb string) bool {
	switch verb {
	case "BEGIN", "COMMIT", "ROLLBACK":
		return true
	case "START":
		return strings.Contains(strings.ToUpper(string(sql[:min(len(sql), 80)])), "TRANSACTION")
	}
	return false
}

// intoFile tells a SELECT … INTO.
func intoFile(sql []byte) bool {
	return slices.ContainsFunc(sqltext.Tokens(string(sql)), func(t sqltext.Token) bool {
		return t.Kind == sqltext.TokenWord && strings.EqualFold(t.Text, "into")
	})
}

// kindOf is how results count the statement.
func kindOf(sql string) drive.Kind {
	switch verb := sqltext.Verb([]byte(sql)); {
	case isControl([]byte(sql), verb):
		return drive.Other
	case slices.Contains([]string{"SELECT", "TABLE", "VALUES"}, verb):
		return drive.Read
	}
	return drive.Write
}
