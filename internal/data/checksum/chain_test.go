package checksum_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestChain has a replica of a replica.
func TestChain(t *testing.T) {
	s := replication(t, []string{"mariadb", "mariadb", "mariadb"})
	s.do(2, "STOP SLAVE", fmt.Sprintf("CHANGE MASTER TO MASTER_PORT=%d", s.nodes[1].Port), "START SLAVE")
	s.do(0, "CREATE DATABASE ck", "CREATE TABLE ck.a (id INT PRIMARY KEY, v INT)", "USE ck; INSERT INTO a SELECT seq, seq FROM seq_1_to_1000")
	s.caughtUp()
	s.secretly(2, "UPDATE ck.a SET v = 0 WHERE id = 1")
	o := s.options()
	r, tables := s.compare(o)
	if a := tables["a"]; a.On[0].Verdict != checksum.Equal || a.On[1].Different != 1 {
		t.Errorf("got %+v; want On[0].Verdict checksum.Equal, On[1].Different 1", a)
	}
	plan, err := checksum.PlanMend(t.Context(), checksum.MendOptions{Primary: o.Primary, Replicas: o.Others, Tables: r.List})
	if err != nil || len(plan.Steps) != 0 || len(plan.Refused) != 2 || !strings.Contains(plan.Refused[0].Why, "it has replicas (") || !strings.Contains(plan.Refused[1].Why, "primary itself") {
		t.Errorf("%v: got %+v; want no plan.Steps, len(Refused) 2, \"it has replicas (\" in Refused[0].Why, \"primary itself\" in Refused[1].Why",
			err, plan)
	}
}

// TestPositions has servers that replicate by file and position, without GTIDs.
func TestPositions(t *testing.T) {
	s := replication(t, []string{"mysql-8.0"})
	s.do(1, "STOP SLAVE", "CHANGE MASTER TO MASTER_AUTO_POSITION=0")
	for _, mode := range []string{"ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"} {
		for i := range s.nodes {
			s.do(i, "SET GLOBAL gtid_mode = "+mode)
		}
	}
	s.do(1, "START SLAVE")
	s.do(0, "CREATE DATABASE ck", "CREATE TABLE ck.a (id INT PRIMARY KEY, v INT)", "INSERT INTO ck.a VALUES "+series(1000, func(i int) string { return fmt.Sprintf("(%d, %d)", i, i) }))
	s.caughtUp()
	c, err := mysql.Connect(t.Context(), s.target(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if m, err := read.MarkOf(t.Context(), c); err != nil || m.GTID != "" || m.File == "" {
		t.Fatalf("%v: got %+v; want GTID \"\", File not \"\"", err, m)
	}
	s.do(1, "STOP SLAVE SQL_THREAD")
	s.do(0, "UPDATE ck.a SET v = 0 WHERE id = 1")
	o := s.options()
	o.Patience = 300 * time.Millisecond
	_, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"a": checksum.Behind})
	s.do(1, "START SLAVE")
	o.Patience = 0
	_, tables = s.compare(o)
	verdicts(t, tables, nil)
	s.secretly(1, "DELETE FROM ck.a WHERE id = 2")
	r, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"a": checksum.Differs})
	m := checksum.MendOptions{Primary: o.Primary, Replicas: o.Others, Tables: r.List, Journal: t.TempDir()}
	plan, err := checksum.PlanMend(t.Context(), m)
	if err != nil || len(plan.Steps) != 1 {
		t.Fatalf("%v: got %+v; want length 1", err, plan)
	}
	if _, err := checksum.Mend(t.Context(), m, plan, nil); err != nil {
		t.Fatal(err)
	}
	_, tables = s.compare(o)
	verdicts(t, tables, nil)
}
