package scenario_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// samples are the folders of published schemas, as script/setup fetches them: each holds files that a server's own client loads, in the
// order of their names. RISSO_SAMPLES names another folder of such, for a search by hand.
func samples(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("RISSO_SAMPLES")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "risso", "samples")
	}
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		lack.Of(t, "no published samples in "+dir+": run script/setup --only tests")
	}
	return list
}

// programs are called for their answers, in samples that have some.
var programs = map[string][]string{
	"sakila": {
		"SET @n = 0; CALL film_in_stock(1, 1, @n); SELECT @n", "SET @n = 0; CALL film_not_in_stock(2, 2, @n); SELECT @n",
		"SELECT get_customer_balance(7, '2005-09-01 00:00:00'), inventory_in_stock(9), inventory_held_by_customer(9)", "SET @n = 0; CALL rewards_report(1, 10.00, @n); SELECT @n",
		"START TRANSACTION; DELETE FROM payment WHERE payment_id = 16000; INSERT INTO payment (payment_id, customer_id, staff_id, amount, payment_date) VALUES (16000, 1, 1, 2.99, '2000-01-01'); SELECT payment_date > '2020-01-01' FROM payment WHERE payment_id = 16000; ROLLBACK",
		"SELECT title FROM film_text WHERE MATCH (title, description) AGAINST ('dinosaur') ORDER BY 1",
	},
	"employees": {"SELECT emp_name(10001), emp_dept_name(10005), current_manager('d009')", "CALL show_departments()"},
}

// journey is a server with the samples, what its client said about them, and a backup.
type journey struct {
	kind, place string
	node        *sandbox.Node
	shown       map[string]picture // of each schema
	defined     map[string]picture // the same as SHOW CREATE prints it
}

