package geo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/sqltext"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

var servers = []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// place is a point in the words of a server, by longitude and latitude.
func place(c *mysql.Conn, longitude, latitude string) string {
	if c.Server.OrdersAxes() {
		longitude, latitude = latitude, longitude
	}
	return "ST_GeomFromText('POINT(" + longitude + " " + latitude + ")', 4326)"
}

// TestSelect: what each server makes of a geometry is what the map has of it, longitude first, and the server's own ST_AsGeoJSON agrees.
func TestSelect(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c, target := sandboxtest.Connect(t, n), sandboxtest.Target(t, n).WithDatabase("geo")
			run(t, c, "CREATE DATABASE geo", "USE geo", "CREATE TABLE `pla``ces` (id INT PRIMARY KEY, name VARCHAR(30), g GEOMETRY, other POINT)",
				"INSERT INTO `pla``ces` VALUES (1, 'Berlin', "+place(c, "13.4", "52.5")+", NULL), (2, 'Zürich', "+place(c, "8.54", "47.37")+", POINT(1, 2)), (3, NULL, NULL, NULL)",
				"CREATE FUNCTION f() RETURNS INT NO SQL RETURN 1")
			m, err := geo.Select(t.Context(), target, c, "SELECT id, name, g, g AS g2, 1.50 AS d, X'FF' AS b, other FROM `pla``ces` ORDER BY id; ", geo.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := m.WriteGeoJSON(&b); err != nil {
				t.Fatal(err)
			}
			want := `{"type":"FeatureCollection","bbox":[8.54,47.37,13.4,52.5],"notes":["1 row has no geometry."],"features":[
{"type":"Feature","geometry":{"type":"Point","coordinates":[13.4,52.5]},"properties":{"id":1,"name":"Berlin","g2":{"type":"Point","coordinates":[13.4,52.5]},"d":1.50,"b":"0xFF","other":null}},
{"type":"Feature","geometry":{"type":"Point","coordinates":[8.54,47.37]},"properties":{"id":2,"name":"Zürich","g2":{"type":"Point","coordinates":[8.54,47.37]},"d":1.50,"b":"0xFF","other":{"type":"Point","coordinates":[1,2]}}},
{"type":"Feature","geometry":null,"properties":{"id":3,"name":null,"g2":null,"d":1.50,"b":"0xFF","other":null}}
]}
`
			if got := b.String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			theirs, err := c.Text(t.Context(), "SELECT ST_AsGeoJSON(g) FROM `pla``ces` WHERE id = 2")
			var read struct{ Coordinates [2]float64 }
			if err != nil || json.Unmarshal([]byte(theirs), &read) != nil || read.Coordinates != [2]float64{8.54, 47.37} {
				t.Errorf("the server's own GeoJSON is %s, %v; want longitude first", theirs, err)
			}
			other, err := geo.Select(t.Context(), target, c, "SELECT g, other FROM `pla``ces` WHERE id = 2", geo.Options{Column: "OTHER"})
			if err != nil || other.Features[0].Geometry.Line[0] != (geo.Point{1, 2}) {
				t.Errorf("--column other: got %+v, %v; want 1 2", other, err)
			}
			few, err := geo.Select(t.Context(), target, c, "SELECT * FROM `pla``ces`", geo.Options{Rows: 2})
			if err != nil || len(few.Features) != 2 || !strings.Contains(strings.Join(few.Notes, " "), "Only the first 2 rows") {
				t.Errorf("two rows of three: got %+v, %v; want them, and that there are more", few, err)
			}
			none, err := geo.Select(t.Context(), target, c, "SELECT g FROM `pla``ces` WHERE id = 99", geo.Options{})
			if err != nil || len(none.Features) != 0 {
				t.Errorf("no rows: got %+v, %v; want a map without features", none, err)
			}
		})
	}
}

