package scenario_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/rissodb/risso/internal/store/events"
)

// largeDigests is how many classes the large store of statements has: as many as a server with a raised performance_schema_digests_size.
const largeDigests = 20_000

// heaviest is the class with the longest samples and plans.
var heaviest = fmt.Sprintf("%016X%016X", 1000, 1000)

// largeStatements writes three weeks of two servers with many digests, up to the moment to.
func largeStatements(t *testing.T, dir string, to int64) {
	t.Helper()
	path := filepath.Join(dir, "events", "statements.duckdb")
	st, err := events.OpenEmbedded(t.Context(), path) // makes the tables
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("duckdb", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	hours := to / 3600 * 3600
	days := hours / 86400 * 86400
	from := days - 21*86400
	// Some classes run in each minute and hour, all of them each day; each with a dozen buckets.
	rows := func(table, instances string, begin, end, step, part int64) string {
		return fmt.Sprintf(`INSERT INTO risso_%s SELECT 'server' || i, t, k * 1000, 'schema' || (k %% 50), '', 1 + (k + t) %% 977, (k %% 101) * 0.37, 0, 10, k * 10, 0, 0, 0, 0, 0, 0, 0, 0.5,
 [60, 63, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
 FROM range(%d) AS a(i), range(%d, %d, %d) AS b(t), range(%d) AS c(k) WHERE (k + t // %d) %% %d = 0`, table, 2, begin, end, step, largeDigests, step, part)
	}
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO risso_classes SELECT k * 1000, printf('%%016X%%016X', k * 1000, k * 1000), '', 'select ' || repeat('column_of_a_long_list, ', 40) || k || ' from orders_' || k || ' where id = ?', 'SELECT', 'shop.orders_' || k FROM range(%d) AS c(k)`, largeDigests),
		fmt.Sprintf(`INSERT INTO risso_seen SELECT 'server' || i, k * 1000, md5('a' || k) || md5('b' || k), %d, %d FROM range(2) AS a(i), range(%d) AS c(k)`, from, to, largeDigests),
		rows("days", "2", from, days, 86400, 1), rows("hours", "2", from, hours, 3600, 40), rows("minutes", "2", to/60*60-6*3600, to/60*60, 60, 40),
		fmt.Sprintf(`INSERT INTO risso_readings SELECT 'server' || i, t FROM range(2) AS a(i), range(%d, %d, 60) AS b(t)`, from, to),
		fmt.Sprintf(`INSERT INTO risso_activity SELECT 'server' || i, t, (t %% 20000) * 1000, 'wait/' || (k %% 30), 'schema', 'user' || k, 'host' || k, 0, 1, 1 FROM range(2) AS a(i), range(%d, %d, 60) AS b(t), range(20) AS c(k)`, from, to/60*60),
		fmt.Sprintf(`INSERT INTO risso_samples SELECT 'server' || i, 1000, t, repeat('/* a long statement */ ', 10000), 1, '', '', '' FROM range(2) AS a(i), range(%d, %d, 360) AS b(t)`, to-6*3600, to),
		fmt.Sprintf(`INSERT INTO risso_plans SELECT 'server' || i, 1000, 'schema', 'plan' || k, %d, %d, 'explain', '{"query_block": {"select_id": 1, "x": "' || repeat('y', 200000) || '"}}' FROM range(2) AS a(i), range(50) AS b(k)`, from, to),
		fmt.Sprintf(`UPDATE risso_meta SET value = CASE name WHEN 'hours' THEN %d WHEN 'days' THEN %d ELSE value END`, hours, days),
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%.200s: %v", statement, err)
		}
	}
}

// largestOfStatements are the questions about statements that cost most.
func largestOfStatements(to int64) (list []string) {
	add := func(path string, form ...string) {
		v := url.Values{}
		for i := 0; i < len(form); i += 2 {
			v.Add(form[i], form[i+1])
		}
		list = append(list, path+"?"+v.Encode())
	}
	weeks, end, hours := fmt.Sprint(to-30*86400), fmt.Sprint(to), fmt.Sprint(to-20*3600)
	for _, order := range []string{"load", "p95"} {
		add("/api/queries", "from", weeks, "to", end, "limit", "500", "points", "200", "order", order)
		add("/api/queries", "from", hours, "to", end, "limit", "500", "points", "200", "order", order, "schema", "schema1", "schema", "schema2", "search", "a")
	}
	add("/api/queries", "from", weeks, "to", end, "limit", "500", "points", "200", "search", strings.Repeat("column_of_a_long_list, ", 8))
	add("/api/queries/compare", "from", weeks, "to", fmt.Sprint(to-7*86400), "from2", fmt.Sprint(to-7*86400), "to2", end, "limit", "500")
	add("/api/queries/schemas", "from", weeks, "to", end)
	for range 2 {
		add("/api/query", "id", heaviest, "from", weeks, "to", end, "points", "1500")
	}
	return list
}
