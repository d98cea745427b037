package load

import (
	"errors"
	"fmt"
	"io"
)

// inserts turns the raw rows of a feed into INSERT statements of about size bytes, for servers that take no local file. The
// session has SET NAMES binary, so that a string is the bytes between its quotes.
type inserts struct {
	f      *feed
	prefix string // INSERT INTO … VALUES
	json   []bool // which columns take text only, no bytes
	size   int    // aim of a statement
	most   int    // what the server takes (max_allowed_packet)
	buf    []byte
	carry  []byte // a row that is read and did not go into the statement before
}

// errTooLarge says that a row does not go into an INSERT.
var errTooLarge = errors.New("a row is larger than the server accepts in an INSERT")

// next returns the next statement of the batch and its rows; "" at the end of it.
func (s *inserts) next() (statement string, rows int64, err error) {
	s.buf = append(s.buf[:0], s.prefix...)
	if len(s.carry) > 0 {
		s.buf, rows = append(s.buf, s.carry...), 1
		s.carry = s.carry[:0]
	}
	for len(s.buf) < s.size && (s.f.rows == 0 || s.f.raw < s.f.limit) {
		before := len(s.buf)
		if rows > 0 {
			s.buf = append(s.buf, ',')
		}
		row := len(s.buf)
		err := s.row()
		if errors.Is(err, io.EOF) {
			s.buf = s.buf[:before]
			s.f.ended = true
			break
		}
		if err != nil {
			return "", 0, err
		}
		s.f.rows++
		if rows > 0 && len(s.buf) > s.most { // by itself it goes
			s.carry = append(s.carry, s.buf[row:]...)
			s.buf = s.buf[:before]
			break
		}
		rows++
	}
	if rows == 0 {
		return "", 0, nil
	}
	return string(s.buf), rows, nil
}

func (s *inserts) row() error {
	begin := len(s.buf)
	for col := range s.f.columns {
		null, err := s.f.length()
		if errors.Is(err, io.EOF) && col == 0 {
			return err
		}
		if err != nil {
			return torn(err)
		}
		if col == 0 {
			s.buf = append(s.buf, '(')
		} else {
			s.buf = append(s.buf, ',')
		}
		if null {
			s.buf = append(s.buf, "NULL"...)
			continue
		}
		if err := s.value(s.json[col], begin+s.most-len(s.prefix)); err != nil {
			return err
		}
	}
	s.buf = append(s.buf, ')')
	s.f.state, s.f.col = atValue, 0
	return nil
}

// value appends a value; most is how far its row may reach.
func (s *inserts) value(text bool, most int) error {
	large := func() error {
		return fmt.Errorf("%w: over %d bytes: raise max_allowed_packet there, or set local_infile=ON", errTooLarge, s.most)
	}
	if s.f.left > uint64(max(0, most-len(s.buf))) {
		return large()
	}
	if text {
		s.buf = append(s.buf, "CONVERT("...)
	}
	s.buf = append(s.buf, '\'')
	for s.f.left > 0 {
		if err := s.f.need(1); err != nil {
			return torn(err)
		}
		k := s.f.w - s.f.r
		if uint64(k) > s.f.left {
			k = int(s.f.left)
		}
		for _, b := range s.f.win[s.f.r : s.f.r+k] {
			switch b {
			case '\'', '\\':
				s.buf = append(s.buf, '\\', b)
			case 0:
				s.buf = append(s.buf, '\\', '0')
			default:
				s.buf = append(s.buf, b)
			}
		}
		s.f.took(k)
		s.f.left -= uint64(k)
		if len(s.buf) > most { // it grows where bytes are escaped
			return large()
		}
	}
	s.buf = append(s.buf, '\'')
	if text {
		s.buf = append(s.buf, " USING utf8mb4)"...)
	}
	return nil
}
