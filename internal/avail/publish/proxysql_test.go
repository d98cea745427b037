package publish

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/rissodb/risso/internal/avail/group"
)

// proxyTables are tables as ProxySQL's documentation shows them. Its admin interface is SQLite, as this test's.
const proxyTables = `CREATE TABLE mysql_servers (hostgroup_id INT CHECK (hostgroup_id>=0) NOT NULL DEFAULT 0, hostname VARCHAR NOT NULL,
	port INT CHECK (port >= 0 AND port <= 65535) NOT NULL DEFAULT 3306,
	gtid_port INT CHECK ((gtid_port <> port OR gtid_port=0) AND gtid_port >= 0 AND gtid_port <= 65535) NOT NULL DEFAULT 0,
	status VARCHAR CHECK (UPPER(status) IN ('ONLINE','SHUNNED','OFFLINE_SOFT','OFFLINE_HARD')) NOT NULL DEFAULT 'ONLINE',
	weight INT CHECK (weight >= 0 AND weight <=10000000) NOT NULL DEFAULT 1, compression INT CHECK (compression IN(0,1)) NOT NULL DEFAULT 0,
	max_connections INT CHECK (max_connections >=0) NOT NULL DEFAULT 1000,
	max_replication_lag INT CHECK (max_replication_lag >= 0 AND max_replication_lag <= 126144000) NOT NULL DEFAULT 0,
	use_ssl INT CHECK (use_ssl IN(0,1)) NOT NULL DEFAULT 0, max_latency_ms INT UNSIGNED CHECK (max_latency_ms>=0) NOT NULL DEFAULT 0,
	comment VARCHAR NOT NULL DEFAULT '', PRIMARY KEY (hostgroup_id, hostname, port));
CREATE TABLE mysql_replication_hostgroups (writer_hostgroup INT CHECK (writer_hostgroup>=0) NOT NULL PRIMARY KEY,
	reader_hostgroup INT NOT NULL CHECK (reader_hostgroup<>writer_hostgroup AND reader_hostgroup>=0),
	check_type VARCHAR CHECK (LOWER(check_type) IN ('read_only','innodb_read_only','super_read_only','read_only|innodb_read_only','read_only&innodb_read_only')) NOT NULL DEFAULT 'read_only',
	comment VARCHAR NOT NULL DEFAULT '', UNIQUE (reader_hostgroup))`

// TestProxySQL runs the statements on tables like ProxySQL's, and holds that at no LOAD two servers take writes. ProxySQL itself cannot be had here: LOAD and SAVE
// are its own, and are not tried.
func TestProxySQL(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(proxyTables + `; INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_connections, use_ssl) VALUES (10, '10.0.0.1', 3306, 77, 1), (30, '10.0.0.1', 3306, 5, 0);
		INSERT INTO mysql_replication_hostgroups VALUES (10, 20, 'read_only', 'by hand'), (30, 40, 'read_only', 'another group')`); err != nil {
		t.Fatal(err)
	}
	rows := func(query string) (out []string) {
		t.Helper()
		r, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for r.Next() {
			var s string
			if err := r.Scan(&s); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return out
	}
	const all = `SELECT hostgroup_id||' '||hostname||':'||port||' '||status||' '||weight||' '||max_replication_lag||' '||max_connections||' '||use_ssl FROM mysql_servers WHERE hostgroup_id < 30 ORDER BY 1`
	o := ProxySQLOptions{Writer: 10, Reader: 20, MaxLag: 5500 * time.Millisecond}
	last := ""
	bring := func(v group.View, want ...string) {
		t.Helper()
		list, err := ProxySQL(v, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if strings.HasPrefix(s.SQL, "LOAD ") {
				writers := rows(`SELECT hostname FROM mysql_servers WHERE hostgroup_id=10 AND status='ONLINE'`)
				if len(writers) > 1 || len(writers) == 1 && last != "" && last != writers[0] {
					t.Errorf("epoch %d: %q take writes, and %q did", v.Epoch, writers, last)
				}
				if last = ""; len(writers) == 1 {
					last = writers[0]
				}
			}
			if strings.HasPrefix(s.SQL, "LOAD ") || strings.HasPrefix(s.SQL, "SAVE ") {
				continue
			}
			if _, err := db.Exec(s.SQL); err != nil {
				t.Errorf("%s: %v", s.SQL, err)
			}
		}
		if got := rows(all); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("epoch %d: got\n%s\nwant\n%s", v.Epoch, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	now := time.Now()
	v := shop(7, "db1", now)
	bring(v, "10 10.0.0.1:3306 ONLINE 1 0 77 1", "20 10.0.0.2:3306 ONLINE 33 6 1000 0", "20 10.0.0.3:3306 ONLINE 100 6 1000 0")
	if got := rows("SELECT comment FROM mysql_replication_hostgroups"); fmt.Sprint(got) != "[another group]" {
		t.Errorf("host groups of replication: %q", got)
	}
	v = shop(8, "", now)
	v.Replicas = nil
	bring(v, "10 10.0.0.1:3306 OFFLINE_HARD 1 0 77 1", "20 10.0.0.2:3306 OFFLINE_SOFT 33 6 1000 0", "20 10.0.0.3:3306 OFFLINE_SOFT 100 6 1000 0")
	o.Fallback = true
	v = shop(9, "db2", now)
	v.Replicas = nil
	bring(v, "10 10.0.0.1:3306 OFFLINE_HARD 1 0 77 1", "10 10.0.0.2:3306 ONLINE 1 0 1000 0", "20 10.0.0.2:3306 ONLINE 1 0 1000 0", "20 10.0.0.3:3306 OFFLINE_SOFT 100 6 1000 0")
	v = shop(10, "db1", now) // straight back
	bring(v, "10 10.0.0.1:3306 ONLINE 1 0 77 1", "10 10.0.0.2:3306 OFFLINE_HARD 1 0 1000 0", "20 10.0.0.2:3306 ONLINE 33 6 1000 0", "20 10.0.0.3:3306 ONLINE 100 6 1000 0")

	o = ProxySQLOptions{Writer: 50, Reader: 51, ReadOnly: true}
	list, err := ProxySQL(v, []group.Member{{Name: "db1", Address: "10.0.0.1:3306", Status: group.Primary}, {Name: "db9", Address: "10.0.0.9:3306", Status: group.Faulty}}, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again does nothing
		for _, s := range list[:len(list)-2] {
			if _, err := db.Exec(s.SQL); err != nil {
				t.Errorf("%s: %v", s.SQL, err)
			}
		}
	}
	if got := rows("SELECT hostname FROM mysql_servers WHERE hostgroup_id=51"); fmt.Sprint(got) != "[10.0.0.1]" || !strings.Contains(list[1].For, "two writers") {
		t.Errorf("by read_only: %q, %s", got, list[1].For)
	}

	bad := shop(1, "db1", now)
	bad.Primary.Address = "x'; DROP TABLE mysql_servers; --:3306"
	for _, c := range []struct {
		v group.View
		o ProxySQLOptions
	}{{bad, ProxySQLOptions{Writer: 1, Reader: 2}}, {v, ProxySQLOptions{Writer: 1, Reader: 1}}, {v, ProxySQLOptions{Writer: 1, Reader: 2, MaxLag: -1}}} {
		if list, err := ProxySQL(c.v, nil, c.o); err == nil {
			t.Errorf("%+v gives %+v", c.o, list)
		}
	}
}