// TestSelectReads: whatever a statement would change is refused, or fails.
func TestSelectReads(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec, "log_bin_trust_function_creators=ON")
			c, target := sandboxtest.Connect(t, n), sandboxtest.Target(t, n).WithDatabase("geo")
			run(t, c, "CREATE DATABASE geo", "USE geo", "CREATE TABLE t (id INT PRIMARY KEY, g POINT)", "INSERT INTO t VALUES (1, POINT(1, 2))",
				"CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO t VALUES (9, NULL); RETURN 1; END",
				"CREATE FUNCTION alters() RETURNS INT BEGIN SET GLOBAL max_connections = 99; RETURN 1; END",
				"CREATE VIEW v AS SELECT g, alters() AS s FROM t")
			for sql, want := range map[string]error{
				"DELETE FROM t": sqltext.ErrWrites, "SELECT g FROM t FOR UPDATE": sqltext.ErrWrites, "SELECT g FROM t; DELETE FROM t": sqltext.ErrWrites, "SELECT g INTO OUTFILE '/tmp/x' FROM t": sqltext.ErrWrites,
				"/*!50000 DELETE FROM t */": sqltext.ErrWrites, "SELECT g, alters() FROM t": plan.ErrStatement, "SELECT * FROM v": plan.ErrStatement, "SELECT 1": geo.ErrNoGeometry, "SELECT g FROM t WHERE 1 = 0 UNION SELECT 1": geo.ErrNoGeometry,
			} {
				if _, err := geo.Select(t.Context(), target, c, sql, geo.Options{}); !errors.Is(err, want) && !(want == geo.ErrNoGeometry && err != nil) {
					t.Errorf("%s: got %v; want %v", sql, err, want)
				}
			}
			if _, err := geo.Select(t.Context(), target, c, "SELECT g, writes() FROM t", geo.Options{}); err == nil {
				t.Error("a function that writes ran; want an error")
			}
			if rows, err := c.Text(t.Context(), "SELECT COUNT(*) FROM t"); err != nil || rows != "1" {
				t.Errorf("the table has %s rows, %v; want 1", rows, err)
			}
			began := time.Now()
			_, err := geo.Select(t.Context(), target, c, "SELECT a.g FROM t a, information_schema.COLUMNS x, information_schema.COLUMNS y, information_schema.COLUMNS z WHERE x.COLUMN_NAME = CONCAT(y.COLUMN_NAME, z.COLUMN_NAME, 'no')", geo.Options{Time: time.Second})
			if !mysql.OutOfTime(err) || time.Since(began) > 15*time.Second {
				t.Errorf("a statement without end: got %v after %s; want an end after a second", err, time.Since(began))
			}
		})
	}
}

