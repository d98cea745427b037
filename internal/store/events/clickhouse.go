package events

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rissodb/risso/internal/store/aside"
)

// server is the store in ClickHouse.
type server struct {
	asker
	name string
	db   *sql.DB

	mu sync.Mutex // held by the one that writes
}

// chTables are the tables in ClickHouse. They do without anything that 18.16 does not know.
//
// risso_hours and risso_days are fed by views as minutes are inserted, so they are always whole; their engine adds rows of one
// key up when it merges them, and questions add up what is not merged yet.
var chTables = []string{
	`CREATE TABLE IF NOT EXISTS risso_minutes (instance String, time Int64, class Int64, db String, account String, calls Int64, seconds Float64, lock_seconds Float64,
 rows_sent Int64, rows_examined Int64, rows_affected Int64, errors Int64, warnings Int64, tmp_tables Int64, tmp_disk_tables Int64, no_index Int64, sort_rows Int64,
 max_seconds Float64, latency Nested(bucket Int16, calls Int64))
 ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time)) ORDER BY (instance, time, class, db, account)`,
	chActivity,
	chSums("risso_hours"), chFeed("risso_hours", hour), chSums("risso_days"), chFeed("risso_days", day),
	`CREATE TABLE IF NOT EXISTS risso_classes (class Int64, id String, pt_id String, fingerprint String, verb String, tables String) ENGINE = ReplacingMergeTree() ORDER BY class`,
	`CREATE TABLE IF NOT EXISTS risso_seen (instance String, class Int64, digest String, first_seen Int64, last_seen Int64) ENGINE = ReplacingMergeTree(last_seen) ORDER BY (instance, class, digest, first_seen)`,
	`CREATE TABLE IF NOT EXISTS risso_samples (instance String, class Int64, time Int64, text String, seconds Float64, db String, account String, host String)
 ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time)) ORDER BY (class, instance, time)`,
	`CREATE TABLE IF NOT EXISTS risso_plans (instance String, class Int64, db String, plan String, first_seen Int64, last_seen Int64, origin String, text String)
 ENGINE = ReplacingMergeTree(last_seen) ORDER BY (class, instance, db, plan, first_seen)`,
	`CREATE TABLE IF NOT EXISTS risso_flips (instance String, class Int64, db String, time Int64, old String, new String)
 ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time)) ORDER BY (class, instance, db, time)`,
	chReadings,
}

func chSums(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (instance String, time Int64, class Int64, db String, account String, calls Int64, seconds Float64, lock_seconds Float64,
 rows_sent Int64, rows_examined Int64, rows_affected Int64, errors Int64, warnings Int64, tmp_tables Int64, tmp_disk_tables Int64, no_index Int64, sort_rows Int64,
 max_seconds AggregateFunction(max, Float64), latencyMap Nested(bucket Int16, calls Int64))
 ENGINE = SummingMergeTree() PARTITION BY toYYYYMM(toDateTime(time)) ORDER BY (instance, time, class, db, account)`
}

func chFeed(table string, width int64) string {
	return fmt.Sprintf(`CREATE MATERIALIZED VIEW IF NOT EXISTS %[1]s_feed TO %[1]s AS SELECT instance, intDiv(time, %[2]d) * %[2]d AS time, class, db, account, calls, seconds, lock_seconds,
 rows_sent, rows_examined, rows_affected, errors, warnings, tmp_tables, tmp_disk_tables, no_index, sort_rows, arrayReduce('maxState', [max_seconds]) AS max_seconds,
 latency.bucket AS %[3]slatencyMap.bucket%[3]s, latency.calls AS %[3]slatencyMap.calls%[3]s FROM risso_minutes`, table, width, "`")
}

