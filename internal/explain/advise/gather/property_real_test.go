package gather_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// madeTable is a generated table.
type madeTable struct {
	name   string
	unique [][]string // columns of its unique indexes without prefixes
	refs   []string   // columns that refer to the parent's id
}

// generated are statements that make tables with indexes of all kinds, and foreign keys between them: the same for the same numbers.
func generated(r *rand.Rand, n int, descending bool) (statements []string, tables []madeTable) {
	columns := []string{"a", "b", "c", "d"} // a, b: int; c: varchar; d: int
	for i := range n {
		t := madeTable{name: fmt.Sprintf("t%d", i)}
		parts := []string{"id INT NOT NULL", "a INT NOT NULL", "b INT", "c VARCHAR(20) NOT NULL DEFAULT ''", "d INT"}
		keyed := r.IntN(5) > 0
		switch {
		case !keyed:
		case r.IntN(3) > 0:
			parts = append(parts, "PRIMARY KEY (id)")
			t.unique = append(t.unique, []string{"id"})
		default:
			parts = append(parts, "PRIMARY KEY (id, a)")
			t.unique = append(t.unique, []string{"id", "a"})
		}
		parts = append(parts, "UNIQUE KEY for_children (id)")
		t.unique = append(t.unique, []string{"id"})
		for k := range 1 + r.IntN(6) {
			var list []string
			var plain []string
			perm := r.Perm(len(columns))
			for _, x := range perm[:1+r.IntN(3)] {
				text := columns[x]
				if columns[x] == "c" && r.IntN(2) == 0 {
					text = fmt.Sprintf("c(%d)", 3+r.IntN(6))
				} else {
					plain = append(plain, columns[x])
				}
				if descending && r.IntN(6) == 0 {
					text += " DESC"
				}
				list = append(list, text)
			}
			if r.IntN(4) == 0 {
				list, plain = append(list, "id"), append(plain, "id")
			}
			kind := "KEY"
			if r.IntN(4) == 0 && (len(plain) == len(list)) && slices.Contains(plain, "id") {
				kind = "UNIQUE KEY"
				t.unique = append(t.unique, plain)
			}
			parts = append(parts, fmt.Sprintf("%s `k %d` (%s)", kind, k, strings.Join(list, ", ")))
			if r.IntN(5) == 0 { // once more
				parts = append(parts, fmt.Sprintf("%s `again %d` (%s)", kind, k, strings.Join(list, ", ")))
			}
		}
		for f := range r.IntN(3) {
			if i == 0 {
				break
			}
			column := []string{"a", "b", "d"}[r.IntN(3)]
			if slices.Contains(t.refs, column) {
				continue
			}
			t.refs = append(t.refs, column)
			parts = append(parts, fmt.Sprintf("CONSTRAINT f_%d_%d FOREIGN KEY (%s) REFERENCES g.t%d (id)", i, f, column, r.IntN(i)))
		}
		tables = append(tables, t)
		statements = append(statements, "CREATE TABLE g."+t.name+" ("+strings.Join(parts, ", ")+") ENGINE=InnoDB")
		var rows []string
		for id := 1; id <= 40; id++ {
			rows = append(rows, fmt.Sprintf("(%d, %d, %d, 'text %d', %d)", id, 1+id%20, 1+id%7, id%11, 1+id%3))
		}
		statements = append(statements, "INSERT INTO g."+t.name+" (id, a, b, c, d) VALUES "+strings.Join(rows, ", "))
	}
	return statements, tables
}

