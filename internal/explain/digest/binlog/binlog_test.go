package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
)

// event writes one event with a checksum.
func event(typ byte, seconds uint32, body []byte) []byte {
	b := make([]byte, headerLen, headerLen+len(body)+4)
	binary.LittleEndian.PutUint32(b, seconds)
	b[4] = typ
	binary.LittleEndian.PutUint32(b[9:], uint32(headerLen+len(body)+4))
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// start is a log's magic number and format description.
func start() []byte {
	body := append([]byte{4, 0}, make([]byte, 50)...)
	copy(body[2:], "8.4.3")
	body = append(body, 0, 0, 0, 0, headerLen)
	lens := make([]byte, 40)
	lens[evTableMap-1] = 8
	body = append(append(body, lens...), 1)
	return append(append([]byte(nil), magic...), event(evFormatDescription, 1, body)...)
}

func query(thread, exec uint32, status []byte, db, text string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, thread)
	b = binary.LittleEndian.AppendUint32(b, exec)
	b = append(b, byte(len(db)), 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(status)))
	b = append(b, status...)
	return append(append(append(b, db...), 0), text...)
}

// tableOf has the columns INT and VARCHAR(20).
func tableOf(id byte) []byte {
	return append([]byte{id, 0, 0, 0, 0, 0, 1, 0, 4}, "shop\x00\x01t\x00\x02\x03\x0f\x02\x14\x00\x03"...)
}

func insertOf(id byte, rows int, last bool) []byte {
	b := []byte{id, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 3}
	if last {
		b[6] = 1
	}
	for range rows {
		b = append(b, 0, 7, 0, 0, 0, 2, 'a', 'b')
	}
	return b
}

type read struct {
	text, db      string
	rows, seconds float64
	time          int64
}

func all(t *testing.T, log []byte) (out []read, r *Reader) {
	t.Helper()
	r, err := New(io.NopCloser(bytes.NewReader(log)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		var e digest.Event
		err := r.Next(&e)
		if errors.Is(err, io.EOF) {
			return out, r
		}
		if err != nil {
			t.Fatal(err)
		}
		rows := -1.0
		if a, ok := e.Attr("Rows"); ok {
			rows = a.Num
		}
		out = append(out, read{string(e.Query), string(e.DB), rows, e.QueryTime, e.Time})
	}
}

func TestStatements(t *testing.T) {
	log := start()
	log = append(log, event(evQuery, 100, query(7, 3, []byte{0, 1, 2, 3, 4, 13, 0x40, 0xe2, 0x01}, "shop", "CREATE TABLE t (a INT)"))...)
	log = append(log, event(evQuery, 101, query(7, 0, nil, "", "BEGIN"))...)
	log = append(log, event(evTableMap, 101, tableOf(9))...)
	log = append(log, event(evWriteRows, 101, insertOf(9, 3, false))...)
	log = append(log, event(evWriteRows, 101, insertOf(9, 2, true))...)
	log = append(log, event(evRowsQuery, 102, append([]byte{5}, "INSERT INTO t SELECT 1"...))...)
	log = append(log, event(evTableMap, 102, tableOf(9))...)
	log = append(log, event(evWriteRows, 102, insertOf(9, 1, true))...)
	got, r := all(t, log)
	want := []read{{"CREATE TABLE t (a INT)", "shop", -1, 3, 100_123456}, {"INSERT INTO `shop`.`t`", "shop", 5, 0, 101_000000}, {"INSERT INTO t SELECT 1", "shop", 1, 0, 102_000000}}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want length %v", got, len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if info := r.Info(); info.Server != "8.4.3" || info.Bytes != int64(len(log)) || info.Events != 3 || len(r.Skipped()) != 0 {
		t.Errorf("got %+v %v; want Server \"8.4.3\", Bytes %v, Events 3, no r.Skipped()", info, r.Skipped(), int64(len(log)))
	}
}

