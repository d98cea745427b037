package physical

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql"
)

// sampleFiles are files of odd sizes and names.
func sampleFiles() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	files := map[string][]byte{"empty": nil, "ibdata1": nil, "shop/größe @0040.ibd": nil, "a/b/c": []byte("x"), "xtrabackup_checkpoints": []byte("to_lsn = 5\n")}
	for name, n := range map[string]int{"ibdata1": 2*writeChunk + 17, "shop/größe @0040.ibd": writeChunk} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		files[name] = b
	}
	return files
}

func streamOf(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := newStreamWriter(&b)
	for name, content := range files {
		if err := w.file(name, bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func compareFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; not %d", name, len(got), err, len(want))
		}
	}
}

func TestStream(t *testing.T) {
	files := sampleFiles()
	stream := streamOf(t, files)
	n, kept, err := scan(bytes.NewReader(stream), toolFile)
	if err != nil || n != int64(len(files)) || len(kept) != 1 || string(kept["xtrabackup_checkpoints"]) != "to_lsn = 5\n" {
		t.Fatalf("got %v, %v, %v; want n %v, len(kept) 1, string(kept[\"xtrabackup_checkpoints\"]) \"to_lsn = 5\\n\"", n, kept, err, int64(len(files)))
	}
	dir := t.TempDir()
	if n, err := extract(t.Context(), bytes.NewReader(stream), dir, func(int64) {}); err != nil || n != int64(len(files)) {
		t.Fatalf("got %v, %v; want %v", n, err, int64(len(files)))
	}
	compareFiles(t, dir, files)
}

// TestStreamTool: MariaDB's own tool reads what we write, and we read what it writes.
func TestStreamTool(t *testing.T) {
	tool, err := osexec.LookPath("mbstream")
	if err != nil {
		lack.Of(t, "mbstream is not installed: run script/setup")
	}
	files := sampleFiles()
	delete(files, "a/b/c") // the tool makes one level of directories only, as servers have them
	delete(files, "empty") // the tool writes no chunk for an empty file's content, and no end
	dir := t.TempDir()
	cmd := osexec.Command(tool, "-x", "-C", dir)
	cmd.Stdin = bytes.NewReader(streamOf(t, files))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	compareFiles(t, dir, files)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	cmd = osexec.Command(tool, append([]string{"-c"}, names...)...)
	cmd.Dir = dir
	stream, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	if n, err := extract(t.Context(), bytes.NewReader(stream), again, func(int64) {}); err != nil || n != int64(len(files)) {
		t.Fatalf("got %v, %v; want %v", n, err, int64(len(files)))
	}
	compareFiles(t, again, files)
}

// TestStreamDamaged: no cut and no changed bit of a stream goes unnoticed. The flags are free for others to use.
func TestStreamDamaged(t *testing.T) {
	stream := streamOf(t, map[string][]byte{"a": []byte("the first file"), "b/c": []byte("another one")})
	ends := map[int]bool{0: true, len(stream): true}
	first := bytes.Index(stream[9:], []byte(chunkMagic+"\x00E\x01\x00\x00\x00a")) + 9 + 15
	second := bytes.Index(stream[9:], []byte(chunkMagic+"\x00E\x03\x00\x00\x00b/c")) + 9 + 17
	ends[first], ends[second] = first > 15, second > 17 // after a whole file a stream may end: the number of files shows that
	for i := range stream {
		if _, _, err := scan(bytes.NewReader(stream[:i]), toolFile); !ends[i] && !errors.Is(err, repo.ErrDamaged) {
			t.Errorf("cut at %d of %d: %v", i, len(stream), err)
		}
		flags := string(stream[max(0, i-8):i]) == chunkMagic
		if placeByte(stream, i) {
			continue // its offset in the file: the format has no checksum for that, the parts have one for everything
		}
		for bit := range 8 {
			b := slices.Clone(stream)
			b[i] ^= 1 << bit
			if _, _, err := scan(bytes.NewReader(b), toolFile); err == nil && !flags && !pathByte(stream, i) {
				t.Errorf("bit %d of byte %d is not missed", bit, i)
			}
		}
	}
}

// placeByte reports whether a byte is one of a payload's offset.
func placeByte(stream []byte, i int) bool {
	for at := range stream {
		if bytes.HasPrefix(stream[at:], []byte(chunkMagic+"\x00P")) {
			offset := at + 14 + int(binary.LittleEndian.Uint32(stream[at+10:])) + 8
			if i >= offset && i < offset+8 {
				return true
			}
		}
	}
	return false
}

