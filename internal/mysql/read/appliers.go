package read

import (
	"context"
	sqldriver "database/sql/driver"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// ApplierRole is the part of a replication thread.
type ApplierRole string

// The parts. Where one thread applies, it is the coordinator.
const (
	ApplierReceives    ApplierRole = "receives"
	ApplierCoordinates ApplierRole = "coordinates"
	ApplierWorks       ApplierRole = "works"
)

// ApplierDoing is what a replication thread was found doing.
type ApplierDoing string

// What they do.
const (
	ApplierIdle      ApplierDoing = "idle"       // it waits for something to apply, or for the source to send something
	ApplierBusy      ApplierDoing = "busy"       // it applies
	ApplierCommits   ApplierDoing = "commits"    // it waits for the disk of the logs
	ApplierInOrder   ApplierDoing = "in order"   // it is done, and waits for the commit of a transaction before its own
	ApplierFeeds     ApplierDoing = "feeds"      // a coordinator waits for workers
	ApplierLocked    ApplierDoing = "locked"     // it waits for a lock of the server; row locks do not show in its state
	ApplierDelayed   ApplierDoing = "delayed"    // it waits for the configured delay
	ApplierRelayFull ApplierDoing = "relay full" // it may not receive: the relay logs have reached relay_log_space_limit
	ApplierQueues    ApplierDoing = "queues"     // it writes to the relay log
	ApplierSemiSync  ApplierDoing = "semi-sync"  // its commits wait for the replica's own replicas
)

// Applier is a replication thread as it was seen at one moment.
type Applier struct {
	Session     int64        `json:"session"`
	Channel     string       `json:"channel,omitempty"`
	OneOf       bool         `json:"one_of,omitempty"` // the server does not say of which channel it is
	Role        ApplierRole  `json:"role"`
	State       string       `json:"state"`
	Doing       ApplierDoing `json:"doing"`
	Statement   string       `json:"statement,omitempty"`
	Transaction string       `json:"transaction,omitempty"` // that it applies
	Age         float64      `json:"age"`                   // seconds since that was committed where it came from; -1: not told
	Open        float64      `json:"open"`                  // seconds since it began it in InnoDB; -1: it is in none
	Rows        int64        `json:"rows"`                  // rows that it has changed there; -1
	Locked      int64        `json:"locked"`                // and locked
}

// applierWords tell what a state means; the first match wins. Sources: MySQL manual, "Replication SQL Thread States" and its neighbours; MariaDB
// documentation, "Replica SQL Thread States", "Replica I/O Thread States".
var applierWords = []struct {
	word  string
	doing ApplierDoing
}{
	{"relay log space", ApplierRelayFull}, {"queueing", ApplierQueues}, {"semi-sync", ApplierSemiSync},
	{"seconds after", ApplierDelayed},
	{"has read all relay log", ApplierIdle}, {"waiting for an event from coordinator", ApplierIdle}, {"waiting for work from sql thread", ApplierIdle},
	{"waiting for master to send", ApplierIdle}, {"waiting for source to send", ApplierIdle}, {"waiting for the next event in relay log", ApplierIdle},
	{"preceding transaction", ApplierInOrder}, {"prior transaction", ApplierInOrder}, {"turn to commit", ApplierInOrder},
	{"workers", ApplierFeeds}, {"worker", ApplierFeeds}, {"dependent transaction", ApplierFeeds}, {"room in worker", ApplierFeeds},
	{"metadata lock", ApplierLocked}, {"table flush", ApplierLocked}, {"read lock", ApplierLocked}, {"backup lock", ApplierLocked}, {"commit lock", ApplierLocked}, {"level lock", ApplierLocked},
	{"handler commit", ApplierCommits}, {"commit", ApplierCommits},
}

// doingOf is what a thread does by its state. One that receives is idle whatever else it says: it waits for its source.
func doingOf(role ApplierRole, state string) ApplierDoing {
	low := strings.ToLower(state)
	for _, w := range applierWords {
		if strings.Contains(low, w.word) {
			return w.doing
		}
	}
	if role == ApplierReceives {
		return ApplierIdle
	}
	return ApplierBusy
}

// Appliers reads what the threads of replication do now. moments are its channels.
func Appliers(ctx context.Context, c *mysql.Conn, moments []ReplicaMoment) (list []Applier, gaps []fleet.Trouble, err error) {
	if c.Server.PerformanceSchema && !c.Server.GTIDsByDomain() {
		list, gaps, err = appliersByThread(ctx, c)
	} else {
		list, err = appliersInList(ctx, c, moments)
	}
	if err != nil || len(list) == 0 {
		return list, gaps, err
	}
	gap, err := inTransaction(ctx, c, list)
	return list, append(gaps, gap...), err
}

// applierNames end the names of threads in performance_schema; the older ones are those before MySQL 8.0.26.
var applierNames = map[string]ApplierRole{"slave_io": ApplierReceives, "replica_io": ApplierReceives, "slave_sql": ApplierCoordinates, "replica_sql": ApplierCoordinates,
	"slave_worker": ApplierWorks, "replica_worker": ApplierWorks}

func appliersByThread(ctx context.Context, c *mysql.Conn) (list []Applier, gaps []fleet.Trouble, err error) {
	threads := map[int64]int{} // places in list
	gaps, err = allowed(ctx, c, "threads of replication", c.Server.GrantPerformanceSchema(), `SELECT /* risso: what do the appliers do? */ THREAD_ID, PROCESSLIST_ID, SUBSTRING_INDEX(NAME, '/', -1), PROCESSLIST_STATE, LEFT(PROCESSLIST_INFO, 1024)
  FROM performance_schema.threads WHERE NAME LIKE 'thread/sql/slave%' OR NAME LIKE 'thread/sql/replica%'`, func(row []sqldriver.Value) error {
		role, ok := applierNames[mysql.Text(row[2])]
		if !ok {
			return nil
		}
		a := Applier{Session: whole(row[1]), Role: role, State: mysql.Text(row[3]), Statement: mysql.Text(row[4]), Age: -1, Open: -1, Rows: -1, Locked: -1, OneOf: true}
		a.Doing = doingOf(role, a.State)
		threads[whole(row[0])] = len(list)
		list = append(list, a)
		return nil
	})
	if err != nil || len(gaps) > 0 {
		return list, gaps, err
	}
	belongs := func(row []sqldriver.Value) *Applier {
		i, ok := threads[whole(row[1])]
		if !ok {
			return nil
		}
		list[i].Channel, list[i].OneOf = mysql.Text(row[0]), false
		return &list[i]
	}
	// MySQL 5.7 finds the wrong rows of these tables if it has to choose among several channels: they are read as they are.
	for _, table := range []string{"replication_connection_status", "replication_applier_status_by_coordinator"} {
		gap, err := allowed(ctx, c, "channels of replication", "", "SELECT /* risso: whose threads are they? */ CHANNEL_NAME, THREAD_ID FROM performance_schema."+table, func(row []sqldriver.Value) error {
			belongs(row)
			return nil
		})
		if gaps = append(gaps, gap...); err != nil {
			return list, gaps, err
		}
	}
	columns := "LAST_SEEN_TRANSACTION, NULL"
	if c.Server.TimesTransactions() {
		columns = "APPLYING_TRANSACTION, IF(APPLYING_TRANSACTION = '', NULL, TIMESTAMPDIFF(MICROSECOND, APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, NOW(6)) / 1e6)"
	}
	gap, err := allowed(ctx, c, "transactions that are applied", "", "SELECT /* risso: which transactions are applied? */ CHANNEL_NAME, THREAD_ID, "+columns+" FROM performance_schema.replication_applier_status_by_worker", func(row []sqldriver.Value) error {
		if a := belongs(row); a != nil && a.Doing != ApplierIdle {
			a.Transaction = mysql.Text(row[2])
			if age, ok := number(row[3]); ok {
				a.Age = age
			}
		}
		return nil
	})
	return list, append(gaps, gap...), err
}

// appliersInList finds them in the process list. Only with one channel it is clear whose they are.
func appliersInList(ctx context.Context, c *mysql.Conn, moments []ReplicaMoment) (list []Applier, err error) {
	receiving := map[string]bool{}
	for _, m := range moments {
		receiving[m.IOState] = true
	}
	// Columns: Id, User, Host, db, Command, Time, State, Info, and some more.
	err = c.Query(ctx, "SHOW /* risso: what do the appliers do? */ FULL PROCESSLIST", func(row []sqldriver.Value) error {
		if mysql.Text(row[1]) != systemUser {
			return nil
		}
		a := Applier{Session: whole(row[0]), State: mysql.Text(row[6]), Statement: mysql.Text(row[7]), Age: -1, Open: -1, Rows: -1, Locked: -1, OneOf: len(moments) > 1}
		if !a.OneOf && len(moments) == 1 {
			a.Channel = moments[0].Name
		}
		switch command := strings.ToLower(mysql.Text(row[4])); {
		case command == "slave_io" || !strings.HasPrefix(command, "slave_") && receiving[a.State]:
			a.Role = ApplierReceives
		case command == "slave_sql":
			a.Role = ApplierCoordinates
		case command == "slave_worker":
			a.Role = ApplierWorks
		case command == "connect" || command == "query":
			a.Role = ApplierCoordinates
		default:
			return nil // a thread of something else
		}
		a.Statement = a.Statement[:min(len(a.Statement), MomentText)]
		a.Doing = doingOf(a.Role, a.State)
		list = append(list, a)
		return nil
	})
	return list, err
}

// inTransaction reads how far the appliers' transactions of InnoDB are.
func inTransaction(ctx context.Context, c *mysql.Conn, list []Applier) ([]fleet.Trouble, error) {
	return allowed(ctx, c, "transactions of the appliers", c.Server.Grant("PROCESS"), "SELECT /* risso: how far are the appliers? */ trx_mysql_thread_id, "+openSeconds("t")+", trx_rows_modified, trx_rows_locked FROM information_schema.INNODB_TRX t", func(row []sqldriver.Value) error {
		for i := range list {
			if a := &list[i]; a.Session == whole(row[0]) {
				a.Open, _ = number(row[1])
				a.Rows, a.Locked = whole(row[2]), whole(row[3])
			}
		}
		return nil
	})
}
