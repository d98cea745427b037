package mysql

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// This file has the statements that point replicas at another source, and what servers can follow.

// Thread is one of the two threads of a replication channel.
type Thread string

// The threads: one receives from the source into relay logs, the other one applies these.
const (
	Receiver Thread = "IO_THREAD"
	Applier  Thread = "SQL_THREAD"
)

// StartThread is the statement that starts one thread of a channel.
func (s Server) StartThread(channel string, t Thread) string {
	return s.thread(s.StartReplica(channel), channel, string(t))
}

// StopThread is the statement that stops one thread of a channel.
func (s Server) StopThread(channel string, t Thread) string {
	return s.thread(s.StopReplica(channel), channel, string(t))
}

// thread puts words into a statement about a channel: MySQL has its name at the end, MariaDB in front.
func (s Server) thread(statement, channel, words string) string {
	if channel != "" && !s.MariaDB() {
		return strings.Replace(statement, " FOR CHANNEL ", " "+words+" FOR CHANNEL ", 1)
	}
	return statement + " " + words
}

// DefaultChannel lets a statement about the channel without a name mean that one alone, on a server with several: MySQL means all of them else, or refuses.
func (s Server) DefaultChannel(statement string) string {
	if s.MariaDB() {
		return statement
	}
	return statement + " FOR CHANNEL ''"
}

// StartUntil is the statement that starts a channel, which stops applying at a place in the source's binary log. Sources: MySQL manual, "START REPLICA Statement";
// MariaDB documentation, "START REPLICA".
func (s Server) StartUntil(channel, log string, pos int64) string {
	return s.thread(s.StartReplica(channel), channel, fmt.Sprintf("UNTIL %[1]s_LOG_FILE = %[2]s, %[1]s_LOG_POS = %[3]d", s.sourceWord(), Literal(log), pos))
}

func (s Server) sourceWord() string {
	if s.atLeast(80023) {
		return "SOURCE"
	}
	return "MASTER"
}

// Pointing is what of a replication channel is changed; TLS and all else stay as they are. With a password its statement belongs into no message: Shown is for those.
type Pointing struct {
	Host     string // of another source, with Port; "": it stays
	Port     int
	User     string // as whom it logs in, with Password; "": as it does now
	Password string
	Log      string // from where in its binary log, with Pos; "": by GTID
	Pos      int64
	Delay    *int          // seconds; nil: it stays
	Beat     time.Duration // how often the source says that it lives while it has nothing to send; 0: half of net_timeout, which the server sets whatever else of the source is changed
	// Lasting lets it try to connect each second, for a day: by default a MySQL 9.7 gives up after ten tries, and its receiver stands then until somebody starts it.
	Lasting bool
}

// Shown is a pointing without its password.
func (p Pointing) Shown() Pointing {
	if p.Password != "" {
		p.Password = "…"
	}
	return p
}

// lasting are those settings.
func (s Server) lasting(word string) []string {
	list := []string{word + "_CONNECT_RETRY = 1"}
	if !s.MariaDB() {
		list = append(list, word+"_RETRY_COUNT = 86400")
	}
	return list
}

// attempts is how often a MySQL says that it tried to connect. A MariaDB says how often it would.
var attempts = regexp.MustCompile(`(?:This was attempt |\sretries: )(\d+)`)

// GaveUp reports whether the receiver of a channel stands as it tried to connect as often as it may, and not as somebody stopped it. tries is that number; 0: it is not known. Only a MySQL
// tells. Source: MySQL, sql/rpl_replica.cc, connect_to_master; seen on 8.0.15 and 9.7.
func GaveUp(ch fleet.Channel, tries int) bool {
	m := attempts.FindStringSubmatch(ch.IO.Text)
	return m != nil && m[1] == strconv.Itoa(tries) && ch.IORunning == "No"
}

// LoginRefused reports whether the receiver of a channel cannot log in at its source, as another account, or another password, might. It tries on, or gave up, as tries tells:
// one that somebody stopped is none.
func LoginRefused(ch fleet.Channel, tries int) bool {
	switch ch.IO.Number {
	case errno.AccessDenied, errno.NeedsSecureLogin, errno.AccountLocked, errno.AccountLockedMariaDB, errno.MustChangePasswordLogin:
		return ch.IORunning != "Yes" && (ch.IORunning != "No" || GaveUp(ch, tries))
	}
	return false
}