// pathByte reports whether a byte is one of the name of a file, which has no checksum: where names differ, one has no end.
func pathByte(stream []byte, i int) bool {
	return stream[i] == 'a' || stream[i] == 'b' || stream[i] == 'c'
}

// TestSparse reads a chunk as xtrabackup writes it for files with holes (its format's description: xbstream.md).
func TestSparse(t *testing.T) {
	var b bytes.Buffer
	payload := []byte("onetwo")
	b.WriteString(chunkMagic + "\x00S")
	word := func(n uint32) { b.Write(binary.LittleEndian.AppendUint32(nil, n)) }
	long := func(n uint64) { b.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	word(1)
	b.WriteString("s")
	word(3) // holes
	long(uint64(len(payload)))
	long(0)
	word(crc32.ChecksumIEEE(payload))
	for _, h := range [][2]uint32{{0, 3}, {100, 3}, {50, 0}} {
		word(h[0])
		word(h[1])
	}
	b.Write(payload)
	b.WriteString(chunkMagic + "\x00E")
	word(1)
	b.WriteString("s")
	dir := t.TempDir()
	if _, err := extract(t.Context(), &b, dir, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	want := append(append([]byte("one"), make([]byte, 100)...), "two"...)
	want = append(want, make([]byte, 50)...)
	compareFiles(t, dir, map[string][]byte{"s": want})
}

// TestExtractStays: no file leaves the directory.
func TestExtractStays(t *testing.T) {
	for _, name := range []string{"../x", "/etc/x", "a/../../x", ".."} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := extract(t.Context(), bytes.NewReader(streamOf(t, map[string][]byte{name: []byte("x")})), dir, func(int64) {}); !errors.Is(err, repo.ErrDamaged) {
			t.Errorf("%s: got %v, want repo.ErrDamaged", name, err)
		}
		if _, err := extract(t.Context(), bytes.NewReader(streamOf(t, map[string][]byte{directoriesFile: []byte(name + "\n")})), dir, func(int64) {}); !errors.Is(err, repo.ErrDamaged) {
			t.Errorf("directory %s: got %v, want repo.ErrDamaged", name, err)
		}
	}
}

// TestParts: what goes into parts comes out of them, in its order, whatever the number of workers; a place that fails ends
// the writer.
func TestParts(t *testing.T) {
	r, place := newRepo(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), (3*partSize+12345)/16)
	for _, threads := range []int{3} {
		var list []repo.Part
		s, err := newSink(t.Context(), r, "id", threads, func(p repo.Part) error { list = append(list, p); return nil })
		if err != nil {
			t.Fatal(err)
		}
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1_000_003)
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Close(); err != nil || len(list) != 4 || list[3].Number != 3 {
			t.Fatalf("got %+v, %v; want len(list) 4, list[3].Number 3", list, err)
		}
		src := newSource(t.Context(), r, "id", list, threads)
		got, err := io.ReadAll(src)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		src.Close()
		// Parts in another order, or a missing one, are found.
		if err := os.Remove(filepath.Join(string(place), "physical", "id", "000002")); err != nil {
			t.Fatal(err)
		}
		src = newSource(t.Context(), r, "id", list, threads)
		if got, err := io.ReadAll(src); !errors.Is(err, repo.ErrDamaged) || len(got) != 2*partSize {
			t.Errorf("got %d bytes, %v; want repo.ErrDamaged, len(got) %d", len(got), err, 2*partSize)
		}
		src.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	src := newSource(ctx, r, "id", []repo.Part{{}}, 1)
	cancel()
	if _, err := io.ReadAll(src); err == nil {
		t.Error("a reader that was ended gives a whole stream")
	}
	full := errors.New("full")
	s, err := newSink(t.Context(), r, "id", 2, func(repo.Part) error { return full })
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Write(data)
	}
	if cerr := s.Close(); !errors.Is(err, full) || !errors.Is(cerr, full) {
		t.Errorf("got %v, %v; want full, full", err, cerr)
	}
}

