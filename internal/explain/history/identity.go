package history

import (
	"strings"

	"github.com/rissodb/risso/internal/explain/prepared"
	"github.com/rissodb/risso/internal/sqltext"
)

// identity is what a digest is to us.
type identity struct {
	id, fingerprint, verb, tables string
}

// Statements for which the server's table of digests had no room are kept under a separate ID.
const (
	otherID          = "00000000000000000000000000000000"
	otherFingerprint = "(all other statements: the server's table of digests is full)"
)

// identifier turns the server's texts into classes and knows which are Risso's own.
type identifier struct {
	f    sqltext.Fingerprinter
	own  map[string]bool // class IDs
	seen map[string]bool // texts that are in own
	buf  []byte
}

// aroundPrepared are the verbs of what MySQL 9 reports with the text of the prepared statement though it is not run.
var aroundPrepared = map[string]bool{"PREPARE": true, "DEALLOCATE": true}

// maxTablesText bounds the list of a class' tables.
const maxTablesText = 1000

// of names the class of a digest's text.
func (i *identifier) of(digestText string) identity {
	// MySQL 9 marks the executions of prepared statements by a word before their text: the same class as without.
	digestText = prepared.CutExecute(digestText)
	i.buf = sqltext.AppendDigestText(i.buf[:0], []byte(digestText))
	fp := string(i.buf)
	return identity{id: sqltext.ClassID(i.buf), fingerprint: fp, verb: sqltext.Verb([]byte(digestText)), tables: tablesOf([]byte(digestText))}
}

// tablesOf lists the tables of a statement.
func tablesOf(statement []byte) string {
	var names []string
	for _, t := range sqltext.Tables(statement) {
		name := t.Name
		if t.Schema != "" {
			name = t.Schema + "." + name
		}
		names = append(names, name)
	}
	list := strings.Join(names, ",")
	if len(list) > maxTablesText {
		list = strings.ToValidUTF8(list[:maxTablesText], "") + "…"
	}
	return list
}

// note remembers statements that Risso sends: their classes are left out.
//
// The server's table of digests has neither users nor comments, so a class is all there is to go by. If others send the very
// statements that Risso sends, such as SHOW GLOBAL STATUS, theirs are left out too.
func (i *identifier) note(statements ...string) {
	if i.own == nil {
		i.own, i.seen = map[string]bool{}, map[string]bool{}
	}
	for _, s := range statements {
		if i.seen[s] {
			continue
		}
		if len(i.seen) > maxOwn {
			clear(i.seen)
		}
		i.seen[s] = true
		i.buf = i.f.Append(i.buf[:0], []byte(s))
		i.own[sqltext.ClassID(sqltext.AppendPlain(nil, i.buf))] = true
	}
}

// maxOwn is how many texts are remembered; beyond it they are read again.
const maxOwn = 5000

func (i *identifier) isOwn(class string) bool { return i.own[class] }
