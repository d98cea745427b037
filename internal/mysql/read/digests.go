package read

import (
	"context"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Digest is a class of statements as performance_schema counts it, in one default schema, since the server started or
// the table of digests was emptied.
type Digest struct {
	Schema string
	ID     string // DIGEST; empty: the row that takes all statements for which the table had no room
	First  string // FIRST_SEEN in UTC, as text; another one means that counting restarted

	fleet.Cost
}

// StatementSample is a statement as performance_schema remembers it.
type StatementSample struct {
	Schema, Digest string
	Text           string
	Cut            bool  // the server kept only its beginning
	Time           int64 // unix seconds; 0: within the last minutes
	Seconds        float64
	User, Host     string // empty if the server does not say
}

// digestTable is the table of digests (MySQL manual, "Statement Summary Tables"; MariaDB has it with fewer columns).
const digestTable = "performance_schema.events_statements_summary_by_digest"

// ServerNow is the server's clock in UTC, as text that Digests takes. It also makes the session read and write times in UTC.
func ServerNow(ctx context.Context, c *mysql.Conn) (now string, err error) {
	if err := c.Query(ctx, "SET SESSION /* risso: times in UTC */ time_zone = '+00:00'", mysql.IgnoreRow); err != nil {
		return "", err
	}
	err = c.Query(ctx, "SELECT /* risso: the server's clock */ NOW(6)", func(row []sqldriver.Value) error {
		now = mysql.Text(row[0])
		return nil
	})
	return now, err
}

// Digests reads the counters of all classes of statements that ran since a time of ServerNow; "" reads all. d is valid
// during the call only. Reading 5,000 of them costs the server 24 ms (MySQL 9.7) or 12 ms (MariaDB 10.11), measured, most of
// it for walking through the table, regardless of what is asked of it.
func Digests(ctx context.Context, c *mysql.Conn, since string, f func(d *Digest) error) error {
	where := ""
	if since != "" {
		// LAST_SEEN is the end of the statement; the counters are added a moment later.
		where = " WHERE LAST_SEEN >= " + mysql.Literal(since) + " - INTERVAL 2 SECOND"
	}
	var d Digest
	return vary(ctx, c, since, `SELECT /* risso: what classes of statements cost */ SCHEMA_NAME, DIGEST, FIRST_SEEN, COUNT_STAR, SUM_TIMER_WAIT, MAX_TIMER_WAIT, SUM_LOCK_TIME,
 SUM_ERRORS, SUM_WARNINGS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_CREATED_TMP_DISK_TABLES, SUM_CREATED_TMP_TABLES, SUM_SORT_ROWS, SUM_NO_INDEX_USED
 FROM `+digestTable+where, func(row []sqldriver.Value) error {
		d = Digest{Schema: mysql.Text(row[0]), ID: mysql.Text(row[1]), First: mysql.Text(row[2])}
		for i, into := range []*int64{7: &d.Errors, 8: &d.Warnings, 9: &d.RowsAffected, 10: &d.RowsSent, 11: &d.RowsExamined, 12: &d.TmpDiskTables, 13: &d.TmpTables, 14: &d.SortRows, 15: &d.NoIndex} {
			if into != nil {
				*into = whole(row[i])
			}
		}
		sum, _ := number(row[4])
		longest, _ := number(row[5])
		lock, _ := number(row[6])
		d.Calls, d.Seconds, d.MaxSeconds, d.LockSeconds = whole(row[3]), sum*picosecond, longest*picosecond, lock*picosecond
		return f(&d)
	})
}

// vary runs a statement in which part differs from call to call; it is remembered once, without that part.
func vary(ctx context.Context, c *mysql.Conn, part, statement string, f func(row []sqldriver.Value) error) error {
	if part != "" {
		canon := ""
		if part[0] == '\'' { // a list of literals stays one
			canon = "'?'"
		}
		c.Traffic().Note(strings.ReplaceAll(statement, part, canon))
	} else {
		c.Traffic().Note(statement)
	}
	return c.QuietQuery(ctx, statement, f)
}

// idsAtOnce is how many digests one statement about samples asks for.
const idsAtOnce = 500

// textsAtOnce is how many digests one statement about texts asks for: 2 MB, less than any server's max_allowed_packet. The
// server walks through its whole table for each.
const textsAtOnce = 30_000

// DigestText is what performance_schema knows of a digest in words.
type DigestText struct {
	Schema, ID, Text string
	Sample           string // the beginning of a statement as it was sent, with its comments; empty where the server keeps none
}

// DigestTexts reads the normalised texts of digests in one scan of the server's table.
func DigestTexts(ctx context.Context, c *mysql.Conn, ids []string, f func(DigestText) error) error {
	sample := "NULL"
	if KeepsSamples(c.Server) {
		sample = "LEFT(QUERY_SAMPLE_TEXT, 64)"
	}
	for len(ids) > 0 {
		n := min(len(ids), textsAtOnce)
		list := quoteHex(ids[:n])
		err := vary(ctx, c, list, "SELECT /* risso: texts of classes */ SCHEMA_NAME, DIGEST, DIGEST_TEXT, "+sample+" FROM "+digestTable+" WHERE DIGEST IN ("+list+")", func(row []sqldriver.Value) error {
			return f(DigestText{Schema: mysql.Text(row[0]), ID: mysql.Text(row[1]), Text: mysql.Text(row[2]), Sample: mysql.Text(row[3])})
		})
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// MarkedDigests reads the digests of statements with Risso's mark that threads ran last, as far as the server remembers them:
// Risso's own, also those of other processes of it.
func MarkedDigests(ctx context.Context, c *mysql.Conn, f func(id string) error) error {
	return c.Query(ctx, `SELECT /* risso: statements with its own mark */ DISTINCT DIGEST FROM performance_schema.events_statements_history
 WHERE DIGEST IS NOT NULL AND LEFT(SQL_TEXT, 64) LIKE '%/* risso%'`, func(row []sqldriver.Value) error { return f(mysql.Text(row[0])) })
}

// quoteHex writes digests as a list of SQL; what is no hex is left out.
func quoteHex(ids []string) string {
	var b strings.Builder
	for _, id := range ids {
		if _, err := hex.DecodeString(id); err != nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString("'" + id + "'")
	}
	if b.Len() == 0 {
		return "NULL"
	}
	return b.String()
}

// KeepsSamples reports whether the table of digests holds a statement of each class (MySQL 8.0.3).
func KeepsSamples(s mysql.Server) bool { return s.AtLeast(80003, fleet.Never) }

// KeepsLatency reports whether the server keeps a latency histogram for each class (MySQL 8.0.3).
func KeepsLatency(s mysql.Server) bool { return s.AtLeast(80003, fleet.Never) }

// Samples reads statements of digests: those that threads ran last, with the users who ran them, as far as the server remembers
// them (consumer events_statements_history, or events_statements_current if only that is on), and then, where the server
// has it, the one that the table of digests keeps.
func Samples(ctx context.Context, c *mysql.Conn, ids []string, f func(StatementSample) error) error {
	if len(ids) == 0 {
		return nil
	}
	ids = ids[:min(len(ids), idsAtOnce)]
	limit, err := sqlTextLimit(ctx, c)
	if err != nil {
		return err
	}
	for _, table := range []string{"history", "current"} {
		found := false
		err := vary(ctx, c, quoteHex(ids), `SELECT /* risso: statements as they were run */ s.CURRENT_SCHEMA, s.DIGEST, s.SQL_TEXT, s.TIMER_WAIT, t.PROCESSLIST_USER, t.PROCESSLIST_HOST
 FROM performance_schema.events_statements_`+table+` s JOIN performance_schema.threads t ON t.THREAD_ID = s.THREAD_ID
 WHERE s.DIGEST IN (`+quoteHex(ids)+`) AND s.SQL_TEXT IS NOT NULL AND s.NESTING_EVENT_ID IS NULL AND s.TIMER_END IS NOT NULL ORDER BY s.TIMER_WAIT DESC LIMIT 200`, func(row []sqldriver.Value) error {
			found = true
			wait, _ := number(row[3])
			s := StatementSample{Schema: mysql.Text(row[0]), Digest: mysql.Text(row[1]), Text: mysql.Text(row[2]), Seconds: wait * picosecond, User: mysql.Text(row[4]), Host: mysql.Text(row[5])}
			s.Cut = len(s.Text) >= limit || strings.HasSuffix(s.Text, "...")
			return f(s)
		})
		if err != nil {
			return err
		}
		if found {
			break
		}
	}
	if !KeepsSamples(c.Server) {
		return nil
	}
	return vary(ctx, c, quoteHex(ids), `SELECT /* risso: a sample of each class */ SCHEMA_NAME, DIGEST, QUERY_SAMPLE_TEXT, UNIX_TIMESTAMP(QUERY_SAMPLE_SEEN), QUERY_SAMPLE_TIMER_WAIT
 FROM `+digestTable+` WHERE DIGEST IN (`+quoteHex(ids)+`) AND QUERY_SAMPLE_TEXT IS NOT NULL`, func(row []sqldriver.Value) error {
		wait, _ := number(row[4])
		s := StatementSample{Schema: mysql.Text(row[0]), Digest: mysql.Text(row[1]), Text: mysql.Text(row[2]), Time: whole(row[3]), Seconds: wait * picosecond}
		s.Cut = len(s.Text) >= limit || strings.HasSuffix(s.Text, "...")
		return f(s)
	})
}

// sqlTextLimit is how many bytes of a statement the server keeps: performance_schema_max_sql_text_length, which MariaDB has
// not always under that name; its limit is 1,024 then.
func sqlTextLimit(ctx context.Context, c *mysql.Conn) (int, error) {
	limit := 1024
	err := c.Query(ctx, "SHOW /* risso: how much of a statement is kept */ GLOBAL VARIABLES LIKE 'performance\\_schema\\_max\\_sql\\_text\\_length'", func(row []sqldriver.Value) error {
		if n, ok := number(row[1]); ok && n > 0 {
			limit = int(n)
		}
		return nil
	})
	return limit, err
}

// LatencyBucket is a bucket of a class' latency histogram: how many calls fell into it since counting began.
type LatencyBucket struct {
	Number int // bucket n ends at 10 µs · 10^(n/50) (MySQL manual, "Statement Histogram Summary Tables")
	Calls  int64
}

// Latency reads the latency histogram of one class; buckets without a call are left out. It costs the server 4.5 ms, measured.
func Latency(ctx context.Context, c *mysql.Conn, schema, digest string) ([]LatencyBucket, error) {
	where := "SCHEMA_NAME = " + mysql.Literal(schema)
	if schema == "" {
		where = "SCHEMA_NAME IS NULL"
	}
	var out []LatencyBucket
	err := vary(ctx, c, digest, "SELECT /* risso: latency of a class */ BUCKET_NUMBER, COUNT_BUCKET FROM performance_schema.events_statements_histogram_by_digest WHERE "+
		where+" AND DIGEST = "+quoteHex([]string{digest})+" AND COUNT_BUCKET > 0 ORDER BY BUCKET_NUMBER", func(row []sqldriver.Value) error {
		out = append(out, LatencyBucket{Number: int(whole(row[0])), Calls: whole(row[1])})
		return nil
	})
	return out, err
}

// DigestsLost reads how many statements found no room in the table of digests, and how large that table is.
func DigestsLost(ctx context.Context, c *mysql.Conn) (lost, size int64, err error) {
	err = c.Query(ctx, "SHOW /* risso: statements without a class */ GLOBAL STATUS LIKE 'Performance\\_schema\\_digest\\_lost'", func(row []sqldriver.Value) error {
		lost = whole(row[1])
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	err = c.Query(ctx, "SELECT /* risso: room for classes */ @@performance_schema_digests_size", func(row []sqldriver.Value) error {
		size = whole(row[0])
		return nil
	})
	return lost, size, err
}

// CountsStatements is nil if the server counts statements by class, else why not and how to fix it.
func CountsStatements(ctx context.Context, c *mysql.Conn) (off *fleet.Trouble, err error) {
	if !c.Server.PerformanceSchema {
		return &fleet.Trouble{Why: "performance_schema is off on this server", Remedy: "add performance_schema=ON to the [mysqld] section of the option file and restart the server"}, nil
	}
	consumers := []string{}
	err = c.Query(ctx, "SELECT /* risso: are statements counted by class? */ NAME FROM performance_schema.setup_consumers WHERE NAME IN ('statements_digest', 'global_instrumentation', 'thread_instrumentation') AND ENABLED = 'NO'", func(row []sqldriver.Value) error {
		consumers = append(consumers, mysql.Text(row[0]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(consumers) > 0 {
		return &fleet.Trouble{Why: "the consumer " + strings.Join(consumers, " and ") + " of performance_schema is off",
			Remedy: "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME IN ('" + strings.Join(consumers, "', '") + "')"}, nil
	}
	on := 0.0
	err = c.Query(ctx, "SELECT /* risso: are statements timed? */ COUNT(*) FROM performance_schema.setup_instruments WHERE NAME LIKE 'statement/sql/%' AND ENABLED = 'YES' AND TIMED = 'YES'", func(row []sqldriver.Value) error {
		on, _ = number(row[0])
		return nil
	})
	if err == nil && on == 0 {
		return &fleet.Trouble{Why: "the statement instruments of performance_schema are off", Remedy: "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'statement/%'"}, nil
	}
	return nil, err
}