func TestCommandLines(t *testing.T) {
	percona := mysql.Of(fleet.Server{Flavour: fleet.FlavourPercona, Number: 80400, Seat: fleet.Seat{DataDir: "/d"}})
	maria := mysql.Of(fleet.Server{Flavour: fleet.FlavourMariaDB, Number: 101119, Seat: fleet.Seat{DataDir: "/d"}})
	parent := &repo.Header{Stream: &repo.Stream{ToLSN: 7}}
	for _, c := range []struct {
		got  []string
		want string
	}{
		{backupArgs(mysql.ToolMariaDBBackup, maria, nil, 5*time.Second, "/t", true), "--defaults-file=/proc/self/fd/3 --backup --stream=xbstream --target-dir=/t --datadir=/d --slave-info"},
		{backupArgs(mysql.ToolMariaDBBackup, maria, parent, 0, "/t", false), "--defaults-file=/proc/self/fd/3 --backup --stream=xbstream --target-dir=/t --datadir=/d --incremental-lsn=7"},
		// Never run: xtrabackup could not be had. These follow its manual.
		{backupArgs(mysql.ToolXtraBackup, percona, parent, 5*time.Second, "/t", true), "--defaults-file=/proc/self/fd/3 --backup --stream=xbstream --target-dir=/t --datadir=/d --incremental-lsn=7 --slave-info --lock-ddl-timeout=15 --ftwrl-wait-timeout=15 --lock-ddl=REDUCED"},
		{prepareArgs(mysql.ToolXtraBackup, "/t", "", false, 0), "--prepare --target-dir=/t --apply-log-only"},
		{prepareArgs(mysql.ToolXtraBackup, "/t", "/i", true, 1<<30), "--prepare --target-dir=/t --incremental-dir=/i --use-memory=1073741824"},
		{prepareArgs(mysql.ToolMariaDBBackup, "/t", "", false, 0), "--prepare --target-dir=/t"},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("%s\nnot\n%s", got, c.want)
		}
	}
}

func TestToolFiles(t *testing.T) {
	for text, want := range map[string]repo.Position{
		"binlog.000001\t13036123\t0-19337-9\n": {File: "binlog.000001", Offset: 13036123, GTIDSet: "0-19337-9"},
		"b.1\t4\n":                             {File: "b.1", Offset: 4},
		"b.1\t4\t11111111-1111-1111-1111-111111111111:1-5,\n22222222-2222-2222-2222-222222222222:1\n": {File: "b.1", Offset: 4, GTIDSet: "11111111-1111-1111-1111-111111111111:1-5,22222222-2222-2222-2222-222222222222:1"},
		"": {},
	} {
		if got, err := position(text); err != nil || got.File != want.File || got.Offset != want.Offset || got.GTIDSet != want.GTIDSet {
			t.Errorf("%q: got %+v, %v; want File %v, Offset %v, GTIDSet %v", text, got, err, want.File, want.Offset, want.GTIDSet)
		}
	}
	if _, err := position("b.1\tx"); err == nil {
		t.Error("no number, and no error")
	}
	for text, want := range map[string]repo.Channel{
		"CHANGE MASTER TO MASTER_LOG_FILE='b.3', MASTER_LOG_POS=517;\n":                                                {File: "b.3", Offset: 517},
		"SET GLOBAL gtid_slave_pos = '0-1-5';\nCHANGE MASTER TO master_use_gtid = slave_pos\n":                         {GTIDSet: "0-1-5"},
		"SET GLOBAL gtid_purged='11111111-1111-1111-1111-111111111111:1-5';\nCHANGE MASTER TO MASTER_AUTO_POSITION=1;": {GTIDSet: "11111111-1111-1111-1111-111111111111:1-5"},
	} {
		if got, ok := sourceOf(text); !ok || got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got, err := recoveredPosition("1795288293478661\n1795288294162127\n./binlog.000001\n1765\n3abbdd0d-e5df-11f1-91ff-02fc00000001:1-7,\n4abbdd0d-e5df-11f1-91ff-02fc00000001:1\n"); err != nil ||
		got.File != "binlog.000001" || got.Offset != 1765 || got.GTIDSet != "3abbdd0d-e5df-11f1-91ff-02fc00000001:1-7,4abbdd0d-e5df-11f1-91ff-02fc00000001:1" {
		t.Errorf("got %+v, %v; want File \"binlog.000001\", Offset 1765, GTIDSet \"3abbdd0d-e5df-11f1-91ff-02fc00000001:1-7,4abbdd0d-e5df-11f1-91ff-02fc00000001:1\"",
			got, err)
	}
	if _, err := recoveredPosition("1\n2\n"); err == nil {
		t.Error("half a file, and no error")
	}
}
