package gather_test

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestGeometry: columns of geometry without a SRID are found where servers have such, each statement gives one, and its undo takes it back with all
// else that the column has: comments, defaults, expressions, indexes. Swapped axes are found on all.
func TestGeometry(t *testing.T) {
	for _, kind := range []string{"mysql-9.7", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			do := func(list string) {
				t.Helper()
				for _, s := range strings.Split(list, "; ") {
					if err := c.Exec(t.Context(), s); err != nil {
						t.Errorf("%s: %v", s, err)
					}
				}
			}
			do("CREATE DATABASE places; USE places; CREATE TABLE plain (id INT PRIMARY KEY, n INT)")
			restricts := c.Server.RestrictsSRID()
			if restricts {
				do("CREATE TABLE t (id INT PRIMARY KEY, a POINT NOT NULL COMMENT 'it''s, (a)', b GEOMETRY INVISIBLE COMMENT 'b', c POINT AS (ST_SRID(POINT(id, 10), 4326)) STORED NOT NULL, d POINT DEFAULT (ST_SRID(POINT(1, 2), 4326)), SPATIAL KEY ka (a))")
				do("INSERT INTO t (id, a, b) VALUES (1, ST_SRID(POINT(1, 2), 4326), ST_SRID(POINT(1, 2), 4326))")
			} else {
				do("CREATE TABLE t (id INT PRIMARY KEY, a POINT NOT NULL); INSERT INTO t (id, a) VALUES (1, ST_GeomFromText('POINT(10 120)', 4326)), (2, ST_GeomFromText('POINT(10 121)', 4326))")
			}
			found := lookAtPlaces(t, node.DSN)
			if !restricts {
				if f := found[geo.CheckAxes+" places.t.a"]; f.What == "" || len(found) != 1 {
					t.Errorf("got %+v; want swapped axes of places.t.a", found)
				}
				return
			}
			if len(found) != 4 {
				t.Fatalf("got %d findings, want 4: %+v", len(found), found)
			}
			create := func() string {
				rows, err := c.Maps(t.Context(), "SHOW CREATE TABLE t")
				if err != nil {
					t.Fatal(err)
				}
				return rows[0]["Create Table"]
			}
			before := create()
			for _, column := range []string{"a", "b", "c", "d"} {
				f := found[geo.CheckNoSRID+" places.t."+column]
				if do(f.Statement); strings.Count(create(), "SRID 4326") != 1 {
					t.Errorf("after %s:\n%s", f.Statement, create())
				}
				if do(f.Undo); create() != before {
					t.Errorf("after %s:\n%s\nbefore:\n%s", f.Undo, create(), before)
				}
			}
			for _, f := range found {
				do(f.Statement)
			}
			if left := lookAtPlaces(t, node.DSN); len(left) != 0 {
				t.Errorf("after all statements: %+v", left)
			}
		})
	}
}

// lookAtPlaces are the findings about geometry, by ID and object.
func lookAtPlaces(t *testing.T, dsn string) map[string]advise.Finding {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := pattern.NewChoice(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gather.Look(t.Context(), target, gather.Options{NoLoad: true, Wanted: func(id string) bool { return strings.HasPrefix(id, "gis.") }, Choice: choice})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]advise.Finding{}
	for _, f := range a.Findings {
		if !strings.HasPrefix(f.What, f.Object) {
			t.Errorf("%s of %s does not say of what: %s", f.ID, f.Object, f.What)
		}
		found[f.ID+" "+f.Object] = f
	}
	return found
}
