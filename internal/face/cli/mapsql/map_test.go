package mapsql

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func runMap(t *testing.T, in string, args ...string) (out, said string, err error) {
	t.Helper()
	var b, e bytes.Buffer
	cmd := New(screen.Streams{In: strings.NewReader(in), Out: &b, Err: &e})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return b.String(), e.String(), err
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{""}, {"SELECT 1", "--output", "text"}, {"--faults", "--output", "svg"}, {"SELECT 1", "--schema", "x"}, {"SELECT 1", "--tiles", "https://h/{z}/{x}/{y}.png"},
		{"SELECT 1", "-o", "html", "--tiles", "https://h/x.png"}, {"SELECT 1", "-o", "html", "--tiles", "https://h'; script-src *;/{z}/{x}/{y}"}, {"SELECT 1", "--max-rows", "0"}, {"SELECT 1", "--bytes", "many"}, {"SELECT 1", "SELECT 2"}} {
		if _, _, err := runMap(t, "", append(args, "--dsn", "127.0.0.1:1")...); fault.Code(err) != fault.Usage {
			t.Errorf("%v: got %v; want wrong use", args, err)
		}
	}
}

// TestForms: a statement, from the command line or from standard input, in each form, and in the server's own sql_mode.
func TestForms(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb", "sql_mode=ANSI_QUOTES")
	const statement = `SELECT "n", "g" FROM (SELECT 'A "place"' AS n, POINT(13, 52) AS g) AS t`
	for form, want := range map[string]string{"geojson": `"coordinates":[13,52]`, "json": `"n":"A \"place\""`, "kml": "<coordinates>13,52</coordinates>", "svg": "<circle", "html": "A &#34;place&#34;"} {
		out, _, err := runMap(t, "", statement, "--dsn", n.DSN, "-o", form)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: got %v and\n%.3000s\nwant %q", form, err, out, want)
		}
	}
	out, said, err := runMap(t, statement+";\n", "--dsn", n.DSN)
	if err != nil || !json.Valid([]byte(out)) || !strings.Contains(said, "SRID 0") {
		t.Errorf("from standard input: got %v, %s and %q; want GeoJSON, and what was assumed", err, out, said)
	}
	if _, _, err := runMap(t, "", "DELETE FROM t", "--dsn", n.DSN); fault.Code(err) != fault.Failed {
		t.Errorf("a DELETE: got %v; want a failure", err)
	}
	out, _, err = runMap(t, "", "--faults", "--dsn", n.DSN, "-o", "json")
	if err != nil || !strings.Contains(out, `"findings": []`) {
		t.Errorf("--faults of a server without geometry: got %v and %s; want no findings", err, out)
	}
}
