package digest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// headers are the forms of a header that servers write, a line each; %d is the event's number.
var headers = map[string][]string{
	"MySQL 5.5":    {"# Time: 150101 10:00:00", "# User@Host: a[a] @ h [10.0.0.1]", "# Query_time: 0.25  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: %d"},
	"MySQL 5.7":    {"# Time: 2018-07-13T10:00:00.000000Z", "# User@Host: a[a] @ h [10.0.0.1]  Id: %d", "# Query_time: 0.250000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 10"},
	"MySQL 8 more": {"# Time: 2018-07-13T10:00:00.000000Z", "# User@Host: a[a] @ h [10.0.0.1]  Id: %d", "# Query_time: 0.250000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 10 Thread_id: 9 Errno: 0 Killed: 0 Bytes_received: 0 Bytes_sent: 57 Read_first: 0 Start: 2018-07-13T10:00:00.000000Z End: 2018-07-13T10:00:00.250000Z"},
	"Percona": {"# Time: 2018-07-13T10:00:00.000000Z", "# User@Host: a[a] @ h [10.0.0.1]  Id: %d", "# Schema: shop  Last_errno: 0  Killed: 0", "# Query_time: 0.250000  Lock_time: 0.000100  Rows_sent: 1  Rows_examined: 10  Rows_affected: 0",
		"# Bytes_sent: 57  Tmp_tables: 0  Tmp_disk_tables: 0  Tmp_table_sizes: 0", "# QC_Hit: No  Full_scan: Yes  Full_join: No  Tmp_table: No  Tmp_table_on_disk: No", "# Filesort: No  Filesort_on_disk: No  Merge_passes: 0",
		"# No InnoDB statistics available for this query", "# Log_slow_rate_type: query  Log_slow_rate_limit: 1"},
	"MariaDB": {"# Time: 180713 10:00:00", "# User@Host: a[a] @ h [10.0.0.1]", "# Thread_id: %d  Schema: shop  QC_hit: No", "# Query_time: 0.250000  Lock_time: 0.000100  Rows_sent: 1  Rows_examined: 10", "# Rows_affected: 0  Bytes_sent: 57",
		"# Full_scan: Yes  Full_join: No  Tmp_table: No  Tmp_table_on_disk: No", "# Filesort: No  Filesort_on_disk: No  Merge_passes: 0  Priority_queue: No", "# explain: id\tselect_type\ttable", "# explain: 1\tSIMPLE\tt"},
}

// headed writes the event n with lines of its header, and what servers write before the statement.
func headed(b *bytes.Buffer, lines []string, n int, rng *rand.Rand) {
	for _, l := range lines {
		b.WriteString(strings.Replace(l, "%d", fmt.Sprint(n), 1) + "\n")
	}
	if rng.IntN(5) == 0 {
		b.WriteString("use shop;\n")
	}
	if rng.IntN(2) == 0 {
		fmt.Fprintf(b, "SET timestamp=%d;\n", 1531476000+n)
	}
	switch rng.IntN(4) {
	case 0:
		fmt.Fprintf(b, "SELECT c FROM t\n# of which\nWHERE id = %d;\n", n)
	case 1:
		b.WriteString("# administrator command: Quit;\n")
	default:
		fmt.Fprintf(b, "SELECT c FROM t WHERE id = %d;\n", n)
	}
}

