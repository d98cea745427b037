package binlogevent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// logOf is a log of a server with events after its format description; checksums are right.
func logOf(version string, events ...[]byte) []byte {
	body := append([]byte{4, 0}, make([]byte, 50)...)
	copy(body[2:], version)
	body = append(body, 0, 0, 0, 0, HeaderLen)
	body = append(append(body, make([]byte, 40)...), 1)
	log := append(bytes.Clone(Magic), sealed(TypeFormatDescription, body)...)
	for _, e := range events {
		log = append(log, e...)
	}
	return log
}

func sealed(typ Type, body []byte) []byte {
	b := append(inner(typ, body), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[9:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.ChecksumIEEE(b[:len(b)-4]))
	return b
}

func inner(typ Type, body []byte) []byte {
	b := append(make([]byte, HeaderLen), body...)
	b[4] = byte(typ)
	binary.LittleEndian.PutUint32(b[9:], uint32(len(b)))
	return b
}

// payload is a transaction that is stored uncompressed.
func payload(events ...[]byte) []byte {
	return sealed(TypePayload, append([]byte{2, 1, 255, 0}, bytes.Join(events, nil)...))
}

func readAll(t *testing.T, log []byte, o Options) (types []Type, err error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(log), o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err != nil {
			return types, err
		}
		if types = append(types, e.Type); len(types) > len(log) {
			t.Fatal("more events than bytes")
		}
	}
}

// TestLost reads on after what is damaged if that is wanted, and otherwise ends there.
func TestLost(t *testing.T) {
	good, xid := sealed(TypeRand, make([]byte, 16)), inner(TypeXid, make([]byte, 8))
	flipped := bytes.Clone(good)
	flipped[25] ^= 4
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[9:], 1<<31)
	offSum := payload(xid, xid)
	offSum[len(offSum)-1] ^= 1
	badInner := bytes.Clone(xid)
	binary.LittleEndian.PutUint32(badInner[9:], 7)
	for name, c := range map[string]struct {
		log  []byte
		want error
		lost int64
		read int // events after the format description
	}{
		"checksum":                    {logOf("9.7.0", flipped, good), ErrChecksum, 0, 1},
		"length":                      {logOf("9.7.0", good, long, good), ErrDamaged, int64(2 * len(good)), 1},
		"torn":                        {logOf("9.7.0", good, good[:25]), ErrTorn, 0, 1},
		"torn header":                 {logOf("9.7.0", good, good[:9]), ErrTorn, 0, 1},
		"payload that ends too early": {logOf("9.7.0", payload(xid, xid[:9]), good), ErrPayload, 0, 2},
		"payload that is cut":         {logOf("9.7.0", good, payload(xid, xid)[:70]), ErrTorn, 0, 2},
		"payload of garbage":          {logOf("9.7.0", sealed(TypePayload, []byte("\x02\x01\x00\x00garbage")), good), ErrPayload, 0, 1},
		"payload without end":         {logOf("9.7.0", sealed(TypePayload, []byte("\x02\x01")), good), ErrPayload, 0, 1},
		"unknown compression":         {logOf("9.7.0", sealed(TypePayload, []byte("\x02\x01\x07\x00garbage")), good), ErrPayload, 0, 1},
		"checksum of a payload":       {logOf("9.7.0", offSum, good), ErrChecksum, 0, 2},
		"length in a payload":         {logOf("9.7.0", payload(xid, badInner, xid), good), ErrDamaged, int64(len(badInner) + len(xid)), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readAll(t, c.log, Options{}); !errors.Is(err, c.want) || errors.Is(err, io.EOF) {
				t.Errorf("who wants it whole gets %v", err)
			}
			var told []error
			var lost int64
			types, err := readAll(t, c.log, Options{Lost: func(err error, n int64) { told, lost = append(told, err), lost+n }})
			if err != io.EOF || len(told) != 1 || !errors.Is(told[0], c.want) || lost != c.lost || len(types) != 1+c.read {
				t.Errorf("got %v, %v, %d bytes lost, told: %v; want err io.EOF, len(told) 1, c.want, lost %d, len(types) %v",
					types, err, lost, told, c.lost, 1+c.read)
			}
		})
	}
}

