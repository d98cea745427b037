package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// state is how far a table is.
type state int

const (
	absent  state = iota // not begun
	claimed              // it will be made: what has its name is of this restore
	created              // without rows, or with some
	loaded               // all rows are in
	indexed              // and all its keys
	equal                // and it was compared with the manifest
)

// lockName keeps two restores from one server (MySQL manual, "Locking Functions").
const lockName = "risso_restore"

var journalTables = []string{
	"CREATE DATABASE IF NOT EXISTS " + repo.JournalSchema + " /* risso: journal of a restore */",
	"CREATE TABLE IF NOT EXISTS " + repo.JournalSchema + ".restore (one TINYINT NOT NULL PRIMARY KEY, what VARBINARY(64) NOT NULL, backup VARBINARY(64) NOT NULL, began VARBINARY(32) NOT NULL) ENGINE=InnoDB",
	"CREATE TABLE IF NOT EXISTS " + repo.JournalSchema + ".tables (id BINARY(16) NOT NULL PRIMARY KEY, state TINYINT NOT NULL) ENGINE=InnoDB",
	"CREATE TABLE IF NOT EXISTS " + repo.JournalSchema + ".chunks (id BINARY(16) NOT NULL, number INT UNSIGNED NOT NULL, row_count BIGINT UNSIGNED NOT NULL, whole TINYINT NOT NULL, PRIMARY KEY (id, number)) ENGINE=InnoDB",
	"CREATE TABLE IF NOT EXISTS " + repo.JournalSchema + ".told (number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, id BINARY(16) NOT NULL, said LONGBLOB NOT NULL, KEY (id)) ENGINE=InnoDB",
}

// tableID names a table of the target in the journal, as SQL.
func tableID(schema, table string) string {
	id := hashOf(schema, table)
	return "x'" + hex.EncodeToString(id[:]) + "'"
}

// hashOf replaces a table's name in the journal.
func hashOf(schema, table string) [16]byte {
	h := sha256.Sum256([]byte(schema + "\x00" + table))
	return [16]byte(h[:16])
}

// asked distinguishes restores: another one may not go on where this one was.
func (r *run) asked() string {
	h := sha256.Sum256([]byte(strings.Join([]string{r.o.Repo.ID, r.header.ID, strings.Join(r.o.Schemas, "\x00"), strings.Join(r.o.Tables, "\x00"), strings.Join(r.o.Rename, "\x00")}, "\x01")))
	return hex.EncodeToString(h[:])
}

// lock keeps other restores away as long as the control session lives.
func (r *run) lock(ctx context.Context, s *session) error {
	got := ""
	err := s.Query(ctx, "SELECT /* risso: one restore at a time */ GET_LOCK('"+lockName+"', 10)", func(row [][]byte) error {
		got = string(row[0])
		return nil
	})
	if err == nil && got != "1" {
		err = ErrBusy
	}
	return err
}

// unlocked waits until no other restore runs, and keeps none away: a dry run is refused where the restore would be.
func (r *run) unlocked(ctx context.Context, s *session) error {
	if err := r.lock(ctx, s); err != nil {
		return err
	}
	return s.Exec(ctx, "DO /* risso: only a dry run */ RELEASE_LOCK('"+lockName+"')")
}

// mark is a comment in every statement that loads rows or changes a table.
const mark = "/* risso: restore */"

// endTime is how long a server may take to end a session that was killed.
const endTime = time.Minute

