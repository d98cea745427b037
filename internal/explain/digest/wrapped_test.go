package digest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

	"github.com/rissodb/risso/internal/explain/digest/wrap"
)

// bzipped is the text of bzippedLog(), packed by bzip2 1.0.8.
const bzipped = "QlpoOTFBWSZTWZH1mvoAAqhfgFAQSAN/+ktmvpqua57gUANPcmg3N0ADUiPaj/VSNNHqAaAAAAAGo8UoAAAGgAAAANT/VSTSBpkAMTRkMTQDIYMaGhoAMhoAAAAAFKUIJPUE/Um0h5T1A9R6nlMho9TPVJE5JylJq1eexRZlIgAAkCMAAZmZmaCSc7xOQn7CeoT1Ce6E68RMzMAAESkpAAAEQAABAANUkpLZJSapJSdUklHWJgnUJoE8xPiJ1CeAnaJ3CfoJ2ir3CdYnKE55nZ2dlNMktMgRgADAVAAHve97xJOSdbmmmjSTmwmCdwmmm224TcJgm4JuE56BOQm4JoJrEwTgJpO4TLXeJlRw03cdNdddBNttttonkJv3ifWJs1xmMziJmmMxmMxsJpozHHjx6hNddttd+2u2/EmYzGYzGbxSsqhCEu221rWyyy7cuWoQhCEICMRGIlJmAEASklJtskpJMgCAbLJKSTbbJKYAgG2m2ySlACASbbZJSSebbbfd8QmfYJhLQTEtBOAT1xM0sKIQgAAAAAAAAABOkk5eUlPeJ4ieAnkJ4CbxPgJ94mgnATBPITiJoJqJ4iaBO4TxE9omoq8RME/kT3iYJ5hPkJ0E3Cd4nQTQT5ieYnyu8TJH/Cr5icgn0E+gnUE8AnwE4Cf2JyFXMTBPSJ+In4CdoTUJ0CekToJ7RPWJzE5ibgnQTcE4id4n/i7kinChISPrNfQ="

func bzippedLog() []byte {
	var b bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&b, "# Time: 2018-07-13T10:00:%02d.000000Z\n# User@Host: a[a] @ h [10.0.0.1]  Id: %d\n# Query_time: 0.250000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 10\nSELECT c FROM t WHERE id = %d;\n", i, i, i)
	}
	return b.Bytes()
}