// Point is the statement that changes a channel, whose threads stand still. Sources: MySQL manual, "CHANGE REPLICATION SOURCE TO Statement"; MariaDB documentation,
// "CHANGE MASTER TO".
func (s Server) Point(channel string, p Pointing) string {
	word := s.sourceWord()
	var set []string
	if p.Host != "" {
		set = append(set, word+"_HOST = "+Literal(p.Host), word+"_PORT = "+strconv.Itoa(p.Port))
	}
	if p.User != "" {
		set = append(set, word+"_USER = "+Literal(p.User), word+"_PASSWORD = "+Literal(p.Password))
		if s.atLeast(80004) { // without TLS the source's key is needed once, to log in with a password that the source has not seen yet
			set = append(set, "GET_"+word+"_PUBLIC_KEY = 1")
		}
	}
	if p.Log != "" {
		set = append(set, word+"_LOG_FILE = "+Literal(p.Log), word+"_LOG_POS = "+strconv.FormatInt(p.Pos, 10))
	}
	if p.Delay != nil {
		set = append(set, word+"_DELAY = "+strconv.Itoa(*p.Delay))
	}
	if p.Beat > 0 {
		set = append(set, word+"_HEARTBEAT_PERIOD = "+strconv.FormatFloat(p.Beat.Seconds(), 'f', 3, 64))
	}
	if p.Lasting {
		set = append(set, s.lasting(word)...)
	}
	head, tail := "CHANGE MASTER", ""
	switch {
	case s.MariaDB() && channel != "":
		head += " " + Literal(channel)
	case channel != "":
		tail = " FOR CHANNEL " + Literal(channel)
	}
	if s.atLeast(80023) {
		head = "CHANGE REPLICATION SOURCE"
	}
	return head + " TO " + strings.Join(set, ", ") + tail
}

// DelaysWhileReceiving reports whether a channel's delay can be changed while it receives, so that its relay logs are kept. MariaDB changes nothing of a channel that
// runs, and throws away the relay logs of one that does not.
func (s Server) DelaysWhileReceiving() bool { return !s.MariaDB() }

// PointsWhileApplying reports whether a channel that applies, and does not receive, can be pointed at another source, so that its relay logs are kept. Source: MySQL manual,
// "CHANGE REPLICATION SOURCE TO": since 5.7.4.
func (s Server) PointsWhileApplying() bool { return s.atLeast(50704) }

// StartDrops reports whether any START of a channel throws away what it received and did not apply, to fetch it again from its source: a MariaDB that replicates by GTID
// does so when both threads stand. Source: MariaDB, sql/slave.cc, start_slave_threads.
func (s Server) StartDrops(ch fleet.Channel) bool {
	return s.GTIDsByDomain() && ch.GTID && ch.SQLRunning == "No" && ch.IORunning == "No"
}

// ApplyReceived are the statements by which a channel that StartDrops is about applies what it received, from that place in its relay logs: by file and position nothing is thrown
// away, and gtid_slave_pos counts on. FollowGTID is for afterwards. Source: MariaDB documentation, "CHANGE MASTER TO", RELAY_LOG_FILE.
func (s Server) ApplyReceived(channel, log string, pos int64) string {
	begin, end, _ := s.changeSource(channel)
	return fmt.Sprintf("%sMASTER_USE_GTID = no, RELAY_LOG_FILE = %s, RELAY_LOG_POS = %d%s; %s", begin, Literal(log), pos, end, s.StartThread(channel, Applier))
}

// ReplicaAdmin is the privilege that starting, stopping and pointing replicas needs.
func (s Server) ReplicaAdmin() string {
	switch {
	case s.MariaDB() && s.Number >= 100502:
		return "REPLICATION SLAVE ADMIN"
	case s.atLeast(80001):
		return "REPLICATION_SLAVE_ADMIN"
	}
	return "SUPER"
}

// CannotFollow says why a server cannot replicate from another, as their versions tell; "" if they say nothing against it. Sources: MySQL manual, "Replication
// Compatibility Between MySQL Versions"; MariaDB documentation, "Replication Compatibility".
func (s Server) CannotFollow(source Server) string {
	const series = 100
	switch {
	case s.NeverFollows(source):
		return "MySQL and MariaDB have different GTIDs and events"
	case s.Number/series < source.Number/series:
		return "a replica must not be older than its source: " + s.Version + " below " + source.Version
	}
	return ""
}

// NeverFollows reports whether a server could not replicate from another in any version.
func (s Server) NeverFollows(source Server) bool { return s.MariaDB() != source.MariaDB() }

