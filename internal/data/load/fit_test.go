package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox"
)

// foreign are tables of which some other server knows all but a clause, with what is reported about it there. A clause that means the same under
// another word is not reported.
var foreign = map[string][]struct {
	name, create, insert, columns string
	said                          map[string]string // by the server that gets it
}{
	"mariadb": {
		{"defaults", "(id INT PRIMARY KEY, u CHAR(36) DEFAULT uuid(), c VARCHAR(20) NOT NULL DEFAULT JSON_COMPACT('[1]'), n INT DEFAULT 7)", "VALUES (1, 'u', 'c', 1)", "id, u, c, n", map[string]string{
			"mysql-9.7": "`u` DEFAULT uuid() … DEFAULT (uuid()); `c` DEFAULT json_compact('[1]') … the same without it", "mysql-8.0": "`u` DEFAULT uuid() … DEFAULT (uuid()); `c` DEFAULT json_compact('[1]') … the same without it", "mysql-5.7": "`u` DEFAULT uuid() … the same without it; `c` DEFAULT json_compact('[1]') … the same without it"}},
		{"ignored", "(id INT PRIMARY KEY, a INT, KEY k (a) IGNORED, KEY (id, a))", "VALUES (1, 2)", "id, a", map[string]string{"mysql-5.7": "INVISIBLE … the same without it"}},
		{"invisible", "(id INT PRIMARY KEY, a INT INVISIBLE)", "(id, a) VALUES (1, 2)", "id, a", map[string]string{"mysql-8.0": "`a` INVISIBLE … the same without it", "mysql-5.7": "`a` INVISIBLE … the same without it"}},
		{"versioned", "(id INT PRIMARY KEY, a VARCHAR(9)) WITH SYSTEM VERSIONING", "VALUES (1, 'now')", "id, a", map[string]string{"*": "WITH SYSTEM VERSIONING … current rows only"}},
		{"ordered", "(id INT PRIMARY KEY, a VARCHAR(9), s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)",
			"(id, a) VALUES (1, 'now')", "id, a", map[string]string{"*": "WITH SYSTEM VERSIONING … current rows only; PARTITION BY … the table in one piece"}},
		{"types", "(id INT PRIMARY KEY, u UUID, i INET6, f INET4)", "VALUES (1, '6ccd780c-baba-1026-9564-5b8c656024db', '2001:db8::1', '10.0.0.1')", "id, u, i, f", map[string]string{"*": "`u` uuid … char(36); `i` inet6 … varchar(39); `f` inet4 … varchar(15)"}},
		{"period", "(id INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (id), UNIQUE KEY u (id, p WITHOUT OVERLAPS))", "VALUES (1, '2020-01-01', '2021-01-01')", "id, s, e", map[string]string{"*": "PERIOD FOR `p` (`s`, `e`) … the same without it; UNIQUE KEY `u` (`id`,`p` WITHOUT OVERLAPS) … the same without it"}},
		{"generated", "(id INT PRIMARY KEY, a INT, g VARCHAR(9) AS (JSON_COMPACT(CONCAT('[', a, ']'))) STORED, KEY (g), KEY (a))", "(id, a) VALUES (1, 65)", "id, a", map[string]string{"*": "`g` GENERATED ALWAYS AS (json_compact(concat('[',`a`,']'))) STORED … the table without this column"}},
		{"checked", "(id INT PRIMARY KEY, a VARCHAR(20) CHECK (JSON_COMPACT('[1]') <> a), CONSTRAINT c CHECK (a <> JSON_COMPACT('[2]')))", "VALUES (1, 'x')", "id, a", map[string]string{"mysql-5.7": "CHECK … the same without it", "mysql-8.0": "CHECK … the same without it", "*": "`a` CHECK (json_compact('[1]') <> `a`) … the same without it; CONSTRAINT `c` CHECK (`a` <> json_compact('[2]')) … the same without it"}},
		{"stored", "(id INT PRIMARY KEY) PAGE_COMPRESSED=1", "VALUES (1)", "id", map[string]string{"*": "`PAGE_COMPRESSED`='1' … the same without it"}},
		{"texts", "(id INT PRIMARY KEY, a TEXT DEFAULT 'it''s', b BLOB NOT NULL DEFAULT '')", "(id) VALUES (1)", "id, a, b", map[string]string{"mysql-5.7": "`a` DEFAULT ('it\\'s') … the same without it; `b` DEFAULT ('') … the same without it"}},
		{"compressed", "(id INT PRIMARY KEY, a VARCHAR(100) COMPRESSED NOT NULL DEFAULT 'x')", "(id) VALUES (1)", "id, a", map[string]string{"*": "`a` COMPRESSED … the same without it"}},
		{"parted", "(id INT) ENGINE=MyISAM PARTITION BY HASH (id) PARTITIONS 2", "VALUES (1)", "id", map[string]string{"mysql-5.7": "", "*": "PARTITION BY with the engine MyISAM … the table in one piece"}},
		{"unseen", "(id INT PRIMARY KEY, g INT AS (id + 1) VIRTUAL INVISIBLE)", "(id) VALUES (1)", "id, g", map[string]string{"mysql-9.7": "", "*": "`g` GENERATED ALWAYS AS (`id` + 1) VIRTUAL INVISIBLE … the same without INVISIBLE"}},
		{"overlapping", "(id INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))", "VALUES (1, '2020-01-01', '2021-01-01')", "id, s, e", map[string]string{"*": "PRIMARY KEY (`id`,`p` WITHOUT OVERLAPS) … the same without it"}},
		{"falling", "(id INT PRIMARY KEY, a INT, KEY (a DESC))", "VALUES (1, 2)", "id, a", map[string]string{"mysql-5.7": "DESC … the same without it"}},
		{"floating", "(id DOUBLE AUTO_INCREMENT PRIMARY KEY)", "VALUES (1)", "id", map[string]string{"mysql-9.7": "`id` AUTO_INCREMENT … the same without it"}},
		{"wide", "(id INT PRIMARY KEY, b TEXT, UNIQUE KEY u (b))", "VALUES (1, 'x')", "id, b", map[string]string{"*": "UNIQUE KEY `u` (`b`) USING HASH … the same without it"}},
	},
	"mysql-9.7": {
		{"collection", "(id INT PRIMARY KEY, g GEOMCOLLECTION)", "VALUES (1, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))'))", "id, ST_AsText(g)", map[string]string{"mysql-5.7": "`g` geomcollection … geometrycollection", "mariadb": "`g` geomcollection … geometrycollection"}},
		{"functional", "(id INT PRIMARY KEY, a VARCHAR(9), KEY k ((UPPER(a))), KEY (a))", "VALUES (1, 'x')", "id, a", map[string]string{"mariadb": "KEY `k` ((upper(`a`))) … the same without it", "mysql-5.7": "KEY `k` ((upper(`a`))) … the same without it", "mysql-8.0": ""}},
		{"hidden", "(id INT PRIMARY KEY, a INT INVISIBLE, KEY k (a) INVISIBLE)", "(id, a) VALUES (1, 2)", "id, a", map[string]string{"mysql-5.7": "INVISIBLE … the same without it", "mysql-8.0": "INVISIBLE, in 1 of 2 places, … the same without it"}},
		{"parsed", "(id INT PRIMARY KEY, a TEXT, FULLTEXT KEY f (a) WITH PARSER ngram)", "VALUES (1, 'x')", "id, a", map[string]string{"mariadb": "WITH PARSER ngram … the same without it"}},
		{"squeezed", "(id INT PRIMARY KEY) COMPRESSION='zlib'", "VALUES (1)", "id", map[string]string{"mariadb": "COMPRESSION='zlib' … the same without it"}},
		{"packed", "(id INT PRIMARY KEY) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", "VALUES (1)", "id", map[string]string{}},
		{"vectors", "(id INT PRIMARY KEY, v VECTOR(3))", "VALUES (1, TO_VECTOR('[1,2,3]'))", "id, HEX(v)", map[string]string{"*": "`v` vector(3) … varbinary(12)", "mariadb-11.8": ""}},
		{"required", "(id INT PRIMARY KEY, a INT, g INT AS (a + 1) STORED NOT NULL, KEY (g))", "(id, a) VALUES (1, 2)", "id, a, g", map[string]string{"mariadb": "`g` GENERATED ALWAYS AS ((`a` + 1)) STORED NOT NULL … the same without NOT NULL"}},
		{"sized", "(id INT PRIMARY KEY) AUTOEXTEND_SIZE=4M", "VALUES (1)", "id", map[string]string{"*": "AUTOEXTEND_SIZE … the same without it"}},
		{"expressed", "(id INT PRIMARY KEY, u BINARY(16) DEFAULT (UUID_TO_BIN(UUID())))", "VALUES (1, 'x')", "id, HEX(u)", map[string]string{"mariadb": "DEFAULT (uuid_to_bin(uuid())) … the same without it", "mysql-5.7": "DEFAULT (uuid_to_bin(uuid())) … the same without it"}},
	},
}