// OpenClickHouse opens the store in ClickHouse, at clickhouse://user:password@host:9000/database (native protocol, with
// ?secure=true over TLS) or http://…:8123. Its tables are made where they are missing. Errors never hold the password.
func OpenClickHouse(ctx context.Context, url string) (Store, error) {
	o, err := clickhouse.ParseDSN(url)
	if err != nil {
		return nil, errors.New("the URL of ClickHouse cannot be read: write it as clickhouse://user:password@host:9000/database")
	}
	o.DialTimeout = 5 * time.Second
	o.ReadTimeout = questionTimeout + 10*time.Second
	s := &server{name: "ClickHouse, " + strings.Join(o.Addr, ",") + "/" + o.Auth.Database, db: clickhouse.OpenDB(o)}
	s.asker = newAsker(s)
	s.db.SetMaxOpenConns(atOnce + 2)
	s.db.SetMaxIdleConns(atOnce + 2)
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	for _, statement := range chTables {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			s.db.Close()
			return nil, fmt.Errorf("prepare the tables in %s: %w", s.name, err)
		}
	}
	if err := s.prepareReadings(ctx); err != nil {
		s.db.Close()
		return nil, fmt.Errorf("prepare the tables in %s: %w", s.name, err)
	}
	return s, nil
}

// Damage is nothing: ClickHouse looks after its files.
func (s *server) Damage() *aside.Damage { return nil }

// Name is the server and the database.
func (s *server) Name() string { return s.name }

// Close closes the connections.
func (s *server) Close() error { return s.db.Close() }

func (s *server) query(ctx context.Context, statement string, args []any, row func(scan func(dest ...any) error) error) error {
	return ended(ctx, ask(ctx, s.db, statement, args, row))
}

// ended says of an error that ctx had ended, where it had: the driver says that the connection is bad, and database/sql that the statement was closed. The
// driver gives the connection the deadline of ctx, and may meet it a moment before ctx does.
func ended(ctx context.Context, err error) error {
	end := ctx.Err()
	if at, ok := ctx.Deadline(); end == nil && ok && !time.Now().Before(at) {
		end = context.DeadlineExceeded
	}
	if err == nil || end == nil || errors.Is(err, end) {
		return err
	}
	return fmt.Errorf("%w: %w", end, err)
}

// rolled is far ahead: the tables of hours and days are fed with each minute.
func (s *server) rolled() (hours, days int64) { return 1 << 40, 1 << 40 }

// once: ClickHouse 18.16 knows no WITH for sub-queries; it runs them again.
func (s *server) once(subquery string) (prefix, name string) { return "", "(" + subquery + ")" }

func (s *server) sumColumns() string {
	return strings.Replace(minuteColumns, "max_seconds", "finalizeAggregation(max_seconds) AS max_seconds", 1)
}

func (s *server) contains(column string) string { return "position(lower(" + column + "), ?) > 0" }

func (s *server) latency(table, where, slot string) string {
	nested := "latency"
	if !strings.HasSuffix(table, "minutes") {
		nested = "latencyMap"
	}
	return "SELECT class, toInt64(" + slot + ") AS slot, toInt64(b) AS bucket, toInt64(sum(n)) AS counted FROM (SELECT class, time, " + nested + ".bucket AS bs, " + nested + ".calls AS ns FROM " + table +
		" WHERE " + where + ") ARRAY JOIN bs AS b, ns AS n GROUP BY class, slot, bucket"
}

func (s *server) quantile(counted string, level float64) string {
	return fmt.Sprintf("SELECT class, toInt64(quantileExactWeighted(%g)(bucket, toUInt64(counted))) AS reached, toInt64(sum(counted)) AS of FROM (%s) GROUP BY class", level, counted)
}

// insert sends rows in one block, which ClickHouse stores whole or not at all.
func (s *server) insert(ctx context.Context, into string, each func(add func(...any) error) error) (err error) {
	defer func() { err = ended(ctx, err) }()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // of no effect after Commit
	st, err := tx.PrepareContext(ctx, "INSERT INTO "+into)
	if err != nil {
		return err
	}
	defer st.Close()
	err = each(func(values ...any) error {
		_, err := st.ExecContext(ctx, values...)
		return err
	})
	if err == nil {
		err = tx.Commit()
	}
	return err
}

// blockRows is about how many rows go in one block; ClickHouse splits one of more than a million.
const blockRows = 200000