// GoneGTIDs is which transactions a server's binary logs no longer hold: gtid_purged of MySQL; of MariaDB those before its oldest log.
func GoneGTIDs(ctx context.Context, c *Conn) (string, error) {
	if !c.Server.MariaDB() {
		text, err := c.Text(ctx, "SELECT /* risso: which transactions are purged? */ @@GLOBAL.gtid_purged")
		return strings.ReplaceAll(text, "\n", ""), err
	}
	logs, err := Logs(ctx, c)
	if err != nil || len(logs) == 0 {
		return "", err
	}
	const first = 4 // where a log's events begin
	return c.Text(ctx, fmt.Sprintf("SELECT /* risso: which transactions are before the oldest log? */ BINLOG_GTID_POS(%s, %d)", Literal(logs[0].Name), first))
}

// ReceivedAll reports whether a server has all transactions that one of its channels received. Those of MariaDB are by domain: it may have applied them, or written
// later ones itself.
func ReceivedAll(ctx context.Context, c *Conn, received string) (bool, error) {
	r, err := ParseGTIDSet(received)
	if err != nil {
		return false, err
	}
	have, err := AppliedGTIDs(ctx, c)
	return err == nil && have.ContainsSet(r), err
}

// Without is a set without what came from other servers, of which these are the sets, unless it came from theirs as well: transactions of MySQL's, domains of MariaDB's.
func (s GTIDSet) Without(others []string, theirs GTIDSet) (GTIDSet, error) {
	out := s
	for _, text := range others {
		o, err := ParseGTIDSet(text)
		if err != nil {
			return GTIDSet{}, err
		}
		if !s.ByDomain() {
			out = out.Subtract(o)
			continue
		}
		out = out.Clone()
		for domain := range o.domains {
			if _, has := theirs.domains[domain]; !has {
				delete(out.domains, domain)
			}
		}
	}
	return out, nil
}

// AppliedGTIDs is up to where a server has what it replicates: gtid_executed of MySQL, gtid_slave_pos of MariaDB, where it asks its source to go on.
func AppliedGTIDs(ctx context.Context, c *Conn) (GTIDSet, error) {
	if !c.Server.MariaDB() {
		return ExecutedGTIDs(ctx, c)
	}
	text, err := c.Text(ctx, "SELECT /* risso: up to where is it applied? */ @@GLOBAL.gtid_slave_pos")
	if err != nil {
		return GTIDSet{}, err
	}
	return ParseGTIDSet(text)
}

// NumbersAll reports whether each transaction has a GTID that its source gave it, so that a server refuses to count those that it passes over.
func (s Server) NumbersAll(mode string) bool {
	return !s.MariaDB() && strings.HasPrefix(strings.ToUpper(mode), "ON")
}

// FollowsByGTID reports whether a server with this gtid_mode can be a source, or a replica, that is followed, or follows, by GTID.
func (s Server) FollowsByGTID(mode string) bool {
	return s.MariaDB() || strings.EqualFold(mode, "ON") || strings.EqualFold(mode, "ON_PERMISSIVE")
}

// RelayEvents is the statement that shows what stands in a channel's relay log, from a place on.
func (s Server) RelayEvents(channel, log string, pos int64, most int) string {
	head, tail := "SHOW /* risso: which transaction is it? */ RELAYLOG", ""
	switch {
	case channel != "" && s.MariaDB():
		head += " " + Literal(channel)
	case channel != "":
		tail = " FOR CHANNEL " + Literal(channel)
	}
	return fmt.Sprintf("%s EVENTS IN %s FROM %d LIMIT %d%s", head, Literal(log), pos, most, tail)
}

// ReplicationAccounts is the statement that lists the accounts of a name, whether each may replicate by itself (by a role it may as well), and what it has to show besides its password
// (ssl_type: X509 and SPECIFIED are certificates).
func (s Server) ReplicationAccounts(user string) string {
	return "SELECT /* risso: may it replicate? */ Host, Repl_slave_priv, ssl_type FROM mysql.user WHERE User = " + Literal(user)
}

// HasRoles reports whether a server of MySQL 8.0, or of MariaDB, can let an account replicate by a role.
func (s Server) HasRoles() bool { return s.AtLeast(80000, fleet.Version(100005)) }

// CompareLogs orders binary logs by the number at the end of their names.
func CompareLogs(a, b string) int {
	return cmp.Or(cmp.Compare(LogNumber(a), LogNumber(b)), cmp.Compare(a, b))
}

// LogNumber is the number at the end of a log's name: 17 of binlog.000017; 0 if there is none.
func LogNumber(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(filepath.Ext(name), "."), 10, 64)
	return n
}
