package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
)

// TestUnits: what each unit is worth.
func TestUnits(t *testing.T) {
	e := &digest.Event{QueryTime: 1, Attrs: []digest.Attr{number("Rows_sent", 1)}}
	for unit, seconds := range map[string]string{"us": "0.000001", "µs": "0.000001", "ms": "0.001", "s": "1", "m": "60", "min": "60", "h": "3600", "d": "86400"} {
		keeps(t, e, fmt.Sprintf("2%s * Query_time == 2 * %s", unit, seconds), true)
		keeps(t, e, fmt.Sprintf("Query_time == 1%s", unit), unit == "s")
		fails(t, fmt.Sprintf("Rows_sent > 1%s", unit), "is a time")
	}
	for unit, worth := range map[string]string{"k": "1000", "K": "1000", "M": "1000000", "G": "1000000000", "T": "1000000000000", "KiB": "1024", "MiB": "1048576", "GiB": "1073741824", "TiB": "1099511627776"} {
		keeps(t, e, fmt.Sprintf("3%s * Rows_sent == 3 * %s", unit, worth), true)
		fails(t, fmt.Sprintf("Query_time > 1%s", unit), "a count or a size")
	}
}

func keeps(t *testing.T, e *digest.Event, expr string, want bool) {
	t.Helper()
	f, err := Compile(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	if got := f.Keep(e); got != want || f.String() != expr {
		t.Errorf("%s: got %v, want %v", expr, got, want)
	}
}

func fails(t *testing.T, expr, want string) {
	t.Helper()
	_, err := Compile(expr)
	var fe *Error
	if !errors.As(err, &fe) || !strings.Contains(fe.Reason, want) {
		t.Errorf("%s: got %v, want %s", expr, err, want)
	}
}

// TestNames: each name that every event has, its synonyms, and of what kind it is.
func TestNames(t *testing.T) {
	e := event()
	e.Explain = []byte("id 1")
	for name, text := range map[string]string{"query": string(e.Query), "arg": string(e.Query), "db": "shop", "schema": "shop", "database": "shop", "user": "app_web", "host": "web1", "client": "web1", "ip": "10.0.0.7", "explain": "id 1", "verb": "UPDATE"} {
		keeps(t, e, fmt.Sprintf("%s == %q", strings.ToUpper(name), text), true)
		keeps(t, e, fmt.Sprintf("%s != %q", name, text), false)
		keeps(t, e, fmt.Sprintf("%s =~ \"^%s\"", name, text[:2]), true)
		keeps(t, e, name, true)
		keeps(t, &digest.Event{}, name, false)
		fails(t, name+" == 5", "cannot be compared with")
		fails(t, name+" + 1 > 0", "needs numbers")
		fails(t, "has("+name+")", "in every event")
	}
	for name, value := range map[string]string{"thread": "42", "thread_id": "42", "id": "42", "length": fmt.Sprint(len(e.Query)), "query_time": "0.25", "lock_time": "0.001"} {
		keeps(t, e, name+" == "+value, true)
		keeps(t, e, name, true)
		keeps(t, &digest.Event{}, name, false)
		fails(t, name+` == "x"`, "cannot be compared with")
	}
	for _, name := range []string{"query_time", "lock_time"} {
		keeps(t, &digest.Event{NoQueryTime: true, NoLockTime: true}, name+" == 0", false)
		keeps(t, &digest.Event{}, name+" == 0", true)
	}
	for _, name := range []string{"time", "ts", "timestamp"} {
		keeps(t, e, name+` == "2026-03-01 10:00:00"`, true)
		keeps(t, &digest.Event{}, name+` < "2026-03-01 10:00:00"`, false)
	}
	// Of each kind in the log: flags, times, numbers and texts.
	for _, c := range []struct {
		attr digest.Attr
		yes  []string
		no   []string
	}{
		{flag("QC_hit", true), []string{"QC_hit", "QC_Hit == yes", "yes == QC_hit", "@qc_hit", "has(QC_hit)"}, []string{"QC_hit == no", "not QC_hit"}}, {flag("Filesort", false), []string{"Filesort == no", "Filesort == false", "Filesort != true"}, []string{"Filesort", "Filesort == yes"}},
		{number("CPU_time", 2), []string{"CPU_time == 2s", "CPU_time < 1m", "CPU_time"}, []string{"CPU_time > 2000ms"}}, {number("Engine_time", 2), []string{"Engine_time == 2ms"}, []string{"Engine_time >= 1s"}}, {number("Pages_read_time", 2), []string{"Pages_read_time == 2ms"}, nil}, {number("Read_time", 2), []string{"Read_time == 2s"}, nil},
		{number("Rows_read", 0), []string{"Rows_read == 0", "has(Rows_read)"}, []string{"Rows_read", "@Rows_read"}},
		{number("Zows_read", 1), []string{"has(@zows_READ)"}, []string{"has(Rows_read)", "has(@Zows_reaz)", "has(@Zows_rea)"}},
		{digest.Attr{Name: "Start", Kind: digest.AttrText, Text: []byte("now")}, []string{`Start == "now"`, "Start", "@Start", `@Start == "now"`}, []string{`Start == "then"`, "@Start == 0", "@Start > 0"}}, {digest.Attr{Name: "End", Kind: digest.AttrText}, []string{"has(End)", `End == ""`}, []string{"End", "@End"}},
		{digest.Attr{Name: "Stored routine", Kind: digest.AttrText, Text: []byte("p")}, []string{`Stored_routine == "p"`, `stored_ROUTINE =~ "p"`}, []string{`@Stored == "p"`}}, {digest.Attr{Name: "Odd@name", Kind: digest.AttrText, Text: []byte("p")}, nil, []string{"has(@Odd_name)"}},
	} {
		e := &digest.Event{Attrs: []digest.Attr{number("Aaaaa", 1), c.attr}}
		for _, expr := range c.yes {
			keeps(t, e, expr, true)
		}
		for _, expr := range c.no {
			keeps(t, e, expr, false)
		}
	}
	for _, expr := range []string{"CPU_time > 5k", "Commit_delay_time == 1KiB", "-CPU_time > 1k"} {
		fails(t, expr, "a count or a size")
	}
	fails(t, `Start > 5`, "compares numbers")
	fails(t, `Start == 5`, "cannot be compared")
}

// TestArithmetic: signs, parentheses, ranks and kinds; what is not there makes nothing true.
func TestArithmetic(t *testing.T) {
	e := event()
	for expr, want := range map[string]bool{
		"7 - 2 - 1 == 4": true, "12 / 3 / 2 == 2": true, "2 * 3 + 4 * 5 == 26": true, "-(2 + 3) == -5": true, "--2 == 2": true, "-2 * -3 == 6": true, "2 - -3 == 5": true, "(1) == 1": true, "1.5e1 == 15": true, "1E+1 == 10": true, "1e-1 == 0.1": true, ".5 == 0.5": true, "-.5 < 0": true, "5. == 5": true, "1e3k == 1000000": true,
		"Query_time / Lock_time == 250": true, "Query_time / Query_time < 2k": true, "Rows_affected + 1 > 0": false, "1 + Rows_affected > 0": false, "0 > Rows_affected": false, "Rows_examined > Rows_affected": false, "-Rows_affected < 1": false, "Query_time * 2 == 500ms": true, "Query_time + 250ms == 500ms": true, "2 * Query_time == 500ms": true,
		"1 <> 2": true, "1 <> 1": false, "1 != 1": false, "1 <= 1": true, "1 >= 2": false, "2 > 1 && 1 < 2 || 1 > 2": true, "1 > 2 || 2 > 3": false, "NOT 1 > 2 AND 1 < 2": true, "!!(1 < 2)": true, "1 in (2, 1)": true, "1 in (2)": false, "1 not in (1, 2)": false, "3 not in (1, 2)": true, "thread in (40 + 2)": true, `"x" == "x"`: true, `"a" in ("b", "a")`: true,
		`db == 'shop' and user == "app_web"`: true, `query =~ "/\* a"`: true, `db == "sho" or db == "shop"`: true, `verb != "SELECT"`: true, `"update" == verb`: true, `verb !~ "^S"`: true, `user !~ "^x"`: true, `@Never !~ "x"`: false, `@Never == "x"`: false, `@Never != "x"`: false, `"shop" == db`: true, `db == host`: false, `db != host`: true,
		`time > "2026-03-01T09:59:59.999999"`: true, `time == "2026-03-01T12:00:00+02:00"`: true, `time <= "2026-03-01 10:00"`: true, `"2026-02-28" < time`: true, "time == time": true,
	} {
		keeps(t, e, expr, want)
	}
	for _, text := range []struct{ expr, want string }{
		{`"a\"b"`, `a"b`}, {`'a\'b'`, `a'b`}, {`"a\'b"`, `a\'b`}, {`"a\\"`, `a\\`}, {`"\\\""`, `\\"`}, {`"a\d"`, `a\d`}, {`'"'`, `"`}, {`""`, ``}, {`"é"`, `é`},
	} {
		keeps(t, &digest.Event{DB: []byte(text.want)}, "db == "+text.expr, true)
	}
	for expr, want := range map[string]string{
		"1 +": "the end", "(1 > 2": "never closed", "1 > 2)": "does not belong here", "1 ~ 2": "does not belong", "1 > > 2": "was expected", "time + 1 > 2": "needs numbers", "-time > 2": "- needs a number", "-db > 2": "- needs a number", "db + 1 > 2": "needs numbers", "1 + db > 2": "needs numbers", "@ > 1": "a name must follow @", "1.2.3 > 1": "is not a number", "1 > 1e": "not a unit",
		"yes": "a value alone", "yes == no": "compared with yes or no", "yes == 1": "compared with yes or no", "Rows_sent == yes": "compared with yes or no", "db == yes": "compared with yes or no", "5 =~ 5": "pattern in quotes", `"x" =~ "x"`: "a pattern matches text", `time =~ "x"`: "a pattern matches text", "time == 5": "time in quotes", "time == db": "time in quotes", "verb == db": "compare verb with a text",
		"verb > \"A\"": "compares numbers", "in (1)": "was expected", "and": "was expected", "not": "the end", "not in": "was expected", "1 not 2": "in was expected", "1 in 2": "a list was expected", "1 in (2": "a comma or )", "1 in (2 3)": "a comma or )", "1 in ()": "was expected", "has": "( was expected", "has(": "was expected", "has(Rows_sent": ") was expected", "has(5)": "has needs an attribute", "has(verb)": "has needs an attribute", "\"open": "no closing", `"a\"`: "no closing", `"a\\\"`: "no closing",
	} {
		fails(t, expr, want)
	}
	// Depth is of what is open at one time.
	keeps(t, e, strings.Repeat("(1 > 2) or ", MaxDepth+5)+"(1 < 2)", true)
	keeps(t, e, strings.Repeat("(", MaxDepth)+"1 < 2"+strings.Repeat(")", MaxDepth), true)
	fails(t, strings.Repeat("(", MaxDepth+1)+"1 < 2"+strings.Repeat(")", MaxDepth+1), "nested deeper")
	if f, err := Compile("1<2" + strings.Repeat(" ", MaxLength-3)); err != nil || !f.Keep(e) {
		t.Errorf("as long as may be: got %v", err)
	}
}
