package read

import (
	"context"
	sqldriver "database/sql/driver"
	"maps"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// WaitClasses are what a busy thread can be found doing, in the order in which charts stack them.
var WaitClasses = []string{"running", "commit", "semisync", "row_lock", "metadata_lock", "table_lock", "io", "network", "replication", "other"}

// waitReader counts, each second that something runs, what the server's threads do, from the state that each shows.
type waitReader struct {
	pos     map[string]int
	counts  map[string]float64
	dumpers int // binary log dump threads: replicas that fetch from here

	sessions []Session // that run a statement, of the same moment
	more     bool      // there were others, for which there was no room
}

// wordsOfState tells the class of a thread state. The first match wins.
// (https://dev.mysql.com/doc/refman/9.4/en/general-thread-states.html, https://mariadb.com/kb/en/general-thread-states/)
var wordsOfState = []struct{ word, class string }{
	{"semi-sync", "semisync"},
	{"metadata lock", "metadata_lock"},
	{"waiting for table flush", "metadata_lock"},
	{"waiting for global read lock", "metadata_lock"},
	{"waiting for backup lock", "metadata_lock"},
	{"waiting for commit lock", "metadata_lock"}, // of FLUSH TABLES WITH READ LOCK
	{"waiting for gtid", "replication"},          // … to be committed
	{"waiting for handler commit", "commit"},
	{"waiting for prior transaction", "commit"},
	{"commit", "commit"},
	{"waiting for table level lock", "table_lock"},
	{"user lock", "table_lock"},
	{"system lock", "table_lock"},
	{"row lock", "row_lock"},
	{"sending to client", "network"},
	{"writing to net", "network"},
	{"reading from net", "network"},
	{"receiving from client", "network"},
	{"master_gtid_wait", "replication"},
	{"user sleep", "other"},
	{"waiting", "other"},
}

// commitsAtQueryEnd reports whether the server shows an autocommit's write of the logs as query end: MySQL 5.7 and MariaDB do.
func commitsAtQueryEnd(s mysql.Server) bool { return s.MariaDB() || s.Number < 80000 }

func classOfState(state string, commitAtQueryEnd bool) string {
	low := strings.ToLower(state)
	if low == "query end" && commitAtQueryEnd {
		return "commit"
	}
	for _, w := range wordsOfState {
		if strings.Contains(low, w.word) {
			return w.class
		}
	}
	return "running"
}

// statement asks for the sessions that run a statement.
func (r *waitReader) statement(s mysql.Server) string {
	if s.PerformanceSchema { // takes no lock that sessions need
		return threadsStatement(false, false, MomentText)
	}
	return processListStatement(s, MomentText)
}

// MomentText is how many bytes of a statement are read each second, unless the reader of statements has more.
const MomentText = 1024

// read samples the sessions; rowLocks is Innodb_row_lock_current_waits, for no state shows those.
func (r *waitReader) read(ctx context.Context, c *mysql.Conn, s *fleet.Sample, rowLocks float64) (err error) {
	if r.counts == nil {
		r.counts = make(map[string]float64)
	}
	clear(r.counts)
	r.sessions, r.more = nil, false
	if doing, sessions := c.Traffic().Doing(); doing != nil { // the reader of statements has just asked
		maps.Copy(r.counts, doing)
		r.sessions, _ = sessions.([]Session)
		r.emit(s)
		return nil
	}
	if r.sessions, r.more, err = runningSessions(ctx, c, r.statement(c.Server)); err != nil {
		return err
	}
	for i := range r.sessions {
		r.counts[countedAs(r.sessions[i].Wait)]++
	}
	moved := min(rowLocks, r.counts["running"])
	r.counts["running"] -= moved
	r.counts["row_lock"] += moved
	r.emit(s)
	return nil
}

// countedAs is the class of the metric in which a session is counted.
func countedAs(wait string) string {
	if wait == waitTmpDisk { // a class of statements, not of the metric
		return waitRunning
	}
	return wait
}

// none says that nothing but Risso runs, without asking.
func (r *waitReader) none(s *fleet.Sample) {
	clear(r.counts)
	r.sessions = nil
	r.emit(s)
}

func (r *waitReader) emit(s *fleet.Sample) {
	if r.pos == nil {
		r.pos = make(map[string]int)
		for _, class := range WaitClasses {
			r.pos[class] = s.Position(fleet.Metric{
				Name: "risso_threads_waiting", Labels: []fleet.Label{{Name: "class", Value: class}},
				Help: "threads that run a statement, by what they were waiting for; running: for nothing that the server shows", Source: "thread states",
			})
		}
	}
	for class, pos := range r.pos {
		s.Values[pos] = r.counts[class]
	}
}

// countDumpers asks how many replicas fetch the binary log from here.
func (r *waitReader) countDumpers(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	err := c.Query(ctx, `SELECT /* risso: how many replicas fetch from here */ COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'`, func(row []sqldriver.Value) error {
		r.setDumpers(int(whole(row[0])), s)
		return nil
	})
	return err
}

func (r *waitReader) setDumpers(n int, s *fleet.Sample) {
	r.dumpers = n
	s.Values[s.Position(fleet.Metric{Name: "risso_replicas_connected", Help: "binary log dump threads", Source: "thread states"})] = float64(n)
}