// TestToDegrees: systems of other coordinates come to degrees here or by the server; where neither can, they stay what they are, said so.
func TestToDegrees(t *testing.T) {
	const statement = "SELECT ST_GeomFromText('POINT(%s)', %s) AS g"
	for _, c := range []struct {
		spec, srid, point string
		plane             bool
		want              geo.Point
	}{
		{"mysql-9.7", "3857", "1491700 6894700", false, geo.Point{13.40017, 52.52}},
		{"mariadb", "3857", "1491700 6894700", false, geo.Point{13.40017, 52.52}},
		{"mysql-9.7", "25832", "392000 5820000", false, geo.Point{7.40828, 52.5194}},
		{"mysql-9.7", "2193", "1749140 5427726", false, geo.Point{174.78107, -41.28814}},
		{"mysql-9.7", "4258", "52 13", false, geo.Point{13, 52}},
		{"mysql-8.0", "4258", "52 13", false, geo.Point{13, 52}},
		{"mysql-8.0", "25832", "392000 5820000", true, geo.Point{392000, 5820000}},
		{"mariadb", "25832", "392000 5820000", true, geo.Point{392000, 5820000}},
		{"mariadb", "4326", "52 130", true, geo.Point{52, 130}},
		{"mysql-9.7", "0", "500 13", true, geo.Point{500, 13}},
		{"mysql-9.7", "0", "50 13", false, geo.Point{50, 13}},
	} {
		t.Run(c.spec+" "+c.srid, func(t *testing.T) {
			n := sandboxtest.Lend(t, c.spec)
			conn := sandboxtest.Connect(t, n)
			m, err := geo.Select(t.Context(), sandboxtest.Target(t, n), conn, strings.NewReplacer("'POINT(%s)'", "'POINT("+c.point+")'", "%s", c.srid).Replace(statement), geo.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := m.Features[0].Geometry.Line[0]
			if math.Abs(got[0]-c.want[0]) > 2e-5 || math.Abs(got[1]-c.want[1]) > 2e-5 || m.Plane != c.plane {
				t.Errorf("got %v, plane %v; want %v, %v", got, m.Plane, c.want, c.plane)
			}
			if c.plane && len(m.Notes) == 0 {
				t.Error("nothing is said of why it is a plane")
			}
		})
	}
}

// TestFacts: mistakes are found on real servers, and mended by what the findings say.
func TestFacts(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec, "performance_schema=ON")
			c := sandboxtest.Connect(t, n)
			run(t, c, "CREATE DATABASE geo", "USE geo", "CREATE TABLE `o-d d` (id INT PRIMARY KEY AUTO_INCREMENT, g GEOMETRY NOT NULL, SPATIAL KEY sp (g))",
				"INSERT INTO `o-d d` (g) VALUES (POINT(13, 120)), (POINT(13, 52))",
				"INSERT INTO `o-d d` (g) VALUES (ST_GeomFromText('POLYGON((0 0, 10 10, 0 10, 10 0, 0 0))'))",
				"CREATE VIEW broken AS SELECT id FROM `o-d d`", "SELECT COUNT(*) FROM `o-d d` WHERE ST_Distance(g, POINT(1, 2)) < 5", "SELECT COUNT(*) FROM `o-d d` WHERE MBRContains(ST_Buffer(POINT(1, 2), 3), g)")
			f, unknown, err := geo.ReadFacts(t.Context(), c, geo.SampleOptions{})
			if err != nil || len(unknown) > 0 {
				t.Fatal(err, unknown)
			}
			got := map[string]geo.Finding{}
			for _, x := range geo.Check(f) {
				got[x.ID] = x
				if x.Object != "geo.o-d d.g" {
					t.Errorf("%s is about %s; want geo.o-d d.g", x.ID, x.Object)
				}
			}
			want := []string{geo.CheckAxes, geo.CheckFunction, geo.CheckMBR}
			if c.Server.RestrictsSRID() {
				want = append(want, geo.CheckNoSRID)
			}
			if c.Server.ValidatesGeometry() {
				want = append(want, geo.CheckInvalid)
			}
			for _, id := range want {
				if got[id].What == "" {
					t.Errorf("%s is not found: %+v", id, got)
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %d checks; want %d", len(got), len(want))
			}
			if x, ok := got[geo.CheckNoSRID]; ok {
				usesIndex := func() bool {
					rows, err := c.Maps(t.Context(), "EXPLAIN FORMAT=TRADITIONAL SELECT * FROM `o-d d` WHERE MBRContains(ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))'), g)")
					return err == nil && len(rows) == 1 && rows[0]["key"] == "sp"
				}
				before := usesIndex()
				run(t, c, strings.Split(x.Remedy, "; ")...)
				if after := usesIndex(); before || !after {
					t.Errorf("the index is used: before %v, after %v %s; want only then", before, after, x.Remedy)
				}
			}
		})
	}
}

