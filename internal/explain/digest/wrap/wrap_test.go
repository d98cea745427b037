package wrap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"golang.org/x/text/encoding/unicode"
)

const log = "# Time: 2026-11-21\n# User@Host: a\nSELECT 1;\n"

func isLog(b []byte) bool { return bytes.HasPrefix(b, []byte("# Time")) }

// TestCover takes off what tools write in front of lines.
func TestCover(t *testing.T) {
	for _, c := range []struct{ name, line string }{
		{"Kubernetes", "2026-11-21T12:00:00.123456789Z stdout F "}, {"Kubernetes", "2026-11-21T12:00:00+01:00 stderr F "},
		{"kubectl --prefix", "[pod/db-0/mysql] "}, {"docker compose", "db-1  | "}, {"docker compose", "db-1 | 2026-11-21T12:00:00.1Z "},
		{"syslog", "Nov 21 12:00:00 db1 mysqld[77]: "}, {"syslog", "<13>Nov  1 12:00:00 db1 mysqld: "}, {"syslog", "2026-11-21T12:00:00.1+01:00 db1 mysqld[7]: "},
		{"syslog", "<13>1 2026-11-21T12:00:00Z db1 mysqld 77 - - "}, {"a time and a stream's name", "2026-11-21 12:00:00 i-123/slow "}, {"a time", "2026-11-21 12:00:00,5\t"}, {"AWS", "EVENTS\t1795264000\t1795264001\t"},
	} {
		text := ""
		for line := range strings.Lines(log) {
			text += c.line + line
		}
		name, open := Cover([]byte(text), isLog)
		if name != c.name {
			t.Errorf("%q: got %q, want %q", c.line, name, c.name)
			continue
		}
		if got, err := io.ReadAll(open(bufio.NewReader(strings.NewReader(text)))); err != nil || string(got) != log {
			t.Errorf("%q: got %q, %v; want the log", c.line, got, err)
		}
	}
	for _, text := range []string{log, "", "no log\n", "2026-11-21 12:00:00 no log\n", `{"log":"no log"}`} {
		if name, _ := Cover([]byte(text), isLog); name != "" {
			t.Errorf("%q: got %q, want nothing around it", text, name)
		}
	}
}

// TestLongLines: a line that is longer than the buffer loses its cover once, and Kubernetes' parts are put together again.
func TestLongLines(t *testing.T) {
	const cover = "2026-11-21T12:00:00Z stdout "
	for _, c := range []struct{ text, want string }{
		{cover + "F # Time" + strings.Repeat(" [pod/x] ", 20) + "\n" + cover + "F end\n", "# Time" + strings.Repeat(" [pod/x] ", 20) + "\nend\n"},
		{cover + "F # Time" + strings.Repeat(cover+"F x", 20) + "\n", "# Time" + strings.Repeat(cover+"F x", 20) + "\n"},
		{cover + "F # Time" + strings.Repeat("x", 28) + cover + "F y\n", "# Time" + strings.Repeat("x", 28) + cover + "F y\n"}, // what looks like a cover begins where the buffer ends
		{cover + "P # Ti\r\n" + cover + "P me\n" + cover + "F : 1\n", "# Time: 1\n"},
		{cover + "F # Time\nof no cover\n", "# Time\nof no cover\n"},
	} {
		_, open := Cover([]byte(c.text), isLog)
		if open == nil {
			t.Errorf("%.40q: got nothing around it, want open not nil", c.text)
			continue
		}
		if got, err := io.ReadAll(open(bufio.NewReaderSize(strings.NewReader(c.text), 64))); err != nil || string(got) != c.want {
			t.Errorf("got %q, %v\nwant %q", got, err, c.want)
		}
	}
	far := strings.Repeat("x", 600) + " | # Time\n" // a cover is at most 512 bytes long
	if name, _ := Cover([]byte(far), isLog); name != "" {
		t.Errorf("got %q, want no cover of 600 bytes", name)
	}
}