// What is lost is counted, and the rest is read.
func TestDamage(t *testing.T) {
	create := event(evQuery, 100, query(7, 0, nil, "shop", "CREATE TABLE t (a INT)"))
	bad := bytes.Clone(create)
	bad[30] ^= 1
	short := event(evTableMap, 1, []byte{1, 2, 3})
	huge := bytes.Clone(create)
	binary.LittleEndian.PutUint32(huge[9:], 1<<31+1)
	tiny := bytes.Clone(create)
	binary.LittleEndian.PutUint32(tiny[9:], 5)
	for _, c := range []struct {
		log   []byte
		reads int
		why   string
	}{
		{append(start(), append(bad, create...)...), 1, skipChecksum},
		{append(start(), append(short, create...)...), 1, skipBody},
		{append(start(), append(create, huge...)...), 1, skipDamaged},
		{append(start(), append(create, tiny...)...), 1, skipDamaged},
		{append(start(), append(create, create[:len(create)-5]...)...), 1, skipTruncated},
		{append(start(), append(create, create[:7]...)...), 1, skipTruncated},
		{append(start(), append(event(evWriteRows, 1, insertOf(3, 1, true)), create...)...), 1, skipBody}, // no table map
		{append(append(start(), event(evTableMap, 1, tableOf(3))...), append(event(evWriteRows, 1, insertOf(3, 1, true)[:18]), create...)...), 2, skipRows},
		{append(start(), append(event(evPayload, 1, []byte("\x02\x01\x00\x00not zstd")), create...)...), 1, skipPayload},
		{append(start(), append(event(evQueryZip, 1, query(1, 0, nil, "", "\x81\xffgarbage")), create...)...), 1, skipBody},
	} {
		got, r := all(t, c.log)
		if len(got) != c.reads || r.Skipped()[c.why] == 0 {
			t.Errorf("%s: got %d statements, %v; want len(got) %d, r.Skipped()[c.why] not 0", c.why, len(got), r.Skipped(), c.reads)
		}
	}
	for head, says := range map[string]string{"": "not a binary log", "\xfdbin": "encrypted", "# Time:": "not a binary log"} {
		if _, err := New(io.NopCloser(strings.NewReader(head))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v; want an error, %q in the error", head, err, says)
		}
	}
}

func FuzzReader(f *testing.F) {
	log := append(start(), event(evQuery, 100, query(7, 3, []byte{12, 2, 'a', 0, 'b', 0, 128, 1, 2, 3}, "shop", "CREATE TABLE t (a INT)"))...)
	log = append(log, event(evTableMap, 101, tableOf(9))...)
	log = append(log, event(evWriteRows, 101, insertOf(9, 3, true))...)
	log = append(log, event(evGTID, 101, append(make([]byte, 25), append([]byte{2}, make([]byte, 40)...)...))...)
	f.Add(log)
	// Without checksums, so that changed bytes are looked at.
	plain := append([]byte(nil), start()...)
	plain[len(plain)-5] = 0
	for _, e := range [][]byte{event(evQuery, 100, query(7, 3, []byte{12, 2, 'a', 0, 'b', 0, 128, 1, 2, 3}, "shop", "CREATE TABLE t (a INT)")), event(evTableMap, 101, tableOf(9)),
		event(evWriteRows, 101, insertOf(9, 3, true)), event(evPayload, 1, []byte("\x02\x01\xff\x00abc"))} {
		plain = append(plain, e[:len(e)-4]...)
		binary.LittleEndian.PutUint32(plain[len(plain)-len(e)+4+9:], uint32(len(e)-4))
	}
	f.Add(plain)
	f.Add(append(start(), event(evPayload, 1, []byte("\x02\x01\xff\x01\x01\x05\x00abc"))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := New(io.NopCloser(bytes.NewReader(b)))
		if err != nil {
			return
		}
		defer r.Close()
		var e digest.Event
		for n := 0; ; n++ {
			if err := r.Next(&e); err != nil {
				return
			}
			if n > len(b) {
				t.Fatalf("more statements than bytes")
			}
		}
	})
}