// packed packs a text as the tools do.
func packed(t *testing.T, text []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		wrap.Gzip: func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		wrap.Zstd: func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		wrap.XZ:   func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
		wrap.LZ4:  func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil },
	} {
		var b bytes.Buffer
		w, err := open(&b)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(text, 4096) { // so that half of it is something
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
			if f, ok := w.(interface{ Flush() error }); ok {
				if err := f.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out[name] = b.Bytes()
	}
	return out
}

func utf16Of(text []byte, order binary.AppendByteOrder) (out []byte) {
	for _, u := range utf16.Encode([]rune(string(text))) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// TestCompressed: a packed log is the log; a cut or damaged one is what was there, and says so.
func TestCompressed(t *testing.T) {
	log := writeLog(6000)
	want := asJSON(t, digest(t, Options{}, log))
	all := packed(t, log)
	two := append(bytes.Clone(all[wrap.Gzip]), all[wrap.Gzip]...) // cat a.gz b.gz
	if p := digest(t, Options{}, two); p.Calls != 12000 || p.Lost() != "" {
		t.Errorf("two gzip files in one: got %d calls, %s; want p.Calls 12000, p.Lost() \"\"", p.Calls, p.Lost())
	}
	for name, b := range all {
		if got := asJSON(t, digest(t, Options{}, b)); got != want {
			t.Errorf("%s gives another profile: %s", name, firstDifference(got, want))
		}
		p := digest(t, Options{}, b[:len(b)*2/3])
		if p.Calls < 500 || p.Calls >= 6000 || !strings.Contains(p.Lost(), "ends too early") || p.Sources[0].Broken == "" {
			t.Errorf("a part of a %s file: got %d calls, lost %q; want p.Calls at least 500, p.Calls less than 6000, \"ends too early\" in it, p.Sources[0].Broken not \"\"",
				name, p.Calls, p.Lost())
		}
		bad := bytes.Clone(b)
		copy(bad[len(bad)/2:], "this does not belong here")
		if p, err := Run(t.Context(), Options{}, Reader("bad", bytes.NewReader(bad))); err == nil && p.Lost() == "" {
			t.Errorf("a damaged %s file: %d calls and not a word", name, p.Calls)
		}
	}
	bz, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := asJSON(t, digest(t, Options{}, bz)), asJSON(t, digest(t, Options{}, bzippedLog())); got != want {
		t.Errorf("bzip2 gives another profile: %s", firstDifference(got, want))
	}
	for _, magic := range []string{"PK\x03\x04", "7z\xbc\xaf\x27\x1c", "LZIP\x01", "\x1f\x9d\x90", strings.Repeat("x", 257) + "ustar\x00"} {
		_, err := Run(t.Context(), Options{}, Reader("packed", strings.NewReader(magic+strings.Repeat("\x00 ", 3000))))
		if !errors.Is(err, wrap.ErrPacked) {
			t.Errorf("%q: got %v, want wrap.ErrPacked", magic[:4], err)
		}
	}
}

func TestUTF16(t *testing.T) {
	log := bytes.ReplaceAll(writeLog(2000), []byte("xxx"), []byte("ü😀"))
	want := digest(t, Options{}, log)
	for name, b := range map[string][]byte{
		"little": utf16Of(log, binary.LittleEndian), "little with a mark": utf16Of([]byte("\ufeff"+string(log)), binary.LittleEndian),
		"big": utf16Of(log, binary.BigEndian), "big with a mark": utf16Of([]byte("\ufeff"+string(log)), binary.BigEndian),
		"UTF-8 with a mark": append([]byte("\ufeff"), log...), "packed": packed(t, utf16Of(log, binary.LittleEndian))[wrap.Gzip],
	} {
		if got := digest(t, Options{}, b); asJSON(t, got) != asJSON(t, want) {
			t.Errorf("%s: another profile: %s, want asJSON(t, got) asJSON(t, want)", name, firstDifference(asJSON(t, got), asJSON(t, want)))
		}
	}
}

// covered are ways in which tools keep the lines of a log, and whether they keep blank ones.
var covered = map[string]func(log string) string{
	"docker": func(log string) string {
		return eachLine(log, func(l string) string {
			b, _ := json.Marshal(map[string]string{"log": l + "\n", "stream": "stderr", "time": "2026-01-01T10:00:00.1Z"})
			return string(b)
		})
	},
	"journal": func(log string) string {
		return eachLine(log, func(l string) string {
			b, _ := json.Marshal(map[string]any{"PRIORITY": "6", "MESSAGE": l, "_PID": 5})
			return string(b)
		})
	},
	"kubernetes": func(log string) string {
		return eachLine(log, func(l string) string { return "2026-01-01T10:00:00.123456789Z stdout F " + l })
	},
	"docker -t": func(log string) string {
		return eachLine(log, func(l string) string { return "2026-01-01T10:00:00.123456789Z " + l })
	},
	"docker compose": func(log string) string { return eachLine(log, func(l string) string { return "db-1  | " + l }) },
	"syslog": func(log string) string {
		return eachLine(log, func(l string) string { return "Jan  2 10:00:00 db1 mysqld[123]: " + l })
	},
	"syslog, new": func(log string) string {
		return eachLine(log, func(l string) string { return "<30>1 2026-01-01T10:00:00.1Z db1 mysqld 123 - - " + l })
	},
	"rsyslog": func(log string) string {
		return eachLine(log, func(l string) string { return "2026-01-01T10:00:00.123456+01:00 db1 mysqld[123]: " + l })
	},
	"aws logs tail": func(log string) string { // each event is one message
		return strings.ReplaceAll(log, "# Time: ", "2026-01-01T10:00:00+00:00 shop-db # Time: ")
	},
	"aws logs get-log-events": func(log string) string {
		var list []map[string]any
		for _, m := range strings.SplitAfter(log, ";\n") {
			if m != "" {
				list = append(list, map[string]any{"timestamp": 1, "message": strings.TrimSuffix(m, "\n"), "ingestionTime": 2})
			}
		}
		b, _ := json.MarshalIndent(map[string]any{"events": list, "nextForwardToken": "f/1"}, "", "    ")
		return string(b)
	},
}

func eachLine(log string, f func(string) string) string {
	var b strings.Builder
	for l := range strings.Lines(log) {
		b.WriteString(f(strings.TrimSuffix(l, "\n")) + "\n")
	}
	return b.String()
}

func TestCovered(t *testing.T) {
	var slow strings.Builder
	for i := range 300 {
		fmt.Fprintf(&slow, "# Time: 2018-07-13T10:00:%02d.000000Z\n# User@Host: a[a] @ h [10.0.0.1]  Id: %d\n# Query_time: 0.250000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 10\nSELECT c\n  FROM t\nWHERE id = %d AND s = '%s';\n", i%60, i, i, strings.Repeat("long", i*20))
	}
	general := strings.Repeat("2026-01-02T03:04:05.678901Z\t    8 Query\tSELECT 1\n2026-01-02T03:04:05.678901Z\t    8 Query\tSELECT a\nFROM t\n", 100)
	wantSlow, wantGeneral := digest(t, Options{}, []byte(slow.String())), digest(t, Options{}, []byte(general))
	for name, f := range covered {
		got := digest(t, Options{}, []byte(f(slow.String())))
		if asJSON(t, withoutBytes(got)) != asJSON(t, withoutBytes(wantSlow)) {
			t.Errorf("%s: another profile: %s, want asJSON(t, withoutBytes(got)) asJSON(t, withoutBytes(wantSlow))",
				name, firstDifference(asJSON(t, got), asJSON(t, wantSlow)))
		}
		if strings.HasPrefix(name, "aws") || name == "docker -t" { // a general log's own line begins so
			continue
		}
		got = digest(t, Options{}, []byte(f(general)))
		if asJSON(t, withoutBytes(got)) != asJSON(t, withoutBytes(wantGeneral)) {
			t.Errorf("%s: another profile of a general log: %s, want asJSON(t, withoutBytes(got)) asJSON(t, withoutBytes(wantGeneral))",
				name, firstDifference(asJSON(t, got), asJSON(t, wantGeneral)))
		}
	}
}

func withoutBytes(p *Profile) *Profile {
	for i := range p.Sources {
		p.Sources[i].Bytes = 0
	}
	return p
}

// TestNoLogs: what is no log is not read, and what it looks like is reported.
func TestNoLogs(t *testing.T) {
	for text, looks := range map[string]string{
		"2026-01-01 10:00:00.000000 IP 10.0.0.1.5000 > 10.0.0.2.3306: tcp 30\n\t0x0000:  4508 0052 6d2a 4000 4006 cfcc 7f00 0001\n": "tcpdump",
		"\xd4\xc3\xb2\xa1\x02\x00\x04\x00": "captured",
		"2026-01-01T10:00:00.123456Z 0 [System] [MY-010116] [Server] /usr/sbin/mysqld (mysqld 8.4.3) starting as process 1\n": "error log",
		"2026-01-01 10:00:00 0 [Note] InnoDB: Number of transaction pools: 1\n":                                               "error log",
		"-- MySQL dump 10.13  Distrib 8.4.3\n--\n-- Host: localhost\nCREATE TABLE t (a INT);\n":                               "a dump",
		"20260101 10:00:00,db1,root,localhost,5,7,QUERY,shop,'SELECT 1',0\n":                                                  "server_audit",
		"<?xml version=\"1.0\"?>\n<AUDIT>\n<AUDIT_RECORD>\n":                                                                  "audit log",
		"SELECT 1;\nSELECT 2;\n": "statements without",
		"{\"a\": 5}\n":           "JSON",
		"2026-01-01 10:00:00.123 UTC [55] app@shop LOG:  duration: 5 ms\n":                             "PostgreSQL",
		"Count: 3  Time=0.10s (0s)  Lock=0.00s (0s)  Rows=1.0 (3), root[root]@localhost\n  SELECT N\n": "mysqldumpslow",
	} {
		p, err := Run(context.Background(), Options{}, Reader("none", strings.NewReader(strings.Repeat(text, 20))))
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		if s := p.Sources[0]; p.Calls != 0 || s.Events != 0 || !strings.Contains(s.Looks, looks) {
			t.Errorf("got %.40q: %d calls, looks like %q; want p.Calls 0, s.Events 0, %q in it", text, p.Calls, s.Looks, looks)
		}
	}
}

// The forms of a general log in which tabs are blanks, and those of MySQL 5.0 and 5.1.
func TestLooseGeneral(t *testing.T) {
	statements := func(p *Profile) string {
		var out []string
		for _, c := range p.Classes {
			for _, s := range c.Samples {
				out = append(out, s.Query+"|"+s.DB+"|"+s.User+"|"+s.Time.Format("15:04:05"))
			}
		}
		return strings.Join(out, "\n")
	}
	for name, log := range map[string]string{
		"5.1":             "070823 21:04:58       5 Connect     app@web1 on shop\n\t\t      5 Query       SELECT a\n   FROM t WHERE\n      5 > a\n\t\t      5 Prepare     [1] SELECT b FROM t WHERE a = ?\n\t\t      5 Execute     [1] SELECT b FROM t WHERE a = 7\n070823 21:05:02       5 Quit\n",
		"5.1 in blanks":   "070823 21:04:58       5 Connect     app@web1 on shop\n                      5 Query       SELECT a\n   FROM t WHERE\n      5 > a\n                      5 Prepare     [1] SELECT b FROM t WHERE a = ?\n                      5 Execute     [1] SELECT b FROM t WHERE a = 7\n070823 21:05:02       5 Quit\n",
		"MySQL, pasted":   "2007-08-23T21:04:58.000000Z    5 Connect app@web1 on shop using TCP/IP\n2007-08-23T21:04:58.000000Z    5 Query SELECT a\n   FROM t WHERE\n      5 > a\n2007-08-23T21:04:58.000000Z    5 Prepare SELECT b FROM t WHERE a = ?\n2007-08-23T21:04:58.000000Z    5 Execute SELECT b FROM t WHERE a = 7\n",
		"MariaDB, blanks": "070823 21:04:58     5 Connect   app@web1 on shop using Socket\n                    5 Query   SELECT a\n   FROM t WHERE\n      5 > a\n                    5 Execute SELECT b FROM t WHERE a = 7\n",
	} {
		p := digest(t, Options{}, []byte(log))
		if got, want := statements(p), "SELECT a\n   FROM t WHERE\n      5 > a|shop|app|21:04:58\nSELECT b FROM t WHERE a = 7|shop|app|21:04:58"; got != want && got != strings.Join(reversed(strings.Split(want, "\nSELECT b")), "\n") || p.Lost() != "" {
			t.Errorf("%s:\n%s\nnot\n%s\n%v", name, got, want, p.Skipped)
		}
	}
}

func reversed(two []string) []string { return []string{"SELECT b" + two[1], two[0]} }

// Tables that hold the logs, as the engine CSV keeps them and as mysql --batch prints them. The rows are those of MySQL 5.7 and MariaDB 10.11.
func TestTables(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 500_000_000, time.UTC)
	for name, c := range map[string]struct {
		rows, format, query, db string
		time                    float64
	}{
		"slow_log.CSV":            {`"2026-01-02 03:04:05.000000","app[app] @ web1 [10.0.0.1]","00:00:01.500000","00:00:00.000100",3,2000,"shop",0,0,1,"select \"a\",\n 'b\\n' from t",17` + "\n", FormatSlowTable, "select \"a\",\n 'b\\n' from t", "shop", 1.5},
		"slow_log.CSV of MariaDB": {`"2026-01-02 03:04:05.000000","app[app] @ web1 [10.0.0.1]","00:00:01.500000","00:00:00.000100",3,2000,"shop",0,0,1,"select 1",17,0` + "\n", FormatSlowTable, "select 1", "shop", 1.5},
		"slow_log in tabs": {"start_time\tuser_host\tquery_time\tlock_time\trows_sent\trows_examined\tdb\tlast_insert_id\tinsert_id\tserver_id\tsql_text\tthread_id\n" +
			"2026-01-02 03:04:05.000000\tapp[app] @ web1 [10.0.0.1]\t00:00:01.500000\t00:00:00.000100\t3\t2000\tshop\t0\t0\t1\tselect \"x, y\"\t17\n", FormatSlowTable, "select \"x, y\"", "shop", 1.5},
		"general_log.CSV": {`"2026-01-02 03:04:06.500000","app[app] @ web1 [10.0.0.1]",17,1,"Connect","app@web1 on shop using TCP/IP"` + "\n" + `"2026-01-02 03:04:06.500000","app[app] @ web1 [10.0.0.1]",17,1,"Query","select 5"` + "\n", FormatGeneralTable, "select 5", "shop", 0},
	} {
		p := digest(t, Options{}, []byte(c.rows))
		if p.Sources[0].Format != c.format || p.Calls != 1 || p.Lost() != "" {
			t.Errorf("%s: got %s, %d calls, %v; want p.Sources[0].Format %s, p.Calls 1, p.Lost() \"\"",
				name, p.Sources[0].Format, p.Calls, p.Skipped, c.format)
			continue
		}
		s := p.Classes[0].Samples[0]
		if s.Query != c.query || s.DB != c.db || s.User != "app" || s.Host != "web1" || s.Seconds != c.time || !s.Time.Equal(at) {
			t.Errorf("%s: got %+v; want Query %v, DB %v, User \"app\", Host \"web1\", Seconds %v, Time.Equal(at) true", name, s, c.query, c.db, c.time)
		}
		if m := p.Metric("Rows_examined"); c.format == FormatSlowTable && m.Sum != 2000 {
			t.Errorf("%s: %g rows examined", name, m.Sum)
		}
	}
}

// TestWrapped: numbers below zero that a server wrote as if they were huge are unknown, in each attribute and each place of a header.
func TestWrapped(t *testing.T) {
	head := func(query, lock, sent, bytes string) string {
		return "# User@Host: a[a] @ h [10.0.0.1]  Id: 7\n# Query_time: " + query + "  Lock_time: " + lock + "  Rows_sent: " + sent + "  Rows_examined: 10\n# Bytes_sent: " + bytes + "  Full_scan: No\nSELECT 1;\n"
	}
	plain := head("0.250000", "0.000100", "1", "57")
	for _, odd := range []string{head("18446744073709.550781", "0.000100", "1", "57"), head("0.250000", "18446744073709.550781", "1", "57"),
		head("0.250000", "0.000100", "18446744073709551615", "57"), head("0.250000", "0.000100", "1", "18446744073709551497")} {
		for _, log := range []string{plain + odd + plain, odd + plain + plain, plain + plain + odd} {
			p := digest(t, Options{}, []byte(log))
			if p.Calls != 3 || p.Skipped[skipWrapped] != 1 || p.Lost() != "" {
				t.Fatalf("got %d calls, %v, lost %q of; want p.Calls 3, p.Skipped[skipWrapped] 1, p.Lost() \"\"\n%s", p.Calls, p.Skipped, p.Lost(), log)
			}
			known := 0
			for name, max := range map[string]float64{"Query_time": 0.25, "Lock_time": 0.0001, "Rows_sent": 1, "Bytes_sent": 57} {
				m := p.Metric(name)
				known += int(m.Count)
				if m.Max != max || m.Count < 2 || m.Min != max {
					t.Errorf("%s is %+v in; want Max %v, Count at least 2, Min %v\n%s", name, m, max, max, log)
				}
			}
			if known != 11 {
				t.Errorf("%d of 11 figures are known of, want 11\n%s", known, log)
			}
		}
	}
}
