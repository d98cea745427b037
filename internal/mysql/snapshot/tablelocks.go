package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/mysql"
)

const unlockTables = "UNLOCK /* risso */ TABLES"

// If accounts may not lock the server, all tables are locked. That takes as long as the server needs to open those that
// its table cache does not have: 0.4 ms each on MySQL 9.7, which reads their definitions from tables. Each session uses one
// of table_open_cache_instances parts of the cache (Table_cache_manager::get_cache in sql/table_cache.h: by the session's
// number), so that one session alone can have few of them open in advance. Several sessions can have all.
const (
	spreadMost  = 16                     // sessions
	spreadTable = 500                    // tables of a session at most: to look whether it has a lock already, a server other than MySQL 8 goes through all
	spreadStall = 250 * time.Millisecond // see Snapshot.requests
	spreadTries = 2
	openAtOnce  = 50 // tables that one statement opens; a server allows 61 in a join, and nests a UNION's
)

// closeAll ends sessions.
func closeAll(list []*mysql.Stream) {
	for _, st := range list {
		st.Close()
	}
}

// each runs a statement in all sessions at the same time.
func (r *requests) each(ctx context.Context, statement string) error {
	var g errgroup.Group
	for _, q := range r.list {
		g.Go(func() error { return q.st.Exec(ctx, statement) })
	}
	return g.Wait()
}

// tableCache is how a server keeps tables open.
type tableCache struct{ size, parts int }

// readTableCache asks for it. Source: both manuals, "table_open_cache" and "table_open_cache_instances".
func readTableCache(ctx context.Context, st *mysql.Stream) (c tableCache, err error) {
	err = st.Query(ctx, "SHOW /* risso: how many tables stay open? */ GLOBAL VARIABLES WHERE Variable_name IN ('table_open_cache', 'table_open_cache_instances')", func(row [][]byte) error {
		n, err := strconv.Atoi(string(row[1]))
		if strings.EqualFold(string(row[0]), "table_open_cache") {
			c.size = n
		} else {
			c.parts = n
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("ask for the size of the table cache: %w", err)
	}
	c.parts = max(1, c.parts)
	return c, nil
}

// spreadOver is by how many sessions tables are locked, and whether they can all be open in advance.
func (c tableCache) spreadOver(tables int) (sessions int, fits bool) {
	each := max(1, min(spreadTable, c.size/c.parts*4/5)) // others have tables open, too
	sessions = min((tables+each-1)/each, c.parts, spreadMost)
	return max(1, sessions), tables <= each*sessions
}

// spread opens the tables in the server's cache, in the sessions that will lock them, and says what those ask for. The caller
// closes the sessions. An account that may not have that many makes do with fewer.
func (s *Snapshot) spread(ctx context.Context, o Options, l *locking) (lockers []*mysql.Stream, err error) {
	cache, err := readTableCache(ctx, s.control)
	if err != nil {
		return nil, err
	}
	n, fits := cache.spreadOver(len(s.lists.Tables))
	for len(lockers) < n && n > 1 {
		st, err := s.session(ctx, o.Guard.target)
		if err != nil && mysql.ClassOf(err) == mysql.ClassFull {
			break
		}
		if err != nil {
			return lockers, err
		}
		lockers = append(lockers, st)
	}
	use := lockers
	if len(use) < 2 {
		use = []*mysql.Stream{s.control}
	}
	plain := map[mysql.TableName]bool{}
	for _, t := range s.lists.Plain {
		plain[t] = true
	}
	var g errgroup.Group
	for i, st := range use {
		part := s.lists.Tables[i*len(s.lists.Tables)/len(use) : (i+1)*len(s.lists.Tables)/len(use)]
		if len(part) == 0 {
			continue
		}
		l.spread = append(l.spread, request{st, lockTables(part)})
		if !fits {
			continue
		}
		g.Go(func() error {
			if err := s.setLockWait(ctx, st, o.LockWait); err != nil {
				return err
			}
			// A table without transactions may be locked by somebody for as long as he likes.
			return openTables(ctx, st, slices.DeleteFunc(slices.Clone(part), func(t mysql.TableName) bool { return plain[t] }))
		})
	}
	return lockers, g.Wait()
}

// openTables reads no row of tables: the server has them open afterwards, and in a transaction keeps them from being altered.
// What it refuses shows when the table is locked or read.
func openTables(ctx context.Context, st *mysql.Stream, tables []mysql.TableName) error {
	for some := range slices.Chunk(tables, openAtOnce) {
		var refused *driver.MySQLError
		if err := st.Exec(ctx, openStatement(some)); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}

// openStatement opens at most openAtOnce tables.
func openStatement(tables []mysql.TableName) string {
	var b strings.Builder
	for i, t := range tables {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("(SELECT /* risso: opens tables */ 1 FROM " + t.String() + " LIMIT 0)")
	}
	return b.String()
}