// testForeign: where only a clause is foreign the rows come without it, and the plan and the result name it.
func testForeign(t *testing.T, nodes map[string]*sandbox.Node) {
	for from, tables := range foreign {
		source := nodes[from]
		if source == nil {
			continue
		}
		s := stream(t, source)
		exec(t, s, "CREATE DATABASE f CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "USE f")
		for _, c := range tables {
			exec(t, s, "CREATE TABLE "+c.name+" "+c.create, "INSERT INTO "+c.name+" "+c.insert)
		}
		if from == "mariadb" {
			exec(t, s, "UPDATE versioned SET a = 'later'", "UPDATE ordered SET a = 'later'", "INSERT INTO versioned VALUES (2, NULL)", "DELETE FROM versioned WHERE id = 2")
		}
		want := map[string]string{}
		for _, c := range tables {
			want[c.name] = ask(t, s, "SELECT "+c.columns+" FROM "+c.name)
		}
		r := takeBackup(t, source, "f")
		exec(t, s, "DROP DATABASE f")
		for into, node := range nodes {
			t.Run(from+" to "+into, func(t *testing.T) {
				var plan load.Plan
				res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Confirm: func(p load.Plan) error { plan = p; return nil }})
				if err != nil {
					var no *load.Incompatible
					errors.As(err, &no)
					t.Fatalf("%v: %+v, %+v, %+v", err, res.Different, res.LeftOut, no)
				}
				to := stream(t, node)
				defer exec(t, to, "DROP DATABASE f")
				for _, c := range tables {
					if got := ask(t, to, "SELECT "+c.columns+" FROM f."+c.name); got != want[c.name] {
						t.Errorf("%s: got %q for %q, want want[c.name]", c.name, got, want[c.name])
					}
					var said []string
					for _, f := range res.Otherwise {
						if f.What == "table `f`.`"+c.name+"`" && strings.HasSuffix(f.Why, " is not known here") {
							said = append(said, strings.TrimSuffix(f.Why, " is not known here")+" … "+f.Mapped)
						}
						if !slices.Contains(plan.Findings, f) {
							t.Errorf("not in the plan: %+v", f)
						}
					}
					expected, ok := c.said[into]
					if kin, _, found := strings.Cut(into, "-1"); !ok && found { // for a newer MariaDB as for the older one
						if expected, ok = c.said[kin]; kin == from {
							expected, ok = "", true
						}
					}
					if !ok && into != from {
						expected = c.said["*"]
					}
					if got := strings.Join(said, "; "); !strings.Contains(got, expected) || expected == "" && got != "" {
						t.Errorf("%s: %q is said, not %q", c.name, got, expected)
					}
				}
			})
		}
	}
}
