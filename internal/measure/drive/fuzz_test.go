package drive

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
)

// script is a wire whose server has said all it will say.
type script struct {
	said []byte
	step int // bytes a read at most
}

func (w *script) write([]byte) error        { return nil }
func (w *script) close() error              { return nil }
func (w *script) SetPatience(time.Duration) {}
func (w *script) transport() string         { return "script" }

func (w *script) read(b []byte) (int, error) {
	if len(w.said) == 0 {
		return 0, ErrLost
	}
	n := copy(b[:min(len(b), w.step)], w.said)
	w.said = w.said[n:]
	return n, nil
}

// known says whether an error is one of those that a session may give.
func known(err error) bool {
	var server *ServerError
	return err == nil || errors.Is(err, ErrLost) || errors.As(err, &server)
}

// packets puts payloads into MySQL's packets.
func packets(payloads ...[]byte) (out []byte) {
	for i, p := range payloads {
		out = append(append(out, byte(len(p)), byte(len(p)>>8), 0, byte(i)), p...)
	}
	return out
}

func aColumn(kind byte) []byte {
	out := []byte{3, 'd', 'e', 'f', 0, 0, 0, 1, 'c', 0, 12, 33, 0, 0, 1, 0, 0, kind, 0, 0, 0, 0, 0}
	return out
}

// FuzzMySQL has malformed answers read: no panic, no endless loop, no wild allocation, and only errors that are known.
func FuzzMySQL(f *testing.F) {
	prepared := []byte{0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}
	for _, kind := range []byte{typeTiny, typeShort, typeLong, typeFloat, typeDouble, typeLonglong, typeDate, typeDatetime, typeTime, typeVarString, typeNull} {
		rows := packets(prepared, aColumn(kind), aColumn(kind), []byte{1}, aColumn(kind), []byte{0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{0, 4}, []byte{0xfe, 0, 0, 2, 0})
		f.Add(rows, byte(3), 7)
		f.Add(slices.Concat(rows[:len(rows)-3], rows), byte(1), 1000)
	}
	f.Add(packets([]byte{0xff, 0x28, 4, '#', '2', '3', '0', '0', '0', 'D', 'u', 'p'}), byte(0), 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0, 0xff}, byte(2), 1)
	f.Add(packets([]byte{}, []byte{}, []byte{0}), byte(2), 1)
	f.Fuzz(func(t *testing.T, said []byte, flags byte, step int) {
		if step < 1 {
			step = 1
		}
		s := &mysqlSession{wire: &script{said, step}, deprecateEOF: flags&1 != 0, cacheMetadata: flags&2 != 0, in: make([]byte, 64)}
		st, err := s.Prepare(Read, "SELECT ?")
		if !known(err) {
			t.Fatal(err)
		}
		if err != nil {
			st = &Stmt{packet: make([]byte, 14), cols: []column{{kind: typeLong}, {kind: typeTime}, {kind: typeVarString}}}
		}
		st.Keep = flags&4 == 0
		st.params = 0
		for range 3 {
			if _, err := s.Do(st); !known(err) {
				t.Fatal(err)
			}
			if _, err := s.text(Read, "SELECT 1", true); !known(err) {
				t.Fatal(err)
			}
		}
		if len(s.in) > 1<<25 {
			t.Errorf("a buffer of %d bytes", len(s.in))
		}
	})
}

// FuzzPostgres is the same for PostgreSQL.
func FuzzPostgres(f *testing.F) {
	message := func(kind byte, p ...byte) []byte { return append([]byte{kind, 0, 0, 0, byte(4 + len(p))}, p...) }
	columns := message('T', 0, 1, 'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 0, 0, 0, 0, 0, 0)
	ready := message('Z', 'I')
	f.Add(bytes.Join([][]byte{message('1'), message('t', 0, 1, 0, 0, 0, 23), columns, ready, message('2'), message('D', 0, 1, 0, 0, 0, 1, '7'), message('C', 'S', 'E', 'L', ' ', '1', 0), ready}, nil), 5)
	f.Add(bytes.Join([][]byte{message('E', 'C', '2', '3', '5', '0', '5', 0, 'M', 'd', 0, 0), ready, columns, message('D', 0, 1, 0xff, 0xff, 0xff, 0xff), ready}, nil), 1)
	f.Add([]byte{'D', 0x7f, 0xff, 0xff, 0xff}, 9)
	f.Fuzz(func(t *testing.T, said []byte, step int) {
		if step < 1 {
			step = 1
		}
		s := newPostgresSession(&script{said, step}, 0)
		s.in = s.in[:64]
		st, err := s.Prepare(Read, "SELECT $1")
		if !known(err) {
			t.Fatal(err)
		}
		if err != nil {
			st = &Stmt{cols: []column{{oid: oidInt4}, {}}}
		}
		st.Keep, st.params, st.oids = true, 0, nil
		for range 3 {
			if _, err := s.Do(st); !known(err) {
				t.Fatal(err)
			}
			if _, err := s.Exec(Read, "SELECT 1"); !known(err) {
				t.Fatal(err)
			}
		}
	})
}