// TestAllTogether: on generated schemas, whatever advise says done in any order never fails, no foreign key and no unique rule is lost, and
// answers stay as they were.
func TestAllTogether(t *testing.T) {
	for i, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			seed := uint64(20261127 + i)
			r := rand.New(rand.NewPCG(seed, 1))
			statements, tables := generated(r, 40, i != 3)
			// MySQL 9.7.4 refuses some rows whose parents are there (error 1452, by its own checks in place of InnoDB's): all rows have theirs.
			run(t, c, "CREATE DATABASE g", "SET SESSION foreign_key_checks = 0")
			run(t, c, statements...)
			run(t, c, "SET SESSION foreign_key_checks = 1")
			before, rules := answers(t, c, tables), rulesOf(t, c, tables)
			list := ofGenerated(t, node)
			if len(list) < 40 {
				t.Errorf("only %d findings; want 40 or more, else nothing is tried", len(list))
			}
			compareOthers(t, node, c, list)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			done := 0
			for _, f := range list {
				if f.Statement == "" {
					continue
				}
				if err := c.Exec(t.Context(), f.Statement); err != nil {
					t.Errorf("seed %d: %s %s: %s: %v", seed, f.ID, f.Object, f.Statement, err)
				}
				done++
			}
			if after := answers(t, c, tables); !slices.Equal(before, after) {
				t.Errorf("seed %d: answers changed by %d statements", seed, done)
			}
			if after := rulesOf(t, c, tables); !slices.Equal(rules, after) {
				t.Errorf("seed %d: rules were lost:\n%q\nbefore\n%q", seed, after, rules)
			}
			for _, f := range ofGenerated(t, node) {
				if f.ID == "index.redundant" || f.ID == "schema.no_pk" {
					t.Errorf("seed %d: after all: %s %s: %s", seed, f.ID, f.Object, f.What)
				}
			}
		})
	}
}

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// answers are what statements with an order say.
func answers(t *testing.T, c *mysql.Conn, tables []madeTable) (out []string) {
	t.Helper()
	for _, x := range tables {
		for _, q := range []string{"SELECT id, a, b, c, d FROM g.%s ORDER BY id, a, b, c, d", "SELECT b, COUNT(*), MAX(c) FROM g.%s WHERE a > 3 GROUP BY b ORDER BY b", "SELECT id FROM g.%s WHERE c LIKE 'text 1%%' AND d = 2 ORDER BY c DESC, id"} {
			rows, err := c.Maps(t.Context(), fmt.Sprintf(q, x.name))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(rows))
		}
	}
	return out
}

// rulesOf tries to break each rule, and says which hold.
func rulesOf(t *testing.T, c *mysql.Conn, tables []madeTable) (out []string) {
	t.Helper()
	next := 1000
	for _, x := range tables {
		run(t, c, "SET SESSION foreign_key_checks = 0")
		for _, u := range x.unique {
			values := map[string]string{"id": "0", "a": "5", "b": "5", "c": "'new'", "d": "2"}
			next++
			values["id"] = fmt.Sprint(next)
			for _, column := range u { // as in a row that is there
				values[column] = map[string]string{"id": "7", "a": "8", "b": "1", "c": "'text 7'", "d": "2"}[column]
			}
			err := c.Exec(t.Context(), fmt.Sprintf("INSERT INTO g.%s (id, a, b, c, d) VALUES (%s, %s, %s, %s, %s)", x.name, values["id"], values["a"], values["b"], values["c"], values["d"]))
			out = append(out, fmt.Sprintf("%s unique %v: %d", x.name, u, mysql.ErrorNumber(err)))
			if err == nil {
				t.Fatalf("%s: the row that breaks %v was taken", x.name, u)
			}
		}
		run(t, c, "SET SESSION foreign_key_checks = 1")
		for _, column := range x.refs {
			err := c.Exec(t.Context(), fmt.Sprintf("UPDATE g.%s SET %s = 999999 WHERE id = 7", x.name, column))
			out = append(out, fmt.Sprintf("%s refers by %s: %d", x.name, column, mysql.ErrorNumber(err)))
			if err == nil {
				t.Fatalf("%s: a row without its parent by %s was taken", x.name, column)
			}
		}
	}
	return out
}

