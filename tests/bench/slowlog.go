package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// slowLog writes slow logs as the servers do, always the same ones for the same size. In turns of some thousand
// events it takes the forms of MySQL 8 and 9, MySQL with log_slow_extra=ON, Percona Server with all verbosities,
// and MariaDB with all verbosities, whose "# Time:" occurs only where the second changes.
type slowLog struct {
	w      *bufio.Writer
	rng    *rand.Rand
	n      int64 // bytes
	now    float64
	second int64
	db     string
	events int
}

// shapes are the statements: %d is a number, %s a word. No name has a digit, and no form is used where
// pt-query-digest's fingerprint goes wrong, so that both tools have to find the same classes.
var shapes = []string{
	"SELECT c FROM sbtest WHERE id=%d",
	"SELECT id, name, email, created_at, updated_at, last_login, status, locale FROM users WHERE email = '%s@example.com' AND status = 'active' LIMIT 1",
	"SELECT o.id, o.total, o.currency, c.name, c.country FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.state IN (%d, %d, %d) AND o.created_at > '2026-01-%02d 00:00:00' ORDER BY o.created_at DESC LIMIT %d, 50",
	"UPDATE stock SET quantity = quantity - %d, touched = NOW() WHERE sku = '%s' AND warehouse_id = %d",
	"INSERT INTO audit_log (actor, verb, object, at, detail) VALUES (%d, '%s', %d, '2026-02-03 04:05:06', 'a longer remark about what happened, with some words'), (%d, '%s', %d, '2026-02-03 04:05:07', 'and one more')",
	"DELETE FROM sessions WHERE expires < %d AND user_id = %d",
	"SELECT p.id, p.title, p.slug, p.body, p.published, COUNT(m.id) AS remarks, MAX(m.created_at) AS newest FROM posts p LEFT JOIN remarks m ON m.post_id = p.id AND m.hidden = %d WHERE p.blog_id = %d AND p.published BETWEEN '2025-%02d-01' AND '2026-%02d-01' GROUP BY p.id, p.title, p.slug, p.body, p.published HAVING COUNT(m.id) > %d ORDER BY newest DESC LIMIT 20",
	"SELECT SUM(amount), AVG(amount) FROM payments\n  WHERE merchant_id = %d\n    AND settled = %d\n    AND reference LIKE '%s%%'",
	"INSERT INTO metrics (host, name, at, value) VALUES ('%s', '%s', %d, %d.%d) ON DUPLICATE KEY UPDATE value = %d",
	"SELECT DISTINCT t.tag FROM tags t WHERE t.item_id IN (%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d) AND t.lang = '%s'",
	"REPLACE INTO counters (k, v) VALUES ('%s', %d)",
	"SELECT a.id FROM accounts a WHERE EXISTS (SELECT 1 FROM invoices i WHERE i.account_id = a.id AND i.due < '2026-03-%02d' AND i.paid = %d) AND a.region = '%s' AND a.balance < %d",
}

// shapeCount is how many classes there are.
func shapeCount() int { return len(shapes) + 1 } // and the administrator command

// writeSlowLog makes a log of at least so many bytes.
func writeSlowLog(path string, size int64) (events int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	l := &slowLog{w: bufio.NewWriterSize(f, 1<<20), rng: rand.New(rand.NewPCG(7, 11)), now: 1_780_000_000}
	for form := 0; l.n < size; form++ {
		l.banner(form % 4)
		for range 5000 {
			l.event(form % 4)
			if l.n >= size {
				break
			}
		}
	}
	if err := l.w.Flush(); err != nil {
		f.Close()
		return 0, err
	}
	return l.events, f.Close()
}

func (l *slowLog) print(format string, args ...any) {
	n, _ := fmt.Fprintf(l.w, format, args...) // the writer keeps its error for Flush
	l.n += int64(n)
}

// banner is what a server writes when it opens the log.
func (l *slowLog) banner(form int) {
	name := [...]string{
		"/usr/sbin/mysqld, Version: 9.7.0 (MySQL Community Server - GPL)", "/usr/sbin/mysqld, Version: 8.4.3 (MySQL Community Server - GPL)",
		"/usr/sbin/mysqld, Version: 8.0.36-28 (Percona Server (GPL), Release 28)", "/usr/sbin/mysqld, Version: 10.11.19-MariaDB-log (mariadb.org binary distribution)",
	}[form]
	l.print("%s. started with:\nTcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\nTime                 Id Command    Argument\n", name)
	l.db, l.second = "", 0
}

