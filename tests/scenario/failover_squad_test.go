package scenario_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/sandbox"
)

// squad is a group of three servers, and the ledger of the rows whose writing was acknowledged to an application.
type squad struct {
	*testing.T
	box  *sandbox.Sandbox
	data string

	mu   sync.Mutex
	rows []int
	at   []time.Time // when each was acknowledged
	by   []string    // and by whom
	name map[*sql.DB]string
	last int
}

// member is one of a group, as risso group show has it.
type squadMember struct {
	Name, Address, Status, Fault, Errant string
}

func newSquad(t *testing.T, o sandbox.Options, flags ...string) *squad {
	t.Helper()
	o.Topology, o.Replicas = sandbox.TopologyReplication, 2
	q := &squad{T: t, box: up(t, o), data: tempDir(t)}
	execSQL(t, q.box.Nodes[0], "CREATE DATABASE IF NOT EXISTS app; CREATE TABLE app.ledger (id INT PRIMARY KEY); CREATE USER app@'%' IDENTIFIED BY 'app'; GRANT ALL ON app.* TO app@'%'")
	args := append([]string{"group", "create", "g", "--data", q.data}, flags...)
	for _, n := range q.box.Nodes {
		args = append(args, "--dsn", n.Name+"="+q.dsn(n))
	}
	mustCommand(t, args...)
	return q
}

func (q *squad) dsn(n *sandbox.Node) string {
	c, err := n.TCPConfig()
	if err != nil {
		q.Fatal(err)
	}
	return fmt.Sprintf("%s:%s@tcp(%s)/", c.User, c.Passwd, c.Addr)
}

// members are the group's, and which of the nodes is its primary.
func (q *squad) members() (list []squadMember, primary *sandbox.Node) {
	q.Helper()
	code, said := command(q.T, "group", "show", "g", "--data", q.data, "-o", "json")
	var a struct {
		Groups []struct{ Members []squadMember }
	}
	if err := json.Unmarshal([]byte(said), &a); code != 0 || err != nil || len(a.Groups) != 1 {
		q.Fatalf("risso group show: exit code %d, %v: %s", code, err, said)
	}
	list = a.Groups[0].Members
	for _, m := range list {
		if m.Status == "PRIMARY" {
			primary = q.node(m.Name)
		}
	}
	return list, primary
}

func (q *squad) node(name string) *sandbox.Node {
	q.Helper()
	n, err := q.box.Node(name)
	if err != nil {
		q.Fatal(err)
	}
	return n
}

// others are the nodes but one.
func (q *squad) others(but *sandbox.Node) []*sandbox.Node {
	return slices.DeleteFunc(slices.Clone(q.box.Nodes), func(n *sandbox.Node) bool { return n == but })
}

// app is an application's connection to a node.
func (q *squad) app(n *sandbox.Node) *sql.DB {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", fmt.Sprintf("127.0.0.1:%d", n.Port), "app", "app", "app"
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		q.Fatal(err)
	}
	db := sql.OpenDB(connector)
	q.Cleanup(func() { db.Close() })
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.name == nil {
		q.name = map[*sql.DB]string{}
	}
	q.name[db] = n.Name
	return db
}

// write writes a row, and keeps it in the ledger if that was acknowledged.
func (q *squad) write(db *sql.DB, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	defer cancel()
	q.mu.Lock()
	q.last++
	id := q.last
	q.mu.Unlock()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO ledger VALUES (%d)", id)); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows, q.at, q.by = append(q.rows, id), append(q.at, time.Now()), append(q.by, q.name[db])
	return nil
}

// mustWrite writes rows to the primary.
func (q *squad) mustWrite(rows int) {
	q.Helper()
	_, p := q.members()
	db := q.app(p)
	for range rows {
		if err := q.write(db, patience); err != nil {
			q.Fatalf("write to %s: %v", p.Name, err)
		}
	}
}

// hold keeps the appliers of nodes waiting, so that what they receive is not applied, until what it returns is called.
func (q *squad) hold(nodes ...*sandbox.Node) (release func()) {
	q.Helper()
	var list []func()
	for _, n := range nodes {
		db, err := n.DB()
		if err != nil {
			q.Fatal(err)
		}
		c, err := db.Conn(q.Context())
		if err == nil {
			_, err = c.ExecContext(q.Context(), "LOCK TABLES app.ledger READ")
		}
		if err != nil {
			q.Fatal(err)
		}
		list = append(list, func() { c.Close(); db.Close() })
	}
	return sync.OnceFunc(func() {
		for _, f := range list {
			f()
		}
	})
}

