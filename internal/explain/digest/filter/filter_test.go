package filter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/digest"
)

func number(name string, v float64) digest.Attr { return digest.Attr{Name: name, Num: v} }

func flag(name string, yes bool) digest.Attr {
	a := digest.Attr{Name: name, Kind: digest.AttrFlag, Text: []byte("No")}
	if yes {
		a.Num, a.Text = 1, []byte("Yes")
	}
	return a
}

func event() *digest.Event {
	return &digest.Event{
		Time: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC).UnixMicro(), Query: []byte("/* a */ UPDATE shop.orders SET n = n + 1 WHERE id = 7"),
		DB: []byte("shop"), User: []byte("app_web"), Host: []byte("web1"), IP: []byte("10.0.0.7"), Thread: 42, QueryTime: 0.25, LockTime: 0.001,
		Attrs: []digest.Attr{number("Rows_sent", 0), number("Rows_examined", 2000), flag("Full_scan", true), flag("Filesort", false),
			{Name: "Log_slow_rate_type", Kind: digest.AttrText, Text: []byte("session")}, number("Odd_one", 5), number("Engine_time", 1500),
			{Name: "Stored routine", Kind: digest.AttrText, Text: []byte("shop.p")}},
	}
}

func TestKeep(t *testing.T) {
	e := event()
	for expr, want := range map[string]bool{
		`Query_time > 0.2`:                        true,
		`query_TIME > 0.25`:                       false,
		`Query_time >= 250ms and Lock_time < 2ms`: true,
		`Query_time > 250000us`:                   false,
		`Query_time >= 250000µs`:                  true,
		`Query_time < 1m`:                         true,
		`0.1 < Query_time`:                        true,
		`Rows_examined >= 2k and db == "shop"`:    true,
		`Rows_examined >= 2KiB`:                   false,
		`Rows_examined = 2e3`:                     true,
		`user =~ "^app"`:                          true,
		`user !~ "^app"`:                          false,
		`user =~ '(?i)^APP'`:                      true,
		`Full_scan`:                               true,
		`Full_scan == yes`:                        true,
		`Full_scan != yes`:                        false,
		`no == Full_scan`:                         false,
		`not Full_scan or Filesort`:               false,
		`not (Full_scan and Filesort)`:            true,
		`!Filesort && Full_scan`:                  true,
		`Filesort == no`:                          true,
		// and binds tighter than or.
		`Full_scan or Filesort and Filesort`:   true,
		`(Full_scan or Filesort) and Filesort`: false,
		`db in ("x", 'shop')`:                  true,
		`db not in ("x", "shop")`:              false,
		`db not in ("x", "y")`:                 true,
		`thread in (1, 2, 42)`:                 true,
		`verb == "update"`:                     true,
		`verb =~ "^(UPDATE|DELETE)$"`:          true,
		`verb in ("SELECT", "INSERT")`:         false,
		`verb not in ("SELECT", "INSERT")`:     true,
		`Rows_examined > 100 * Rows_sent`:      true,
		`Rows_examined / Rows_sent > 100`:      true, // by 0: infinitely many
		`Rows_sent / Rows_sent == 1`:           false,
		`2 + 3 * 2 == 8 and -Query_time < 0`:   true,
		`(2 + 3) * 2 == 10`:                    true,
		`Query_time - Lock_time > 249.5ms`:     false,
		`Query_time - Lock_time > 248.5ms`:     true,
		// A missing attribute compares false, whatever the operator.
		`Rows_affected == 0`:                 false,
		`Rows_affected != 0`:                 false,
		`not (Rows_affected != 0)`:           true,
		`Rows_affected in (0)`:               false,
		`Rows_affected not in (0)`:           false,
		`Filesort_on_disk == no`:             false,
		`has(Rows_affected)`:                 false,
		`has(Rows_sent) and not has(@Never)`: true,
		`Rows_sent`:                          false,
		`Rows_examined`:                      true,
		`@Odd_one == 5`:                      true,
		`@odd_one > 1s`:                      true,
		`@Odd_one`:                           true,
		`@Log_slow_rate_type == "session"`:   true,
		`@Full_scan == yes`:                  true,
		`time >= "2026-03-01"`:               true,
		`time < "2026-03-01 10:00"`:          false,
		`"2026-03-01T10:00:00Z" == time`:     true,
		`schema == "shop" and ts >= "2026-03-01 09:59:59.5"`: true,
		`query =~ "id = \d+$"`:                               true,
		`user =~ "app\_web"`:                                 true,
		`db == 'it\'s'`:                                      false,
		`explain`:                                            false,
		`length > 10 and length < 100`:                       true,
	} {
		f, err := Compile(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := f.Keep(e); got != want {
			t.Errorf("%s: got %v, want %v", expr, got, want)
		}
	}
}

func TestErrorsPointAtTheColumn(t *testing.T) {
	for _, c := range []struct {
		expr   string
		column int
		reason string
	}{
		{``, 1, "empty"},
		{`Query_time >`, 13, "the end"},
		{`Query_time > 0.5 and Rows_exmined > 3`, 22, "did you mean Rows_examined"},
		{`Zebra_stripes > 3`, 1, "write @Zebra_stripes"},
		{`db == shop`, 7, `"shop" if it is text`},
		{`Query_time > 5 rows`, 16, "and, or, or a comparison"},
		{`Query_time > 5rows`, 15, "not a unit"},
		{`Query_time > 5M`, 14, "minutes are m"},
		{`Rows_sent > 5ms`, 13, "is a time"},
		{`db > "a"`, 4, "compares numbers"},
		{`db == 5`, 7, "a number cannot be compared with text"},
		{`Query_time =~ "x"`, 1, "a pattern matches text"},
		{`db =~ "a("`, 7, "missing closing )"},
		{`db =~ user`, 7, "pattern in quotes"},
		{`(db == "a"`, 1, "never closed"},
		{`db == "a`, 7, "no closing"},
		{`db == "ä" and ?`, 15, "does not belong"},
		{`Full_scan > yes`, 11, "does not work with yes"},
		{`Full_scan == 1`, 11, "compared with yes or no"},
		{`Full_scan + 1 > 2`, 1, "needs numbers"},
		{`time > 5`, 8, "time in quotes"},
		{`time > "yesterday"`, 8, "is no time"},
		{`time`, 1, "compare the time"},
		{`"shop"`, 1, "a value alone"},
		{`not 5`, 5, "a value alone"},
		{`db in "a"`, 7, "a list was expected"},
		{`db in ("a" "b")`, 12, "comma"},
		{`db not like "a"`, 8, "in was expected"},
		{`has(db)`, 5, "in every event"},
		{strings.Repeat("(", 300) + "db", 201, "nested deeper"},
		{strings.Repeat("not ", 300) + "db", 801, "nested deeper"},
		{strings.Repeat("-", 300) + "1 > 2", 201, "nested deeper"},
		{strings.Repeat(" ", MaxLength+1), 1, "are allowed"},
	} {
		_, err := Compile(c.expr)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.60q: %v", c.expr, err)
			continue
		}
		if e.Column != c.column || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("got %.60q: column %d: %s; want e.Column %d, %q in it", c.expr, e.Column, e.Reason, c.column, c.reason)
		}
	}
	_, err := Compile(`db == "ä" and ?`)
	if got := err.(*Error).Pointer(); got != "db == \"ä\" and ?\n              ^" {
		t.Errorf("points at: want \"db == \\\"ä\\\" and ?\\n              ^\"\n%s", got)
	}
}