// TestJSON takes lines out of JSON, of any tool.
func TestJSON(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	for _, c := range []struct{ text, want string }{
		{`{"log":"# Time\n","stream":"stdout"}` + "\n" + `{"log":"SELECT 1;\n"}`, "# Time\nSELECT 1;\n"},
		{`{"MESSAGE":"# Time"}{"MESSAGE":"SELECT 1;","PRIORITY":"6"}`, "# Time\nSELECT 1;\n"},
		{`{"events":[{"timestamp":1,"message":"# Time"},{"message":"a"}],"next":"message"}`, "# Time\na\n"},
		{`[{"@message":"# Time"},{"msg":"a"},{"textPayload":"b"},{"line":"c"},{"other":"d"}]`, "# Time\na\nb\nc\n"},
		{`{"log":"# Time` + long + `"}{"log":"rest\n"}`, "# Time" + long + "rest\n"}, // Docker cuts there
		{`{"log":"# Time` + long[:16<<10-8] + `"}{"log":"next"}`, "# Time" + long[:16<<10-8] + "\nnext\n"},
		{`{"message":"# Time` + long + `"}`, "# Time" + long + "\n"},
		{`{"log":["# Time","x"],"a":{"log":"b"},"log":"# Time"}`, "b\n# Time\n"},
		{`{"x":[1],"log":"# Time"}`, "# Time\n"},
		{`{"log":"# Time` + long[:16<<10-6] + `"}{"log":"rest\n"}`, "# Time" + long[:16<<10-6] + "rest\n"},
		{`{"log":"# Time` + long[:16<<10-7] + `"}{"log":"next\n"}`, "# Time" + long[:16<<10-7] + "\nnext\n"},
		{`{"log":"","msg":"# Time"}`, "# Time\n"},
		{` {"n":1,"t":true,"log":"# Time"}`, "# Time\n"},
	} {
		name, open := Cover([]byte(c.text), func(b []byte) bool { return bytes.Contains(b, []byte("# Time")) })
		if name != "JSON" {
			t.Errorf("%.60s: got %q, want \"JSON\"", c.text, name)
			continue
		}
		if got, err := io.ReadAll(open(bufio.NewReader(strings.NewReader(c.text)))); err != nil || string(got) != c.want {
			t.Errorf("%.60s: got %.60q, %v; want %.60q", c.text, got, err, c.want)
		}
	}
	for deep, want := range map[int]error{900: io.ErrUnexpectedEOF, 1000: io.ErrUnexpectedEOF, 1001: errValue} {
		_, err := io.ReadAll(newMessages(strings.NewReader(strings.Repeat("[", deep))))
		if want == errValue != errors.Is(err, errValue) {
			t.Errorf("%d lists in each other: got %v, want %v", deep, err, want)
		}
	}
}

// TestBounded: no value takes more memory than it may.
func TestBounded(t *testing.T) {
	b := &bounded{r: strings.NewReader("abcdef"), left: 4}
	got, err := io.ReadAll(b)
	if string(got) != "abcd" || !errors.Is(err, errValue) {
		t.Errorf("got %q, %v; want four bytes and an error", got, err)
	}
}