// TestOldServers reads logs from before checksums, if that is wanted.
func TestOldServers(t *testing.T) {
	good := inner(TypeRand, make([]byte, 16))
	for version, refused := range map[string]bool{"5.5.62-log": true, "5.2.14-MariaDB": true, "5.6.1": false, "5.3.1-MariaDB": false} {
		log := logOf(version, good)
		if !refused {
			log = logOf(version, sealed(TypeRand, make([]byte, 16)))
		}
		if _, err := readAll(t, log, Options{}); errors.Is(err, ErrNotBinlog) != refused {
			t.Errorf("%s: got %v, want errors.Is(err, ErrNotBinlog) %v", version, err, refused)
		}
		if types, err := readAll(t, log, Options{Old: true}); err != io.EOF || len(types) != 2 {
			t.Errorf("%s: got %v, %v; want err io.EOF, len(types) 2", version, types, err)
		}
	}
}

// TestParts keeps no more of an event than is wanted, also within a compressed transaction.
func TestParts(t *testing.T) {
	log := logOf("9.7.0", sealed(TypeQuery, make([]byte, 300)), payload(inner(TypeQuery, make([]byte, 300)), inner(TypeXid, make([]byte, 8)), inner(TypeQuery, make([]byte, 100))))
	r, err := NewReader(bytes.NewReader(log), Options{MaxBody: 100, Skip: func(h Header) bool { return h.Type == TypeXid }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Next()
	for i, want := range []struct {
		length int
		whole  bool
	}{{100, false}, {100, false}, {0, false}, {100, true}} {
		e, err := r.Next()
		if err != nil || len(e.Body) != want.length || e.Whole != want.whole {
			t.Errorf("event %d: got %d bytes, whole: %v, %v; want len(e.Body) %d, e.Whole %v", i, len(e.Body), e.Whole, err, want.length, want.whole)
		}
	}
	if _, err := r.Next(); err != io.EOF || r.Pos() != int64(len(log)) {
		t.Errorf("%v at %d of %d; want err io.EOF, r.Pos() %d", err, r.Pos(), len(log), int64(len(log)))
	}
}

// TestLostOnNonsense changes bytes of a log at random: reading always ends.
func TestLostOnNonsense(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	whole := logOf("9.7.0", sealed(TypeRand, make([]byte, 16)), payload(inner(TypeXid, make([]byte, 8)), inner(TypeQuery, make([]byte, 60))), sealed(TypeXid, make([]byte, 8)))
	told := 0
	for range 1_500 {
		log := bytes.Clone(whole[:len(whole)-r.IntN(2)*r.IntN(len(whole)-8)])
		for range 1 + r.IntN(4) {
			log[4+r.IntN(len(log)-4)] ^= 1 << r.IntN(8)
		}
		readAll(t, log, Options{Lost: func(error, int64) { told++ }, Old: true})
	}
	if told < 500 {
		t.Errorf("only %d damages were told, want at least 500", told)
	}
}

// TestTables reads a table map once, and again when it is another.
func TestTables(t *testing.T) {
	f := Format{Version: "9.7.0", tableIDLen: 6, server: fleet.ServerOf("9.7.0", "")}
	body := func(id byte, name string) []byte {
		b := append([]byte{id, 0, 0, 0, 0, 0, 1, 0, 1}, 's', 0, byte(len(name)))
		return append(append(b, name...), 0, 1, typeLong, 0, 0)
	}
	var m Tables[int]
	first, fresh, err := m.Map(f, body(1, "a"))
	if err != nil || !fresh || first.Name != "a" {
		t.Fatalf("got %v, %v, %v; want fresh true, Name \"a\"", first, fresh, err)
	}
	first.User = 7
	if again, fresh, _ := m.Map(f, body(1, "a")); fresh || again.User != 7 {
		t.Error("it was read again")
	}
	m.Map(f, body(2, "b"))
	if m.Get(1) != first || m.Get(2).Name != "b" || m.Get(3) != nil {
		t.Error("tables are mixed up")
	}
	if other, fresh, _ := m.Map(f, body(1, "c")); !fresh || other.Name != "c" || other.User != 0 || m.Get(1) != other {
		t.Error("another table with the same number was not seen")
	}
	odd := body(4, "x")
	odd[len(odd)-3] = 200 // an unknown type
	if x, _, err := m.Map(f, odd); err != nil || x.Err == nil || x.Name != "x" {
		t.Errorf("got %+v, %v; want an error, Name \"x\"", x, err)
	}
	if _, _, err := m.Map(f, []byte{1, 0, 0}); err == nil {
		t.Error("three bytes passed for a table")
	}
	m.Clear()
	if m.Get(2) != nil {
		t.Error("it was not forgotten")
	}
}
