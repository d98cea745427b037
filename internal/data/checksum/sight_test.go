package checksum_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/mysql"
)

// TestUnseen: what an account may not see is reported, and fixed by the statement in the hint.
func TestUnseen(t *testing.T) {
	t.Parallel()
	s := replication(t, []string{"mariadb", "mariadb"})
	s.do(0, "CREATE DATABASE ck", "CREATE TABLE ck.t (id INT PRIMARY KEY)", "INSERT INTO ck.t VALUES (1)", "CREATE DATABASE ck_not", "CREATE TABLE ck_not.t (id INT PRIMARY KEY)",
		"CREATE USER few@localhost", "GRANT REPLICA MONITOR ON *.* TO few@localhost")
	s.caughtUp()
	o := s.options()
	few := func(i int) mysql.Target {
		target, err := mysql.ParseTarget("few@unix(" + s.nodes[i].Socket + ")/")
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	o.Primary, o.Others, o.Schemas = few(0), []mysql.Target{few(1)}, nil
	got, err := checksum.Compare(t.Context(), o)
	if !errors.Is(err, checksum.ErrNothing) || len(got.Unseen) != 2 || !strings.Contains(got.Unseen[0].What, "whole schemas without SELECT") {
		t.Fatalf("an account that sees nothing: got %+v, %v; want checksum.ErrNothing, len(Unseen) 2, \"whole schemas without SELECT\" in Unseen[0].What",
			got, err)
	}
	s.do(0, "GRANT SELECT ON `ck`.* TO few@localhost")
	s.caughtUp()
	if got, err = checksum.Compare(t.Context(), o); err != nil || got.Tables != 1 || len(got.Unseen) != 2 {
		t.Fatalf("an account that sees one schema of two: got %+v, %v; want Tables 1, len(Unseen) 2", got, err)
	}
	o.Schemas = []string{"ck"}
	if got, err := checksum.Compare(t.Context(), o); err != nil || got.Tables != 1 || len(got.Unseen) != 0 {
		t.Fatalf("the schema that it sees: got %+v, %v; want Tables 1, no got.Unseen", got, err)
	}
	if got, err := checksum.Compare(t.Context(), o); err != nil || len(got.Definitions) != 2 || got.Counts.Undefined != 2 || !strings.Contains(got.Definitions[0].What[0], "triggers without TRIGGER on `ck`") {
		t.Errorf("without the right to see triggers: got %+v, %v; want len(Definitions) 2, Counts.Undefined 2, \"triggers without TRIGGER on `ck`\" in Definitions[0].What[0]",
			got, err)
	}
	o.Schemas = nil
	s.do(0, strings.TrimPrefix(got.Unseen[0].Remedy, "run "))
	s.caughtUp()
	if got, err := checksum.Compare(t.Context(), o); err != nil || got.Tables != 2 || len(got.Unseen) != 0 {
		t.Fatalf("behind %s: got %+v, %v; want Tables 2, no got.Unseen", o.Schemas, got, err)
	}
}
