package sqltext

import (
	"strings"
	"testing"
)

// benchStatements are of the kinds that fill slow logs, about 200 bytes each on average.
var benchStatements = [][]byte{
	[]byte("SELECT c FROM sbtest1 WHERE id=501234"),
	[]byte("UPDATE sbtest7 SET k=k+1 WHERE id=499873"),
	[]byte("INSERT INTO sbtest3 (id, k, c, pad) VALUES (0, 501873, '83868641912-28773972837-60736120486-75162659906-27563526494-20381887404-41576422241-93426793964-56405065102-33518432330', '67847967377-48000963322-62604785301-91415491898-96926520291')"),
	[]byte("SELECT `orders`.`id`, `orders`.`customer_id`, `orders`.`state`, `orders`.`created_at` FROM `orders` INNER JOIN `customers` ON `customers`.`id` = `orders`.`customer_id` WHERE `customers`.`email` = 'someone@example.com' AND `orders`.`state` IN ('new', 'paid', 'sent') ORDER BY `orders`.`created_at` DESC LIMIT 20 OFFSET 40"),
	[]byte("select o.id, o.total, c.name, count(*) as items, sum(i.price * i.quantity) as value from orders o join customers c on c.id = o.customer_id left join items i on i.order_id = o.id where o.created_at between '2024-01-01 00:00:00' and '2024-02-01 00:00:00' and o.status <> 'cancelled' and c.country_id in (1, 2, 3, 44, 49) group by o.id, c.name having count(*) > 3 order by value desc limit 10"),
	[]byte("DELETE FROM sessions WHERE expires_at < '2024-05-05 12:13:14' AND user_id IS NOT NULL LIMIT 1000"),
	[]byte("/* app:web,controller:users,action:show */ SELECT u.id, u.login, u.last_seen FROM users u WHERE u.tenant_id = 4711 AND u.deleted_at IS NULL AND u.login = 'jane.doe'"),
	[]byte("COMMIT"),
}

func BenchmarkAppend(b *testing.B) {
	n := 0
	for _, s := range benchStatements {
		n += len(s)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	var f Fingerprinter
	dst := make([]byte, 0, 4096)
	for b.Loop() {
		for _, s := range benchStatements {
			dst = f.Append(dst[:0], s)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(benchStatements)), "ns/statement")
}

func BenchmarkAppendLong(b *testing.B) {
	for _, c := range []struct{ name, s string }{
		{"in", "select * from t where a in (" + strings.Repeat("123456, ", 1<<17) + "1)"},
		{"rows", "insert into t values " + strings.Repeat("(123456, 'some text here', now()), ", 1<<15) + "(1,'',now())"},
		{"blob", "insert into t values ('" + strings.Repeat("some text here", 1<<16) + "')"},
		{"columns", "select " + strings.Repeat("t.column_name, ", 1<<16) + "a from t"},
		{"comment", "select 1 /* " + strings.Repeat("*", 1<<20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := []byte(c.s)
			b.SetBytes(int64(len(s)))
			var f Fingerprinter
			var dst []byte
			for b.Loop() {
				dst = f.Append(dst[:0], s)
			}
		})
	}
}

func BenchmarkClassify(b *testing.B) {
	n := 0
	for _, s := range benchStatements {
		n += len(s)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	var c Classifier
	for b.Loop() {
		for _, s := range benchStatements {
			c.Classify(s)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(benchStatements)), "ns/statement")
}