// TestRestrictKeeps: the statement that gives a column its SRID loses nothing else of it.
func TestRestrictKeeps(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	c := sandboxtest.Connect(t, n)
	const create = "CREATE TABLE t (id INT PRIMARY KEY, `a``a` POINT NOT NULL%[1]s COMMENT 'it''s, (a)', b GEOMETRY%[1]s INVISIBLE COMMENT 'b', c POINT AS (ST_SRID(POINT(id, 10), 4326)) STORED%[1]s NOT NULL, d POINT%[1]s DEFAULT (ST_SRID(POINT(1, 2), 4326)))"
	run(t, c, "CREATE DATABASE geo", "USE geo", fmt.Sprintf(create, ""), "INSERT INTO t (id, `a``a`, b) VALUES (1, ST_SRID(POINT(1, 2), 4326), ST_SRID(POINT(1, 2), 4326))",
		"CREATE DATABASE want", "USE want", fmt.Sprintf(create, " SRID 4326"), "USE geo")
	f, unknown, err := geo.ReadFacts(t.Context(), c, geo.SampleOptions{Schema: "geo"})
	if err != nil || len(unknown) > 0 {
		t.Fatal(err, unknown)
	}
	restricted := 0
	for _, x := range geo.Check(f) {
		if x.ID == geo.CheckNoSRID {
			run(t, c, strings.Split(x.Remedy, "; ")...)
			restricted++
		}
	}
	shown := func(table string) string {
		rows, err := c.Maps(t.Context(), "SHOW CREATE TABLE "+table)
		if err != nil {
			t.Fatal(err)
		}
		return rows[0]["Create Table"]
	}
	if got, want := shown("geo.t"), shown("want.t"); got != want || restricted != 4 {
		t.Errorf("after %d of 4 columns got an SRID:\n%s\nwant\n%s", restricted, got, want)
	}
}

// TestServed: an index serves the relations that Check believes it does, and no distance.
func TestServed(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			c := sandboxtest.Connect(t, sandboxtest.Lend(t, spec))
			srid, form := "", ""
			if c.Server.RestrictsSRID() {
				srid, form = " SRID 0", "FORMAT=TRADITIONAL "
			}
			run(t, c, "CREATE DATABASE geo", "USE geo", "CREATE TABLE t (id INT PRIMARY KEY, g GEOMETRY NOT NULL"+srid+", SPATIAL KEY sp (g))",
				"INSERT INTO t SELECT a.n + 10 * b.n + 100 * c.n, POINT(a.n + 10 * b.n, 7 + c.n) FROM "+ten+" a, "+ten+" b, "+ten+" c", "ANALYZE TABLE t")
			const area = "ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))')"
			key := func(condition string) string {
				rows, err := c.Maps(t.Context(), "EXPLAIN "+form+"SELECT * FROM t WHERE "+condition)
				if err != nil || len(rows) != 1 {
					t.Fatalf("%s: %v, %v", condition, rows, err)
				}
				return rows[0]["key"]
			}
			served := []string{"MBRContains(" + area + ", g)", "MBRWithin(g, " + area + ")", "MBRIntersects(g, " + area + ")", "ST_Contains(" + area + ", g)", "ST_Within(g, " + area + ")", "ST_Intersects(g, " + area + ")", "ST_Touches(g, " + area + ")", "ST_Equals(g, POINT(1, 1))",
				"ST_Distance(g, POINT(1, 1)) < 1 AND MBRContains(" + area + ", g)"}
			for _, condition := range served {
				if key(condition) != "sp" {
					t.Errorf("%s: the index is not used", condition)
				}
				if found := check(condition); slices.Contains(found, geo.CheckFunction) {
					t.Errorf("%s: got %v; want no %s", condition, found, geo.CheckFunction)
				}
			}
			for _, condition := range []string{"ST_Distance(g, POINT(1, 1)) < 1", "ST_Within(ST_Buffer(g, 1), " + area + ")"} {
				if key(condition) == "sp" {
					t.Errorf("%s: the index is used", condition)
				}
				if found := check(condition); !slices.Contains(found, geo.CheckFunction) {
					t.Errorf("%s: got %v; want %s", condition, found, geo.CheckFunction)
				}
			}
		})
	}
}

func check(condition string) (ids []string) {
	srid := uint32(0)
	for _, f := range geo.Check(geo.Facts{Columns: []geo.Column{{Schema: "geo", Table: "t", Name: "g", SRID: &srid}}, Statements: []geo.Statement{{SQL: "SELECT * FROM t WHERE " + condition, Schema: "geo"}}}) {
		ids = append(ids, f.ID)
	}
	return ids
}

const ten = "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