func (l *slowLog) event(form int) {
	l.events++
	took := math.Min(l.rng.ExpFloat64()*0.02, 90)
	locked := 0.0
	if l.rng.IntN(4) == 0 {
		locked = took / 10
	}
	l.now += l.rng.ExpFloat64() * 0.01
	user, host, thread := []string{"app", "app", "app", "batch", "report"}[l.rng.IntN(5)], l.rng.IntN(6), 100+l.rng.IntN(300)
	db := []string{"shop", "shop", "shop", "billing"}[l.rng.IntN(4)]
	sent := l.rng.IntN(50)
	examined := sent * (1 + l.rng.IntN(200))
	at := time.UnixMicro(int64(l.now * 1e6)).UTC()
	if form == 3 {
		if s := at.Unix(); s != l.second {
			l.print("# Time: %s\n", at.Format("060102 15:04:05"))
			l.second = s
		}
	} else {
		l.print("# Time: %s\n", at.Format("2006-01-02T15:04:05.000000Z"))
	}
	if form == 3 {
		l.print("# User@Host: %s[%s] @ web-%c.internal [10.0.0.%d]\n", user, user, 'a'+host, host+1)
	} else {
		l.print("# User@Host: %s[%s] @ web-%c.internal [10.0.0.%d]  Id: %5d\n", user, user, 'a'+host, host+1, thread)
	}
	times := fmt.Sprintf("# Query_time: %.6f  Lock_time: %.6f", took, locked)
	switch form {
	case 0:
		l.print("%s Rows_sent: %d  Rows_examined: %d\n", times, sent, examined)
	case 1:
		began := at.Add(-time.Duration(took * 1e9))
		l.print("%s Rows_sent: %d  Rows_examined: %d Thread_id: %d Errno: 0 Killed: 0 Bytes_received: %d Bytes_sent: %d Read_first: %d Read_last: 0 Read_key: %d Read_next: %d Read_prev: 0 Read_rnd: 0 Read_rnd_next: %d Sort_merge_passes: 0 Sort_range_count: 0 Sort_rows: %d Sort_scan_count: %d Created_tmp_disk_tables: 0 Created_tmp_tables: %d Start: %s End: %s\n",
			times, sent, examined, thread, 80+sent, 60*sent, sent&1, sent, examined, examined, sent, sent&1, sent&1,
			began.Format("2006-01-02T15:04:05.000000Z"), at.Format("2006-01-02T15:04:05.000000Z"))
	case 2:
		l.print("# Schema: %s  Last_errno: 0  Killed: 0\n%s  Rows_sent: %d  Rows_examined: %d  Rows_affected: %d\n# Bytes_sent: %d  Tmp_tables: %d  Tmp_disk_tables: 0  Tmp_table_sizes: %d\n# InnoDB_trx_id: %X\n# QC_Hit: No  Full_scan: %s  Full_join: No  Tmp_table: %s  Tmp_table_on_disk: No\n# Filesort: No  Filesort_on_disk: No  Merge_passes: 0\n#   InnoDB_IO_r_ops: %d  InnoDB_IO_r_bytes: %d  InnoDB_IO_r_wait: %.6f\n#   InnoDB_rec_lock_wait: 0.000000  InnoDB_queue_wait: 0.000000\n#   InnoDB_pages_distinct: %d\n",
			db, times, sent, examined, sent&3, 60*sent, sent&1, sent&1*16384, l.events, yes(sent&7 == 0), yes(sent&1 == 1), sent&3, sent&3*16384, took/20*float64(sent&1), sent)
	case 3:
		l.print("# Thread_id: %d  Schema: %s  QC_hit: No\n%s  Rows_sent: %d  Rows_examined: %d\n# Rows_affected: %d  Bytes_sent: %d\n# Tmp_tables: %d  Tmp_disk_tables: 0  Tmp_table_sizes: %d\n# Full_scan: %s  Full_join: No  Tmp_table: %s  Tmp_table_on_disk: No\n# Filesort: No  Filesort_on_disk: No  Merge_passes: 0  Priority_queue: No\n",
			thread, db, times, sent, examined, sent&3, 60*sent, sent&1, sent&1*16384, yes(sent&7 == 0), yes(sent&1 == 1))
	}
	if form != 2 && db != l.db {
		l.print("use %s;\n", db)
		l.db = db
	}
	l.print("SET timestamp=%d;\n", at.Unix())
	if l.rng.IntN(200) == 0 {
		l.print("# administrator command: Quit;\n")
		return
	}
	l.statement(shapes[min(int(l.rng.ExpFloat64()*4), len(shapes)-1)])
}

// statement fills in a shape.
func (l *slowLog) statement(shape string) {
	var args []any
	for i := 0; i+1 < len(shape); i++ {
		if shape[i] != '%' {
			continue
		}
		switch shape[i+1] {
		case '%':
			i++
		case 's':
			args = append(args, l.word())
		case '0': // a day or a month
			args = append(args, 1+l.rng.IntN(12))
		default:
			args = append(args, l.rng.IntN(1_000_000))
		}
	}
	l.print(shape+";\n", args...)
}

func (l *slowLog) word() string {
	var b strings.Builder
	for range 4 + l.rng.IntN(8) {
		b.WriteByte(byte('a' + l.rng.IntN(26)))
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}