// AddMinutes stores minutes.
func (s *server) AddMinutes(ctx context.Context, minutes ...Minute) (stored int, err error) {
	list, err := checkMinutes(minutes, s.pruned.Load())
	if err != nil || len(minutes) == 0 {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh []Minute
	if len(list) > 0 {
		fresh, err = s.fresh(ctx, list)
	}
	if err != nil {
		return 0, fmt.Errorf("store minutes of statements: %w", err)
	}
	// A block of several months would be split by partition: one month at a time.
	for len(fresh) > 0 {
		n, rows := 0, 0
		month := time.Unix(fresh[0].Time, 0).UTC().Format("2006-01")
		for n < len(fresh) && (n == 0 || rows+len(fresh[n].Rows) <= blockRows) && time.Unix(fresh[n].Time, 0).UTC().Format("2006-01") == month {
			rows += len(fresh[n].Rows)
			n++
		}
		if err := s.insertMinutes(ctx, fresh[:n]); err != nil {
			return stored, fmt.Errorf("store minutes of statements: %w", err)
		}
		stored += n
		fresh = fresh[n:]
	}
	return stored, wrap("note what was read", s.noteReadings(ctx, minutes))
}

func (s *server) fresh(ctx context.Context, list []Minute) ([]Minute, error) {
	r := Range{list[0].Time, list[0].Time + 1}
	names := map[string]bool{}
	for _, m := range list {
		r.From, r.To = min(r.From, m.Time), max(r.To, m.Time+1)
		names[m.Instance] = true
	}
	f := filter{}
	for n := range names {
		f.instances = append(f.instances, n)
	}
	type id struct {
		instance string
		time     int64
	}
	there := map[id]bool{}
	err := s.query(ctx, "SELECT DISTINCT instance, time FROM risso_minutes WHERE "+f.where(r), nil, func(scan func(...any) error) error {
		var i id
		if err := scan(&i.instance, &i.time); err != nil {
			return err
		}
		there[i] = true
		return nil
	})
	out := make([]Minute, 0, len(list))
	for _, m := range list {
		if i := (id{m.Instance, m.Time}); !there[i] {
			there[i] = true
			out = append(out, m)
		}
	}
	return out, err
}

func (s *server) insertMinutes(ctx context.Context, list []Minute) error {
	return s.insert(ctx, "risso_minutes ("+minuteColumns+", latency.bucket, latency.calls)", func(add func(...any) error) error {
		for _, m := range list {
			for i := range m.Rows {
				r := &m.Rows[i]
				k, err := key(r.Class)
				if err != nil {
					return err
				}
				numbers, calls := make([]int16, len(r.Latency)), make([]int64, len(r.Latency))
				for j, b := range r.Latency {
					numbers[j], calls[j] = b.Number, b.Calls
				}
				if err := add(m.Instance, m.Time, k, r.Schema, r.User, r.Calls, r.Seconds, r.LockSeconds, r.RowsSent, r.RowsExamined, r.RowsAffected, r.Errors, r.Warnings,
					r.TmpTables, r.TmpDiskTables, r.NoIndex, r.SortRows, r.MaxSeconds, numbers, calls); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// AddClasses notes classes.
func (s *server) AddClasses(ctx context.Context, classes ...Class) error {
	if len(classes) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.insert(ctx, "risso_seen (instance, class, digest, first_seen, last_seen)", func(add func(...any) error) error {
		for _, c := range classes {
			k, err := key(c.ID)
			if err != nil {
				return err
			}
			if err := add(c.Instance, k, c.Digest, c.FirstSeen, c.LastSeen); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.nameClasses(ctx, classes)
	}
	return wrap("note classes", err)
}

// nameClasses stores what classes are. Of rows of one class the table keeps the newest, so one that is there stays, and gets
// an ID of pt-query-digest's by a row that has all the rest as well.
func (s *server) nameClasses(ctx context.Context, classes []Class) error {
	keys := make([]int64, 0, len(classes))
	for _, c := range classes {
		k, err := key(c.ID)
		if err != nil {
			return err
		}
		keys = append(keys, k)
	}
	known, err := s.names(ctx, keys, nil)
	if err != nil {
		return err
	}
	var rows [][]any
	for i, c := range classes {
		old := known[keys[i]]
		switch {
		case old.ID == "" && c.Fingerprint != "":
			old = c
		case old.ID != "" && old.PtID == "" && c.PtID != "":
			old.PtID = c.PtID
		default:
			continue
		}
		known[keys[i]] = old
		rows = append(rows, []any{keys[i], old.ID, old.PtID, old.Fingerprint, old.Verb, old.Tables})
	}
	if len(rows) == 0 {
		return nil
	}
	return s.insert(ctx, "risso_classes (class, id, pt_id, fingerprint, verb, tables)", func(add func(...any) error) error {
		for _, r := range rows {
			if err := add(r...); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddSamples stores samples.
func (s *server) AddSamples(ctx context.Context, samples ...Sample) error {
	if len(samples) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return wrap("store samples", s.insert(ctx, "risso_samples (instance, class, time, text, seconds, db, account, host)", func(add func(...any) error) error {
		for _, p := range samples {
			k, err := key(p.Class)
			if err != nil {
				return err
			}
			if err := add(p.Instance, k, p.Time, p.Text, p.Seconds, p.Schema, p.User, p.Host); err != nil {
				return err
			}
		}
		return nil
	}))
}

// AddPlan notes that a class was seen with a plan.
func (s *server) AddPlan(ctx context.Context, p Plan) (flip *Flip, err error) {
	k, err := key(p.Class)
	if err != nil {
		return nil, err
	}
	if p.FirstSeen == 0 {
		p.FirstSeen = p.LastSeen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var old string
	var last, first int64
	err = s.query(ctx, "SELECT plan, toInt64(max(last_seen)) AS last, toInt64(min(first_seen)) FROM risso_plans WHERE instance = ? AND class = ? AND db = ? AND origin = ? GROUP BY plan ORDER BY last DESC, plan", []any{p.Instance, k, p.Schema, p.Origin},
		func(scan func(...any) error) error {
			var plan string
			var seen, began int64
			if err := scan(&plan, &seen, &began); err != nil {
				return err
			}
			if old == "" {
				old, last = plan, seen
			}
			if plan == p.ID {
				first = began
			}
			return nil
		})
	if err == nil && old != "" && old != p.ID && last < p.LastSeen {
		flip = &Flip{Instance: p.Instance, Class: p.Class, Schema: p.Schema, Time: p.LastSeen, Old: old, New: p.ID}
		err = s.insert(ctx, "risso_flips (instance, class, db, time, old, new)", func(add func(...any) error) error {
			return add(p.Instance, k, p.Schema, p.LastSeen, old, p.ID)
		})
	}
	if first > 0 { // the same key, so that the row is replaced
		p.FirstSeen = min(first, p.FirstSeen)
	}
	if err == nil {
		err = s.insert(ctx, "risso_plans (instance, class, db, plan, first_seen, last_seen, origin, text)", func(add func(...any) error) error {
			return add(p.Instance, k, p.Schema, p.ID, p.FirstSeen, p.LastSeen, p.Origin, p.Text)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("note a plan: %w", err)
	}
	return flip, nil
}

// Prune drops whole months: ClickHouse deletes single rows only at great cost.
func (s *server) Prune(ctx context.Context, minutes, everything time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for table, before := range map[string]time.Time{"risso_minutes": minutes, "risso_samples": minutes, "risso_activity": minutes, "risso_hours": everything, "risso_days": everything, "risso_flips": everything, "risso_readings": everything} {
		if err := s.dropMonths(ctx, table, before); err != nil {
			return fmt.Errorf("delete old statements: %w", err)
		}
	}
	if upTo := minutes.Unix() / hour * hour; upTo > s.pruned.Load() {
		s.pruned.Store(upTo)
	}
	return nil
}

func (s *server) dropMonths(ctx context.Context, table string, before time.Time) error {
	var drop []string
	err := s.query(ctx, "SELECT DISTINCT partition FROM system.parts WHERE active AND database = currentDatabase() AND table = ? AND toUInt32OrZero(partition) < ?", []any{table, int64(before.UTC().Year()*100 + int(before.UTC().Month()))},
		func(scan func(...any) error) error {
			var p string
			if err := scan(&p); err != nil {
				return err
			}
			drop = append(drop, p)
			return nil
		})
	for _, p := range drop {
		if err == nil {
			_, err = s.db.ExecContext(ctx, "ALTER TABLE "+table+" DROP PARTITION "+strings.Map(digit, p))
		}
	}
	return err
}

func digit(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}