// A typing error that no rule can see: an attribute that the log never has.
func TestNever(t *testing.T) {
	f, err := Compile(`Rows_examined > 5 and Rows_affected > 1 or db == "x"`)
	if err != nil {
		t.Fatal(err)
	}
	f.Keep(event())
	if got := f.Never(); len(got) != 1 || got[0] != "Rows_affected" {
		t.Errorf("got %v; want len(got) 1, got[0] \"Rows_affected\"", got)
	}
	if f, err = Compile(`Query_time > 1000000 and Rows_examined > 5`); err != nil {
		t.Fatal(err)
	}
	f.Keep(event())
	if got := f.Never(); len(got) != 0 { // it has Rows_examined, but was not asked for it
		t.Errorf("got %v, want none", got)
	}
}

func TestKeepAllocatesNothing(t *testing.T) {
	f, err := Compile(`(Query_time > 100ms and db == "shop" and user =~ "^app" and Rows_examined > 100 * Rows_sent and Full_scan and not has(Errno))`)
	if err != nil {
		t.Fatal(err)
	}
	e := event()
	if !f.Keep(e) {
		t.Fatal("not kept")
	}
	if n := testing.AllocsPerRun(100, func() { f.Keep(e) }); n != 0 {
		t.Errorf("%v allocations an event, want 0", n)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`Query_time > 100ms and not (db in ("a","b") or user =~ "^x")`, `@A == yes or has(@B) && -1 < 2k`, `((`, `time >= "2026-03-01"`, `"`, `db not in ('\'')`, `verb == "x"`, `5e3 ~ !`} {
		f.Add(s)
	}
	e := event()
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Compile(s)
		if err == nil {
			c.Keep(e)
			c.Keep(&digest.Event{})
			return
		}
		var fe *Error
		if !errors.As(err, &fe) || fe.Reason == "" || fe.Column < 1 || fe.Column > len(s)+1 {
			t.Fatalf("%q: %#v", s, err)
		}
	})
}
