package wire

import (
	"errors"
	"io"
	"slices"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

// script is a link whose server has said all it will say.
type script struct {
	said []byte
	step int // bytes a read at most
	sent []byte
}

func (s *script) Write(b []byte) (int, error) { s.sent = append(s.sent, b...); return len(b), nil }

func (s *script) Read(b []byte) (int, error) {
	if len(s.said) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.step)], s.said)
	s.said = s.said[n:]
	return n, nil
}

func over(said []byte, step, buffer int) (*Conn, *script) {
	link := &script{said: said, step: max(step, 1)}
	c := &Conn{}
	c.in.buf = make([]byte, buffer)
	c.Over(link)
	return c, link
}

// known reports whether an error is one of those that a command may give.
func known(err error) bool {
	var refused *driver.MySQLError
	var own *SinkError
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, driver.ErrMalformPkt) || errors.Is(err, driver.ErrPktSync) ||
		errors.As(err, &refused) || errors.As(err, &own)
}

// framed puts payloads into packets.
func framed(first byte, payloads ...[]byte) (out []byte) {
	for i, p := range payloads {
		out = append(append(out, byte(len(p)), byte(len(p)>>8), byte(len(p)>>16), first+byte(i)), p...)
	}
	return out
}

func aColumn(kind byte) []byte {
	return []byte{3, 'd', 'e', 'f', 0, 0, 0, 1, 'c', 0, 12, 33, 0, 0, 1, 0, 0, kind, 0, 0, 0, 0, 0}
}

// sink reads the rows of a statement.
type sink struct{ st *Statement }

func (s *sink) Piece(b []byte, _ bool) error {
	_, err := AppendRow(nil, s.st.Columns, b)
	return err
}

// FuzzAnswers has malformed answers read: no panic, no endless loop, no wild allocation, and only errors that are known.
func FuzzAnswers(f *testing.F) {
	prepared := []byte{0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}
	for _, kind := range []byte{TypeTiny, TypeShort, TypeLong, TypeFloat, TypeDouble, TypeLonglong, TypeDate, TypeDatetime, TypeTime, TypeVarString, TypeNull} {
		rows := slices.Concat(framed(1, prepared, aColumn(kind), aColumn(kind)), framed(1, []byte{1}, aColumn(kind), []byte{0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{0, 4}, []byte{0xfe, 0, 0, 2, 0}))
		f.Add(rows, byte(3), 7)
		f.Add(slices.Concat(rows[:len(rows)-3], rows), byte(1), 1000)
	}
	f.Add(framed(1, []byte{0xff, 0x28, 4, '#', '2', '3', '0', '0', '0', 'D', 'u', 'p'}), byte(0), 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0, 0xff}, byte(2), 1)
	f.Add(framed(1, []byte{}, []byte{}, []byte{0}), byte(2), 1)
	f.Add(framed(1, []byte{0xfb, 'f'}, []byte{0}), byte(6), 1)
	f.Fuzz(func(t *testing.T, said []byte, flags byte, step int) {
		c, _ := over(said, step, 64)
		if flags&1 != 0 {
			c.flags |= capDeprecateEOF
		}
		if flags&2 != 0 {
			c.ext |= extCacheMetadata
		}
		st, err := c.Prepare("SELECT ?")
		if !known(err) {
			t.Fatalf("got %v, want known(err) true", err)
		}
		if err != nil {
			st = &Statement{execute: make([]byte, 10), Columns: []Column{{Type: TypeLong}, {Type: TypeTime}, {Type: TypeVarString}}}
		}
		st.Params = 0
		for range 3 {
			var binary, text RowSink
			if flags&4 == 0 {
				binary, text = &sink{st}, c.Each(func([][]byte) error { return nil })
			}
			if _, err := c.Execute(st, nil, binary); !known(err) {
				t.Fatalf("got %v, want known(err) true", err)
			}
			if _, err := c.Query("SELECT 1", nil, text); !known(err) {
				t.Fatalf("got %v, want known(err) true", err)
			}
			if err := c.Severally(flags&8 != 0); !known(err) {
				t.Fatalf("got %v, want known(err) true", err)
			}
		}
		if len(c.in.buf) != 64 || cap(c.in.joined) > 2*len(said)+64 {
			t.Errorf("buffers of %d and %d bytes for %d that came; want len(c.in.buf) 64, cap(c.in.joined) at most %d",
				len(c.in.buf), cap(c.in.joined), len(said), 2*len(said)+64)
		}
		// As a stream of events.
		c, _ = over(said, step, 64)
		c.in.sequence = 1
		e := &Events{conn: c, semiSync: flags&1 != 0}
		for err = nil; err == nil; {
			_, _, err = e.Next(0)
		}
		if !known(err) && !errors.Is(err, ErrEndOfLogs) {
			t.Fatal(err)
		}
	})
}