func ofGenerated(t *testing.T, node *sandbox.Node) []advise.Finding {
	t.Helper()
	choice, err := pattern.NewChoice([]string{"g"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gather.Look(t.Context(), sandboxtest.Target(t, node), gather.Options{Choice: choice, Wanted: func(id string) bool {
		return strings.HasPrefix(id, "index.") || strings.HasPrefix(id, "schema.") || strings.HasPrefix(id, "fk.")
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a.Findings
}

var ptDrop = regexp.MustCompile("(?m)^ALTER TABLE `g`.`([^`]+)` DROP INDEX `([^`]+)`")

// compareOthers: what pt-duplicate-key-checker and sys.schema_redundant_indexes find is found, unless it is wrong in a way that docs/advise.md lists.
func compareOthers(t *testing.T, node *sandbox.Node, c *mysql.Conn, list []advise.Finding) {
	t.Helper()
	theirs := map[string]string{}
	if program, err := exec.LookPath("pt-duplicate-key-checker"); err == nil {
		out, err := exec.Command(program, "--no-version-check", "--databases", "g", "--key-types", "k", "--socket", c.Server.Socket, "--user", "root", "--defaults-file", "/dev/null").CombinedOutput()
		if err != nil {
			t.Logf("pt-duplicate-key-checker: %v\n%s", err, out)
		}
		for _, m := range ptDrop.FindAllStringSubmatch(string(out), -1) {
			theirs["g."+m[1]+"."+m[2]] += " pt"
		}
	}
	rows, err := c.Maps(t.Context(), "SELECT table_name AS t, redundant_index_name AS i FROM sys.schema_redundant_indexes WHERE table_schema = 'g'")
	if err != nil {
		t.Log(err)
	}
	for _, r := range rows {
		theirs["g."+r["t"]+"."+r["i"]] += " sys"
	}
	if len(theirs) == 0 {
		t.Error("the other programs find nothing")
	}
	ours := map[string]bool{}
	for _, f := range list {
		if f.ID == "index.redundant" {
			ours[f.Object] = true
		}
	}
	both, faults := 0, map[string]int{}
	for object, by := range theirs {
		if ours[object] {
			both++
			continue
		}
		table, index := object[:strings.LastIndexByte(object, '.')], object[strings.LastIndexByte(object, '.')+1:]
		if slices.ContainsFunc(list, func(f advise.Finding) bool {
			return f.ID == "index.redundant" && strings.HasPrefix(f.Object, table+".") && strings.Contains(f.Evidence[1], "`"+index+"`")
		}) { // of two alike, the other one
			both++
			continue
		}
		rows, _ := c.Maps(t.Context(), "SHOW CREATE TABLE "+table)
		if why := theirFault(rows[0]["Create Table"], index); why != "" {
			faults[why]++
			continue
		}
		t.Errorf("%s finds %s, advise does not:\n%s", by, object, rows[0]["Create Table"])
	}
	t.Logf("what they say, and is wrong: %v", faults)
	t.Logf("%d of the %d that others find are found; %d in all", both, len(theirs), len(ours))
}

// theirFault says why another program is wrong to call an index redundant; "" if it is not. docs/advise.md lists the same.
func theirFault(create, index string) string {
	if index == "PRIMARY" {
		return "the primary key is dropped"
	}
	var own string
	var others []string
	for line := range strings.Lines(create) {
		if !strings.Contains(line, "KEY ") || strings.Contains(line, "CONSTRAINT") {
			continue
		}
		_, parts, _ := strings.Cut(line, "(")
		parts = strings.TrimSuffix(strings.TrimRight(parts, ",\n"), ")")
		if strings.Contains(line, "`"+index+"`") {
			own = parts
		} else {
			others = append(others, parts)
		}
	}
	first, _, _ := strings.Cut(strings.NewReplacer(" ", ",", "(", ",").Replace(own), ",")
	for _, o := range others {
		if strings.HasPrefix(o, first) && (strings.Contains(o+own, "DESC") || strings.Contains(o, "(")) {
			return "a prefix, or a direction, is overlooked"
		}
	}
	if strings.HasSuffix(own, "`id`") || strings.HasSuffix(own, "`id`,`a`") {
		return "an index that ends with the clustered one is made anew without it: InnoDB stores the same, and a unique one demands less than before"
	}
	return ""
}
