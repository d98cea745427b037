package load_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox"
)

// typed are documents with values whose types their text does not show: at the top, in objects and arrays, under odd names.
var typed = []string{
	"CREATE DATABASE j CHARACTER SET utf8mb4", "USE j",
	"CREATE TABLE made (id INT PRIMARY KEY, de DECIMAL(30,10), d DATE, t TIME(3), dt DATETIME(6), ts TIMESTAMP NULL, b BLOB, vb VARBINARY(20), bi BINARY(4), bt BIT(12), tb TINYBLOB, lb LONGBLOB)",
	"INSERT INTO made VALUES (1, 12345678901234567890.0123456789, '2020-02-29', '-12:30:00.5', '2020-01-01 10:00:00.25', '2019-05-05 05:05:05', 'blob', 'varbinary', 'bin', b'101010101010', '', REPEAT('x', 100)), (2, -1.5, '1000-01-01', '23:59:59', '9999-12-31 23:59:59.999999', '2000-01-01', '', '', '', 0, 'a', '')",
	"CREATE TABLE docs (id VARCHAR(10) CHARACTER SET utf8mb4 NOT NULL, n INT NOT NULL, doc JSON, other JSON, changed TIMESTAMP NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (id, n))",
	"INSERT INTO docs (id, n, doc, other) SELECT 'é''\\\\', id, JSON_OBJECT('de', de, 'list', JSON_ARRAY(1, d, JSON_OBJECT('t', t)), 'odd \"name\\\\ü', dt, 'ts', ts, 'b', b, 'vb', vb, 'bi', bi, 'bt', bt, 'tb', tb, 'lb', lb), CAST(de AS JSON) FROM made",
	`INSERT INTO docs (id, n, doc, other) VALUES ('plain', 1, '{"de": 1.5, "list": [1, "2020-02-29", {"t": "-12:30:00.500000"}], "odd": "base64:type252:YQ==", "e": 1e100, "n": null, "f": false}', NULL), ('whole', 2, JSON_ARRAY(CAST(12 AS DECIMAL(10,0)), CAST(1.50 AS DECIMAL(5,2)), 12, 1.5e0), CAST(CAST('2020-02-29' AS DATE) AS JSON)), ('zero', 3, JSON_ARRAY(CAST('10:00:00' AS TIME)), CAST('"2020-02-29"' AS JSON))`,
	"CREATE TABLE keyless (doc JSON)", "INSERT INTO keyless VALUES (JSON_ARRAY(CAST(1.50 AS DECIMAL(5,2))))",
}

// typesOf asks for everything in the documents, with its type.
func typesOf(t *testing.T, node *sandbox.Node) string {
	s := stream(t, node)
	exec(t, s, "SET NAMES utf8mb4", "USE j")
	q := "SELECT id, n, doc, other, JSON_TYPE(other), changed"
	for _, path := range []string{"$.de", "$.list[0]", "$.list[1]", "$.list[2].t", `$."odd \"name\\ü"`, "$.ts", "$.b", "$.vb", "$.bi", "$.bt", "$.tb", "$.lb", "$[0]", "$[1]", "$[2]", "$[3]", "$.odd"} {
		q += fmt.Sprintf(", JSON_TYPE(JSON_EXTRACT(doc, '%s'))", strings.ReplaceAll(path, `\`, `\\`))
	}
	return strings.ReplaceAll(ask(t, s, q+" FROM docs ORDER BY id, n"), "eHh4\ne", `eHh4\ne`) // 5.7 breaks bytes into lines
}

// testTypes: values in JSON documents come back with their types, and the backup says how many there are.
func testTypes(t *testing.T, nodes map[string]*sandbox.Node) {
	for from, source := range nodes {
		if strings.HasPrefix(from, "mariadb") { // its JSON is text
			continue
		}
		exec(t, stream(t, source), typed...)
		r, want := takeBackup(t, source, "j"), typesOf(t, source)
		m, err := r.Manifest(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(m.Header.Notes, "\n")
		m.Close()
		for _, said := range []string{"BIT 2", "BLOB 10", "DATE 3", "DATETIME 2", "DECIMAL 6", "TIME 3", "`j`.`keyless` hold 1 value "} {
			if !strings.Contains(notes, said) {
				t.Errorf("%s: no %q in %s", from, said, notes)
			}
		}
		exec(t, stream(t, source), "DROP DATABASE j")
		for into, node := range nodes {
			t.Run(from+" to "+into, func(t *testing.T) {
				res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Tables: []string{"j.docs"}})
				if err != nil {
					t.Errorf("%v: %+v", err, res.Different)
				}
				if got := typesOf(t, node); !strings.HasPrefix(into, "mariadb") && got != want {
					t.Error(differ(want, got))
				}
				exec(t, stream(t, node), "DROP DATABASE j")
			})
			if t.Failed() {
				return
			}
		}
	}
}
