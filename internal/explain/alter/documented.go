package alter

import (
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Documented is what the manuals' tables of online DDL say of a statement: for servers of which none is on this machine. It knows the common
// changes; of any other it says nothing (Algorithm "").
func Documented(f *Facts, st Statement) (a Answer) {
	d := f.Server.Dialect()
	worst := -1
	ways := f.Server.AlterAlgorithms()
	for _, e := range sqltext.Elements(d.Tokens(st.Body)) {
		op := operation(e)
		way, rebuilds, builds, lock := f.Server.DocumentedAlter(op)
		if way == "" || !strings.EqualFold(f.Table.Engine, "InnoDB") {
			return Answer{}
		}
		if builds {
			a.Effect.Built = append(a.Effect.Built, "new")
		}
		a.Effect.Rebuilt = a.Effect.Rebuilt || rebuilds
		if at := indexOf(ways, way); at > worst {
			worst, a.Algorithm = at, way
		}
		if lock == "SHARED" || a.Lock == "" {
			a.Lock = lock
		}
	}
	if !f.Server.AlterTakesLock(a.Algorithm) {
		a.Lock = ""
	}
	return a
}

func indexOf(list []string, word string) int {
	for i, w := range list {
		if w == word {
			return i
		}
	}
	return -1
}

// operation says what one of a statement's changes is.
func operation(e []sqltext.Token) mysql.AlterOperation {
	r := cursor{t: e}
	has := func(words ...string) bool {
		for i := range e {
			r.i = i
			if r.accept(words...) {
				return true
			}
		}
		return false
	}
	switch {
	case r.is(0, "ADD") && (r.is(1, "INDEX") || r.is(1, "KEY") || r.is(1, "UNIQUE")):
		return mysql.AlterAddIndex
	case r.is(0, "ADD") && (r.is(1, "FULLTEXT") || r.is(1, "SPATIAL")):
		return mysql.AlterAddSpecialIndex
	case r.is(0, "ADD") && r.is(1, "PRIMARY"):
		return mysql.AlterAddPrimary
	case r.is(0, "ADD") && (r.is(1, "CONSTRAINT") || r.is(1, "FOREIGN") || r.is(1, "CHECK") || r.is(1, "PARTITION")):
		return mysql.AlterOther
	case r.is(0, "ADD") && (has("AUTO_INCREMENT") || has("STORED") || has("PERSISTENT")):
		return mysql.AlterOther
	case r.is(0, "ADD") && (has("FIRST") || has("AFTER")):
		return mysql.AlterAddColumnAt
	case r.is(0, "ADD"):
		return mysql.AlterAddColumn
	case r.is(0, "DROP") && (r.is(1, "INDEX") || r.is(1, "KEY")), r.is(0, "RENAME") && (r.is(1, "INDEX") || r.is(1, "KEY")):
		return mysql.AlterDropIndex
	case r.is(0, "DROP") && (r.is(1, "PRIMARY") || r.is(1, "CONSTRAINT") || r.is(1, "FOREIGN") || r.is(1, "CHECK") || r.is(1, "PARTITION")):
		return mysql.AlterOther
	case r.is(0, "DROP"):
		return mysql.AlterDropColumn
	case r.is(0, "RENAME") && r.is(1, "COLUMN"):
		return mysql.AlterRenameColumn
	case r.is(0, "RENAME"):
		return mysql.AlterRename
	case r.is(0, "ALTER") && has("DEFAULT"):
		return mysql.AlterDefault
	case r.is(0, "FORCE"), r.is(0, "ENGINE") && has("InnoDB"), r.is(0, "ROW_FORMAT"):
		return mysql.AlterRebuild
	case r.is(0, "CONVERT"):
		return mysql.AlterConvert
	}
	return mysql.AlterOther
}