// complete waits until nodes have all rows of the ledger.
func (q *squad) complete(nodes ...*sandbox.Node) {
	q.Helper()
	q.mu.Lock()
	var ids []string
	for _, id := range q.rows {
		ids = append(ids, fmt.Sprint(id))
	}
	q.mu.Unlock()
	for _, n := range nodes {
		in := "SELECT COUNT(*) FROM app.ledger WHERE id IN (" + strings.Join(ids, ",") + ")"
		for end := time.Now().Add(patience); value(q.T, n, in) != fmt.Sprint(len(ids)); time.Sleep(20 * time.Millisecond) {
			if time.Now().Before(end) {
				continue
			}
			for _, o := range q.box.Nodes { // lost, or only not there yet
				q.Logf("%s has %s of %d acknowledged rows, but not %v", o.Name, value(q.T, o, in), len(ids), q.lacks(o, ids))
			}
			show := "SHOW REPLICA STATUS"
			if n.Program.Family == sandbox.FamilyMariaDB {
				show = "SHOW ALL SLAVES STATUS"
			}
			var status []string
			for _, r := range execSQL(q.T, n, show) {
				for _, row := range r.Rows {
					for i, v := range row {
						if v != nil && *v != "" {
							status = append(status, r.Columns[i]+" "+*v)
						}
					}
				}
			}
			q.Fatalf("%s does not have all acknowledged rows after %s; it replicates: %s", n.Name, patience, strings.Join(status, ", "))
		}
	}
}

// open reports whether a node lets an application write.
// open reports whether a server takes writes. A session that is ended meanwhile, as those of one that is just kept from writes are, asks again.
func (q *squad) open(n *sandbox.Node) bool {
	q.Helper()
	for began := time.Now(); ; {
		r, err := n.Query(q.Context(), "SELECT @@GLOBAL.read_only")
		switch {
		case err == nil:
			return *r[0].Rows[0][0] == "0"
		case !errors.Is(err, mysql.ErrInvalidConn) || time.Since(began) > patience:
			q.Fatalf("does %s take writes? %v", n.Name, err)
		}
	}
}

// lacks are the rows that a node has not, each with the time at which it was acknowledged.
func (q *squad) lacks(n *sandbox.Node, ids []string) (list []string) {
	q.Helper()
	has := map[string]bool{}
	for _, row := range execSQL(q.T, n, "SELECT id FROM app.ledger")[0].Rows {
		has[*row[0]] = true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, id := range ids {
		if !has[id] {
			list = append(list, id+" at "+q.at[i].Format("15:04:05.000")+" by "+q.by[i])
		}
	}
	return list
}

// whole waits until the group's primary alone takes writes, all others replicate from it, and each has the whole ledger.
func (q *squad) whole() {
	q.Helper()
	var list []squadMember
	var p *sandbox.Node
	await(q.T, "a primary with two secondaries", func() bool {
		list, p = q.members()
		return p != nil && !slices.ContainsFunc(list, func(m squadMember) bool { return m.Status != "PRIMARY" && m.Status != "SECONDARY" }) && q.open(p)
	})
	for _, n := range q.others(p) {
		if q.open(n) {
			q.Errorf("%s takes writes, and the primary is %s", n.Name, p.Name)
		}
	}
	q.mustWrite(1)
	q.complete(q.box.Nodes...)
}

// dryRun asks who would follow, and why the others would not, by code.
func (q *squad) dryRun(args ...string) (winner string, refused map[string][]string) {
	q.Helper()
	out, said, _ := runRisso(q.T, nil, append([]string{"failover", "--group", "g", "--data", q.data, "--dry-run", "-o", "json"}, args...)...)
	var a struct {
		New    string
		Choice struct {
			Candidates []struct {
				Name    string
				Refused []struct{ Code string }
			}
			Refused []struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		q.Fatalf("risso failover --dry-run: %v: %s %s", err, out, said)
	}
	refused = map[string][]string{}
	for _, r := range a.Choice.Refused {
		refused[""] = append(refused[""], r.Code)
	}
	for _, c := range a.Choice.Candidates {
		for _, r := range c.Refused {
			refused[c.Name] = append(refused[c.Name], r.Code)
		}
	}
	return a.New, refused
}