// TestThinnedHeaders leaves lines of headers away, puts them in any order and writes them twice: no event is lost, and
// each Query_time counts once.
func TestThinnedHeaders(t *testing.T) {
	const events = 300
	rounds := 60
	if testing.Short() {
		t.Log("short: a tenth of the logs")
		rounds = 6
	}
	for name, all := range headers {
		rng := rand.New(rand.NewPCG(5, 6))
		for range rounds {
			lines := slices.Clone(all)
			rng.Shuffle(len(lines), func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
			lines = lines[:1+rng.IntN(len(lines))]
			if rng.IntN(3) == 0 {
				k := rng.IntN(len(lines))
				lines = slices.Insert(lines, k, lines[k])
			}
			var b bytes.Buffer
			timed := 0
			for n := range events {
				of := lines
				if rng.IntN(2) == 0 { // not all are alike
					of = all
				}
				if strings.Contains(strings.Join(of, "\n"), queryMark) {
					timed++
				}
				headed(&b, of, n+100, rng)
			}
			for _, size := range []int{0, 700} {
				p := digest(t, Options{Workers: 2, blockSize: size}, b.Bytes())
				if m := p.Metric("Query_time"); p.Calls != events || m.Count != int64(timed) || m.Sum != 0.25*float64(timed) {
					t.Fatalf("%s, header of\n%s\n%d events, %d with %g s; want %d and %d\n%v", name, strings.Join(lines, "\n"), p.Calls, m.Count, m.Sum, events, timed, p.Skipped)
				}
				if lost := p.Lost(); (lost == "") != (timed == events) {
					t.Fatalf("%s, header of\n%s\nlost: %q; %v", name, strings.Join(lines, "\n"), lost, p.Skipped)
				}
			}
		}
	}
}

// TestHeadersAgainstEvents damages logs: each line "# Query_time" is an event, or is reported.
func TestHeadersAgainstEvents(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	lost, rounds := 0, 400
	if testing.Short() {
		t.Log("short: a tenth of the logs")
		rounds = 40
	}
	for range rounds {
		var b bytes.Buffer
		for n := range 40 {
			for _, all := range headers {
				headed(&b, all, n+100, rng)
			}
		}
		lines := bytes.SplitAfter(b.Bytes(), []byte("\n"))
		for range 1 + rng.IntN(40) {
			i := rng.IntN(len(lines) - 3)
			switch rng.IntN(5) {
			case 0:
				lines[i] = nil
			case 1:
				lines[i], lines[i+1] = lines[i+1], lines[i]
			case 2:
				lines[i] = bytes.TrimSuffix(bytes.TrimSpace(lines[i]), []byte(";"))
			case 3:
				k := rng.IntN(len(lines))
				lines[i] = append(bytes.Clone(lines[i]), lines[k]...)
			case 4:
				lines[i] = lines[i][:rng.IntN(len(lines[i])+1)]
			}
		}
		log := bytes.Join(lines, nil)
		announced := int64(bytes.Count(append([]byte("\n"), log...), []byte("\n"+queryMark)))
		p := digest(t, Options{Workers: 1, Format: FormatSlow}, log)
		told := p.Sources[0].Events - p.Skipped[skipTimeless]
		for _, why := range []string{skipInside, skipHeadOnly, skipMixed, skipDoubled, skipNoQuery, skipTail} {
			told += p.Skipped[why]
		}
		if told < announced {
			t.Fatalf("%d lines, %d told of: %v\n%s", announced, told, p.Skipped, log)
		}
		if p.Lost() != "" {
			lost++
		}
	}
	if lost < rounds/4 {
		t.Errorf("of %d damaged logs only %d lost something: the test damages too little, want at least %d", rounds, lost, rounds/4)
	}
}

func TestForeignHeaders(t *testing.T) {
	for log, calls := range map[string]int64{
		"# User: a[a] @ [1.2.3.4]\n# Thread_id: 1 Schema: db\n# Query_time: 0.25 Lock_time: 0\nSELECT 1;\n":                                                  1,
		"# Time: margdl 11:48:27 # User@Host: [SQL_SLAVE] @  []\n# Query_time: 0.25  Lock_time: 0\nSELECT 1;\n":                                              1,
		"# Query_time: 0.25  Lock_time: 0.000091  Rows_sent: 0  Rows_examined: 62951\n# No InnoDB statistics available for this query\nSELECT * FROM foo;\n": 1,
		// A comment that a header's lines resemble stays in the statement.
		"# Query_time: 0.25  Lock_time: 0\nBEGIN;\n# Time: later\n# User: nobody\n# Note: this\nEND;\n": 1,
	} {
		p := digest(t, Options{}, bytes.Repeat([]byte(log), 50))
		if p.Calls != 50*calls || p.Metric("Query_time").Sum != 12.5*float64(calls) || p.Lost() != "" {
			t.Errorf("got %d calls, %g s, lost %q, skipped %v of 50 times; want p.Calls %d, p.Metric(\"Query_time\").Sum %g, p.Lost() \"\"\n%s",
				p.Calls, p.Metric("Query_time").Sum, p.Lost(), p.Skipped, 50*calls, 12.5*float64(calls), log)
		}
	}
}

func TestMergeTables(t *testing.T) {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "# Query_time: 0.25  Lock_time: 0\nSELECT a1 FROM orders_%d WHERE id = 5;\n# Query_time: 0.5  Lock_time: 0\nSELECT a1 FROM log_%032x;\n", i, i*7777)
	}
	if p := digest(t, Options{}, []byte(b.String())); p.Unique != 60 {
		t.Errorf("got %d classes without the option, want 60", p.Unique)
	}
	p := digest(t, Options{MergeTables: true}, []byte(b.String()))
	if p.Unique != 2 || p.Calls != 60 {
		t.Fatalf("got %d classes of %d calls; want p.Unique 2, p.Calls 60", p.Unique, p.Calls)
	}
	if c := classOf(t, p, "select a1 from orders_? where id = ?"); c.Calls != 30 || c.Metric("Query_time").Sum != 7.5 {
		t.Errorf("got %+v; want Calls 30, Metric(\"Query_time\").Sum 7.5", c)
	}
	if c := classOf(t, p, "select a1 from log_?"); c.Calls != 30 || c.Metric("Query_time").Sum != 15 {
		t.Errorf("got %+v; want Calls 30, Metric(\"Query_time\").Sum 15", c)
	}
}
