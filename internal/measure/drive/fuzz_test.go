package drive

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// script is a link whose server has said all it will say.
type script struct {
	said []byte
	step int // bytes a read at most
}

func (w *script) Write(b []byte) (int, error) { return len(b), nil }
func (w *script) close() error                { return nil }
func (w *script) SetPatience(time.Duration)   {}
func (w *script) transport() string           { return "script" }

func (w *script) Read(b []byte) (int, error) {
	if len(w.said) == 0 {
		return 0, ErrLost
	}
	n := copy(b[:min(len(b), w.step)], w.said)
	w.said = w.said[n:]
	return n, nil
}

// known reports whether an error is one of those that a session may give.
func known(err error) bool {
	var server *ServerError
	return err == nil || errors.Is(err, ErrLost) || errors.As(err, &server)
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
			t.Fatalf("got %v, want known(err) true", err)
		}
		if err != nil {
			st = &Stmt{cols: []column{{oid: oidInt4}, {}}}
		}
		st.Keep, st.params, st.oids = true, 0, nil
		for range 3 {
			if _, err := s.Do(st); !known(err) {
				t.Fatalf("got %v, want known(err) true", err)
			}
			if _, err := s.Exec(Read, "SELECT 1"); !known(err) {
				t.Fatalf("got %v, want known(err) true", err)
			}
		}
	})
}