// endEarlier ends the sessions of a restore that was killed, and waits until they are gone: the server goes on with the rows that
// it has got already, and a table without transactions keeps them. Only the holder of the lock may do that.
func (r *run) endEarlier(ctx context.Context, s *session) error {
	own := strconv.FormatUint(s.ID(), 10)
	for deadline := time.Now().Add(endTime); ; {
		rows, err := s.QueryMaps(ctx, r.server.SessionList())
		if err != nil {
			return fmt.Errorf("look for sessions of an interrupted restore: %w", err)
		}
		left := ""
		for _, m := range rows {
			if m["ID"] == own || !strings.Contains(m["INFO"], mark) {
				continue
			}
			left = m["ID"]
			if err := s.Exec(ctx, "KILL /* risso: of a restore that was cut off */ "+left); err != nil && mysql.ErrorNumber(err) != errno.NoSuchThread {
				return fmt.Errorf("kill session %s of an interrupted restore: %w", left, err)
			}
		}
		if left == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("session %s of an interrupted restore was killed %s ago and is still running: wait for it to end", left, endTime)
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// findJournal looks for what an earlier restore left.
func (r *run) findJournal(ctx context.Context, s *session) (found bool, what, backup, began string, err error) {
	err = s.Query(ctx, "SELECT /* risso: was a restore cut off? */ what, backup, began FROM "+repo.JournalSchema+".restore", func(row [][]byte) error {
		found, what, backup, began = true, string(row[0]), string(row[1]), string(row[2])
		return nil
	})
	if n := mysql.ErrorNumber(err); n == errno.NoSuchTable || n == errno.UnknownDatabase {
		return false, "", "", "", nil
	}
	return found, what, backup, began, err
}

// beginJournal makes the journal.
func (r *run) beginJournal(ctx context.Context, s *session) error {
	statements := append([]string{"DROP DATABASE IF EXISTS " + repo.JournalSchema}, journalTables...)
	statements = append(statements, fmt.Sprintf("INSERT INTO %s.restore VALUES (1, '%s', %s, '%s')",
		repo.JournalSchema, r.asked(), mysql.Literal(r.header.ID), time.Now().UTC().Format(time.RFC3339)))
	for i, st := range statements {
		if err := s.Exec(ctx, st); err != nil {
			return fmt.Errorf("create the journal in the target: %w", err)
		}
		r.changed = r.changed || i > 0 || r.o.Overwrite // the first drops nothing else
	}
	return nil
}

// endJournal takes it away.
func (r *run) endJournal(ctx context.Context, s *session) error {
	s.schema = ""
	if r.o.SetGTID { // a separate transaction would make the target diverge from the server that it will follow
		if err := s.Exec(ctx, "SET SESSION /* risso: position of a backup */ sql_log_bin = 0"); err != nil {
			return fmt.Errorf("remove the journal: %w", err)
		}
	}
	if err := s.Exec(ctx, "DROP DATABASE IF EXISTS "+repo.JournalSchema); err != nil {
		return fmt.Errorf("remove the journal: %w", err)
	}
	return nil
}

// readState reads how far a table is.
func (r *run) readState(ctx context.Context, s *session, t *table) (state, error) {
	st := absent
	err := s.Query(ctx, "SELECT /* risso: how far is it? */ state FROM "+repo.JournalSchema+".tables WHERE id = "+t.id, func(row [][]byte) error {
		n, err := strconv.Atoi(string(row[0]))
		st = state(n)
		return err
	})
	return st, err
}

// setState notes how far tables are.
func setState(ctx context.Context, s *session, st state, tables ...*table) error {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s.tables VALUES ", repo.JournalSchema)
	for i, t := range tables {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "(%s, %d)", t.id, st)
	}
	b.WriteString(" ON DUPLICATE KEY UPDATE state = VALUES(state)")
	return s.Exec(ctx, b.String())
}

// readChunk reads how many rows of a chunk are in.
func readChunk(ctx context.Context, s *session, t *table, number int) (rows int64, whole bool, err error) {
	err = s.Query(ctx, fmt.Sprintf("SELECT /* risso: how far is it? */ row_count, whole FROM %s.chunks WHERE id = %s AND number = %d", repo.JournalSchema, t.id, number), func(row [][]byte) error {
		n, err := strconv.ParseInt(string(row[0]), 10, 64)
		rows, whole = n, string(row[1]) == "1"
		return err
	})
	return rows, whole, err
}

// noteChunk is the statement that notes how many rows of a chunk are in; it runs in the transaction that loads them.
func noteChunk(t *table, number int, rows int64, whole bool) string {
	w := 0
	if whole {
		w = 1
	}
	return fmt.Sprintf("INSERT INTO %s.chunks VALUES (%s, %d, %d, %d) ON DUPLICATE KEY UPDATE row_count = VALUES(row_count), whole = VALUES(whole)",
		repo.JournalSchema, t.id, number, rows, w)
}

// forget takes back what is noted of a table's chunks.
func forget(ctx context.Context, s *session, t *table) error {
	return s.Exec(ctx, "DELETE FROM "+repo.JournalSchema+".chunks WHERE id = "+t.id)
}