// TestPublishedSamples takes published schemas from each kind of server to each other one, and has the servers' own clients compare them: rows,
// columns, indexes, keys, partitions, views, programs and what they answer.
func TestPublishedSamples(t *testing.T) {
	t.Parallel()
	list, chosen := samples(t), kinds
	if some := os.Getenv("RISSO_TRIPS"); some != "" {
		chosen = strings.Split(some, ",")
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	from := map[string]*journey{}
	for _, kind := range chosen {
		if _, err := sandboxtest.Find(t.Context(), kind); err != nil {
			t.Run(kind, func(t *testing.T) { sandboxtest.Need(t, kind) })
			continue
		}
		wait.Go(func() {
			// What a server sets for a schema without options is not tested.
			j := &journey{kind: kind, place: filepath.Join(tempDir(t), "place"), node: single(t, kind, "local_infile=1", "log_bin_trust_function_creators=1", "event_scheduler=OFF", "character_set_server=utf8mb4", "collation_server=utf8mb4_unicode_ci", "loose_information_schema_stats_expiry=0")}
			j.begin(t, list)
			mu.Lock()
			defer mu.Unlock()
			from[kind] = j
		})
	}
	wait.Wait()
	for into, target := range from {
		t.Run("into "+into, func(t *testing.T) {
			t.Parallel()
			for _, kind := range slices.Sorted(maps.Keys(from)) {
				t.Run("from "+kind, func(t *testing.T) { from[kind].arrives(t, target) })
			}
		})
	}
}

// begin loads the samples, looks at them, takes a backup and removes them.
func (j *journey) begin(t *testing.T, list []string) {
	t.Helper()
	for _, dir := range list {
		name := filepath.Base(dir)
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			// Samples know their schema, or go to one of their folder's name. What a server does not know is not tested on it.
			_, err = tryClient(t, j.node, "", "CREATE DATABASE IF NOT EXISTS "+backticked(name)+";\nUSE "+backticked(name)+";\n"+string(b), "--force")
			if err != nil && os.Getenv("RISSO_SAMPLES") == "" {
				t.Errorf("%s: %s: %v", j.kind, path, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	j.shown, j.defined = j.look(t)
	for name, p := range j.shown {
		t.Logf("%s: %s: %d things", j.kind, name, len(p))
	}
	r := runProgram(t, binary, "backup", "--dsn", j.node.DSN, "--to", j.place, "--no-users")
	if r.code != 0 {
		t.Errorf("%s: exit code %d; it said %s; want 0", j.kind, r.code, r.err)
	}
	j.clear(t)
}

// look asks the server's client for all schemas.
func (j *journey) look(t *testing.T) (shown, defined map[string]picture) {
	t.Helper()
	shown, defined = map[string]picture{}, map[string]picture{}
	for row := range strings.Lines(client(t, j.node, "", "SHOW DATABASES")) {
		name := fields(row)[0]
		if slices.Contains([]string{"information_schema", "mysql", "performance_schema", "sys"}, name) {
			continue
		}
		p := takePicture(t, j.node, name)
		for i, answer := range askAll(t, j.node, name, programs[name]) {
			p["answer of "+programs[name][i]] = answer
		}
		shown[name], defined[name] = p, definitions(t, j.node, name, p)
	}
	return shown, defined
}

func (j *journey) clear(t *testing.T) {
	t.Helper()
	for name := range j.shown {
		client(t, j.node, "", "SET foreign_key_checks = 0; DROP DATABASE IF EXISTS "+backticked(name))
	}
}

// newCollation is one that older servers, or those of the other flavour, do not have.
var newCollation = regexp.MustCompile(`\b(?:utf8mb4|utf8mb3)_(?:0900|uca1400)_\w+`)

// excused reports whether a difference is none of the restore's: views without ORDER BY in GROUP_CONCAT answer as a server likes, and a
// collation that the target does not have became another one, which the restore has reported.
func excused(difference, told string) bool {
	if strings.HasPrefix(difference, "rows of view ") {
		return true
	}
	c := newCollation.FindString(difference)
	return c != "" && strings.Contains(told, "collation "+c+" is not known here")
}

// isNamed reports whether a restore named the thing that a difference is about: the rest is lost silently.
func isNamed(named, schema, difference string) bool {
	key, _, _ := strings.Cut(difference, ":\n")
	for _, kind := range []string{"rows of view ", "rows of ", "view column ", "answer of ", "table ", "column ", "index ", "key ", "rule ", "partition ", "view ", "trigger ", "routine PROCEDURE.", "routine FUNCTION.", "parameter ", "event "} {
		if rest, ok := strings.CutPrefix(key, kind); ok {
			for i := range len(rest) + 1 { // names may have dots
				if (i == len(rest) || rest[i] == '.') && strings.Contains(named, backticked(schema)+"."+backticked(rest[:i])) {
					return true
				}
			}
			return false
		}
	}
	return false
}

// arrives restores the journey's backup into another server and compares.
func (j *journey) arrives(t *testing.T, into *journey) {
	r := runProgram(t, binary, "restore", "--from", j.place, "--into", into.node.DSN, "-o", "json", "--skip-incompatible")
	var a struct {
		Plan   load.Plan
		Result load.Result
	}
	if err := json.Unmarshal([]byte(r.out), &a); err != nil {
		t.Fatalf("exit code %d, %v: %s", r.code, err, r.err)
	}
	if r.code != 0 && (os.Getenv("RISSO_SAMPLES") == "" || len(a.Result.LeftOut) == 0) {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	for _, f := range a.Result.LeftOut {
		t.Logf("left out: %s: %s", f.What, f.Why)
	}
	told := ""
	for _, f := range a.Result.Otherwise {
		told += f.Why + "\n"
		t.Logf("otherwise: %s: %s: %s", f.What, f.Why, f.Mapped)
	}
	named := ""
	for _, f := range slices.Concat(a.Result.LeftOut, a.Result.Otherwise) {
		named += f.What + "\n"
	}
	for _, n := range a.Result.Notes {
		named += n + "\n"
		t.Logf("note: %s", n)
	}
	shown, defined := into.look(t)
	for name, want := range j.shown {
		for _, d := range want.differences(shown[name]) {
			if j.kind != into.kind && excused(d, told) || os.Getenv("RISSO_SAMPLES") != "" && isNamed(named, name, d) {
				t.Logf("%s: %s", name, d)
				continue
			}
			t.Errorf("%s: %s", name, d)
		}
		if j.kind == into.kind {
			for _, d := range j.defined[name].differences(defined[name]) {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	(&journey{node: into.node, shown: shown}).clear(t)
}
