package chunk

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Sum is the sum of rows: XXH3 of 128 bits of each row's raw bytes, seed 0, added modulo 2^128. The order of rows does not
// matter, and a row that is there twice counts twice.
type Sum struct{ Hi, Lo uint64 }

// Row adds a row.
func (s *Sum) Row(row []byte) { s.add(xxh3.Hash128(row)) }

// Add adds the sum of other rows.
func (s *Sum) Add(o Sum) { s.add(xxh3.Uint128(o)) }

func (s *Sum) add(h xxh3.Uint128) {
	var carry uint64
	s.Lo, carry = bits.Add64(s.Lo, h.Lo, 0)
	s.Hi, _ = bits.Add64(s.Hi, h.Hi, carry)
}

// String is the sum as 32 hexadecimal digits.
func (s Sum) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], s.Hi)
	binary.BigEndian.PutUint64(b[8:], s.Lo)
	return hex.EncodeToString(b[:])
}

// MarshalText is String.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String wrote.
func (s *Sum) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != 16 {
		return fmt.Errorf("%q is not a sum of rows: 32 hexadecimal digits", text)
	}
	s.Hi, s.Lo = binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	return nil
}

// Rows adds up rows that may come in pieces. It is a wire.RowSink.
type Rows struct {
	Sum   Sum
	Count int64
	Bytes int64

	h       *xxh3.Hasher
	started bool
}

// Piece takes the next bytes of a row.
func (r *Rows) Piece(b []byte, last bool) error {
	r.Bytes += int64(len(b))
	if last {
		r.Count++
		if !r.started {
			r.Sum.Row(b)
			return nil
		}
	}
	if r.h == nil {
		r.h = xxh3.New()
	}
	r.started = true
	if _, err := r.h.Write(b); err != nil {
		return err
	}
	if last {
		r.Sum.add(r.h.Sum128())
		r.h.Reset()
		r.started = false
	}
	return nil
}