func TestUnpack(t *testing.T) {
	packed := map[string]func(io.Writer) io.WriteCloser{
		Gzip: func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		Zstd: func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
		XZ:   func(w io.Writer) io.WriteCloser { z, _ := xz.NewWriter(w); return z },
		LZ4:  func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) },
	}
	for name, writer := range packed {
		var b bytes.Buffer
		w := writer(&b)
		io.WriteString(w, log)
		w.Close()
		unpacks(t, name, b.Bytes())
	}
	// bzip2 of the log's first seven bytes, which Go cannot write.
	bz, err := hex.DecodeString("425a6839314159265359")
	if err != nil || Packing(bz) != Bzip2 {
		t.Errorf("got %q, %v; want bzip2", Packing(bz), err)
	}
	unpacks(t, "", []byte(log))
	for magic, say := range map[string]string{"PK\x03\x04": "unzip -p", "7z\xbc\xaf\x27\x1c": "7z x", "Rar!\x1a\x07": "unrar", "LZIP": "lzip -dc", "\x1f\x9d": "zcat", "\x5d\x00\x00": "lzma", "\x89LZO": "lzop",
		strings.Repeat("x", 257) + "ustar\x00": "tar -xOf"} {
		if _, _, err := Unpack(bufio.NewReader(strings.NewReader(magic + "rest"))); !errors.Is(err, ErrPacked) || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: got %v, want an error with %q", magic, err, say)
		}
	}
	if _, _, err := Unpack(bufio.NewReader(strings.NewReader(strings.Repeat("x", 257) + "ustar\x00"))); !errors.Is(err, ErrPacked) {
		t.Errorf("the least that tells a tar archive: got %v, want ErrPacked", err)
	}
	if in, _, err := Unpack(bufio.NewReader(strings.NewReader(strings.Repeat("x", 257) + "ustax "))); err != nil || in == nil {
		t.Errorf("no tar archive: got %v; want in not nil", err)
	}
	for _, bad := range []string{"\x1f\x8bno", "\xfd7zXZ\x00no"} {
		if _, _, err := Unpack(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
	broken := errors.New("broken")
	if _, _, err := Unpack(bufio.NewReader(io.MultiReader(failing{broken}))); !errors.Is(err, broken) {
		t.Errorf("got %v, want what reading said", err)
	}
	if in, end, err := Unpack(bufio.NewReader(strings.NewReader(""))); err != nil || in == nil {
		t.Errorf("nothing: got %v; want in not nil", err)
	} else {
		end()
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func unpacks(t *testing.T, name string, b []byte) {
	t.Helper()
	if got := Packing(b); got != name {
		t.Errorf("got %q, want %q", got, name)
	}
	in, end, err := Unpack(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != log {
		t.Errorf("%s: got %q, %v; want %v", name, got, err, log)
	}
	end()
}

func TestUTF8(t *testing.T) {
	wide := func(order unicode.Endianness, mark unicode.BOMPolicy, text string) string {
		s, err := unicode.UTF16(order, mark).NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name, text, want string
		wide             bool
	}{
		{"plain", log, log, false}, {"a mark", "\xef\xbb\xbf" + log, log, false}, {"short", "ab", "ab", false}, {"nothing", "", "", false},
		{"little endian, marked", wide(unicode.LittleEndian, unicode.UseBOM, log), log, true}, {"big endian, marked", wide(unicode.BigEndian, unicode.UseBOM, log), log, true},
		{"little endian", wide(unicode.LittleEndian, unicode.IgnoreBOM, log), log, true}, {"big endian", wide(unicode.BigEndian, unicode.IgnoreBOM, log), log, true},
		{"eight letters are enough", wide(unicode.LittleEndian, unicode.IgnoreBOM, "# Time: "), "# Time: ", true},
		{"seven are not", wide(unicode.LittleEndian, unicode.IgnoreBOM, "# Time:"), wide(unicode.LittleEndian, unicode.IgnoreBOM, "# Time:"), false},
		{"zeros alone", strings.Repeat("\x00", 32), strings.Repeat("\x00", 32), false},
	} {
		in, wide, err := UTF8(bufio.NewReader(strings.NewReader(c.text)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := io.ReadAll(in); err != nil || string(got) != c.want || wide != c.wide {
			t.Errorf("%s: got %q, wide %v, %v; want %q, %v", c.name, got, wide, err, c.want, c.wide)
		}
	}
	broken := errors.New("broken")
	if _, _, err := UTF8(bufio.NewReader(failing{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v, want what reading said", err)
	}
}

// TestLooks names what people take for logs.
func TestLooks(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "hello": "", "\xd4\xc3\xb2\xa1rest": "packets", "2026-11-21 12:00:00.123456 IP a.1 > b.2: x": "printed by tcpdump",
		"2026-11-21T12:00:00.123456Z 0 [System] [MY-1] x": "error log", "-- MySQL dump 10": "a dump", "/*M!999999\\- enable the sandbox mode */\n-- MariaDB dump 10": "a dump",
		"20261121 12:00:00,db1,root,h,1,2,QUERY,x,'y',0": "server_audit", "<AUDIT_RECORD": "audit log", "Count: 3  Time=1.0s (3s)": "mysqldumpslow", "# Overall: 3 total, 1 unique": "pt-query-digest",
		"SQLite format 3": "SQLite", "<!doctype html>": "web page", `{"a":1}`: "JSON", "select 1;\n": "statements without",
		"abc\x00def": "not text", "\x00abc": "not text", "x\xffabcd": "a character set other than", "\xff": "", "M\xfcller and more": "a character set other than", "grü": "", "gr\xc3": "",
	} {
		if got := Looks([]byte(text)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestCompanion names files that are stored next to logs.
func TestCompanion(t *testing.T) {
	for text, want := range map[string]string{
		"\xfe\xfe\x0c\x01": "index of the GTIDs", "./binlog.000001\n./binlog.000002\n": "list of a server's logs", "./binlog.000001\n./binl": "list of a server's logs",
		"0-1-7\n3-7-12\n": "GTIDs at which", "0-1-7": "", "0-1-7\nother\n": "", "other\n0-1-7\n": "", "": "", "binlog.00001\n": "",
	} {
		if got := Companion([]byte(text)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
