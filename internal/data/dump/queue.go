package dump

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// table is a table that is being read, maybe by several workers.
type table struct {
	define.Table
	info  define.TableInfo
	key   chunk.Key
	plain bool

	mu     sync.Mutex
	open   int // parts that are not read yet
	chunks []placed
	places map[chunk.Place]bool // in JSON documents, where types have to be asked for
	unseen bool                 // and there are more
	typed  []repo.Chunk
}

// placed is a chunk with its place among the table's.
type placed struct {
	part, number int
	sum          chunk.Sum
	chunk        repo.Chunk
}

// part is some ranges of a table, to be read by one worker one after the other.
type part struct {
	table  *table
	number int // its place among the table's
	ranges []chunk.Range
	first  int       // number of its next chunk
	known  bool      // the ranges are those of an earlier backup
	waits  time.Time // since when it has been unavailable because somebody wants to change the table
}

// queue hands out work: parts of tables that are begun before tables that are not, so that few are open at a time.
type queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	infos  []define.TableInfo
	next   int
	handed []*part // for the session in reserve
	parts  []*part
	busy   int // workers that may still put parts back or add some
	ended  bool
}

// newQueue puts the tables into the order in which they are read: the largest first, and among equals those believed
// empty last, next to each other. Locks are asked for in the list's own order, which must be taken before.
func newQueue(l *listing) *queue {
	q := &queue{infos: l.tables}
	slices.SortStableFunc(q.infos, func(a, b define.TableInfo) int {
		switch ea, eb := a.Rows == 0, b.Rows == 0; {
		case a.Bytes != b.Bytes:
			return cmp.Compare(b.Bytes, a.Bytes)
		case ea == eb:
			return 0
		case eb:
			return -1
		}
		return 1
	})
	q.cond = sync.NewCond(&q.mu)
	return q
}

// Tables that the server believes to be empty are taken several at a time, so that it is asked once for all of them.
const (
	takeMost  = 50
	smallSize = 64 << 10 // bytes: an empty table has a page, and each partition of it
)

func believedEmpty(t define.TableInfo) bool { return t.Rows == 0 && t.Bytes <= smallSize }

// take returns a part, or tables that no worker has begun; neither when all is done. It waits while others may yet add parts.
// After taking something call done when finished with it. workers is how many take.
func (q *queue) take(workers int) (*part, []define.TableInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		switch {
		case q.ended:
			return nil, nil
		case len(q.parts) > 0:
			p := q.parts[0]
			q.parts = slices.Delete(q.parts, 0, 1)
			q.busy++
			return p, nil
		case q.next < len(q.infos):
			from, most := q.next, max(1, min(takeMost, (len(q.infos)-q.next)/workers))
			q.next++
			for q.next-from < most && believedEmpty(q.infos[from]) && believedEmpty(q.infos[q.next]) {
				q.next++
			}
			q.busy++
			return nil, slices.Clone(q.infos[from:q.next])
		case q.busy == 0 && len(q.handed) == 0:
			return nil, nil
		}
		q.cond.Wait()
	}
}

// claim takes a table that somebody wants to alter; nil when it has been begun already.
func (q *queue) claim(name mysql.TableName) *define.TableInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := q.next; i < len(q.infos) && !q.ended; i++ {
		if q.infos[i].TableName == name {
			info := q.infos[i]
			copy(q.infos[q.next+1:i+1], q.infos[q.next:i])
			q.infos[q.next] = info
			q.next++
			q.busy++
			return &info
		}
	}
	return nil
}

// back takes tables that were taken, and of which nothing has been read, to be taken one by one.
func (q *queue) back(infos []define.TableInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range infos {
		t.Rows = max(t.Rows, 1)
		q.infos = append(q.infos, t)
	}
	q.cond.Broadcast()
}

// hand puts away a part that only the session in reserve can read.
func (q *queue) hand(p *part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handed = append(q.handed, p)
}

// takeHanded returns such a part, or nil.
func (q *queue) takeHanded() *part {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.handed) == 0 || q.ended {
		return nil
	}
	p := q.handed[0]
	q.handed = slices.Delete(q.handed, 0, 1)
	q.busy++
	return p
}

// takeBack gives what was kept for the reserve session, which is lost, to the others.
func (q *queue) takeBack() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parts = append(q.parts, q.handed...)
	q.handed = nil
	q.cond.Broadcast()
}

// empty reports whether a worker has to wait, or is done.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.parts) == 0 && q.next >= len(q.infos)
}

// outweighs reports whether a table that was just taken is more than one worker's share of what is left: then several should read
// it. Otherwise a worker reads it as a whole, which costs the server less.
func (q *queue) outweighs(info define.TableInfo, workers int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := info.Bytes
	for _, t := range q.infos[q.next:] {
		if left += t.Bytes; info.Bytes*int64(workers) <= left {
			return false
		}
	}
	return true
}

func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.cond.Broadcast()
}

// add puts parts of a table into the queue.
func (q *queue) add(parts ...*part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parts = append(q.parts, parts...)
	q.cond.Broadcast()
}

// wake ends all waiting: the backup has failed.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.cond.Broadcast()
}

// unfinished is the error of a queue that is left with work in it.
func (q *queue) unfinished() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.parts) + len(q.handed) + len(q.infos) - q.next + q.busy; n > 0 {
		return fmt.Errorf("all sessions were lost, and the snapshot with them: %s not read", digits.Plural(n, "part is", "parts are"))
	}
	return nil
}
