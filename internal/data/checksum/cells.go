package checksum

import (
	"encoding/binary"
	"errors"

	"github.com/zeebo/xxh3"
)

// maxHead is how much of a value is kept to show and to compare by its meaning.
const maxHead = 16 << 10

// cell is a value of a row: all of a short one, the beginning and the hash of a long one.
type cell struct {
	null bool
	size int64
	hash xxh3.Uint128
	head []byte
}

// equal reports whether two values have the same bytes.
func (c cell) equal(o cell) bool {
	return c.null == o.null && c.size == o.size && c.hash == o.hash
}

// whole reports whether all of the value is in head.
func (c cell) whole() bool { return int64(len(c.head)) == c.size }

var errRow = errors.New("a row that cannot be read")

// cells takes rows apart as they come, in pieces of any size, in bounded memory. It is a wire.RowSink. Source of the form:
// MySQL's "Protocol::LengthEncodedString".
type cells struct {
	columns int
	heads   bool // keep the beginning of all values; else of those that want names
	want    []bool
	row     func(hash xxh3.Uint128, row []cell) error // the cells are the callee's

	whole xxh3.Hasher
	value xxh3.Hasher
	list  []cell
	count [9]byte // of a length that is cut in the middle
	have  int
	need  int    // bytes of the length
	left  uint64 // of the value
	in    bool   // within a value
}

func newCells(columns int, want []bool, row func(xxh3.Uint128, []cell) error) *cells {
	return &cells{columns: columns, want: want, heads: want == nil, row: row}
}

// Piece takes the next bytes of a row.
func (p *cells) Piece(b []byte, last bool) error {
	p.whole.Write(b)
	for len(b) > 0 {
		if p.in {
			b = p.body(b)
			continue
		}
		if p.have == 0 {
			switch c := b[0]; {
			case c == 0xfb:
				p.list = append(p.list, cell{null: true})
				b = b[1:]
				continue
			case c < 0xfb:
				p.need = 1
			case c == 0xfc:
				p.need = 3
			case c == 0xfd:
				p.need = 4
			case c == 0xfe:
				p.need = 9
			default:
				return errRow
			}
		}
		n := copy(p.count[p.have:p.need], b)
		p.have += n
		b = b[n:]
		if p.have == p.need {
			p.begin()
		}
	}
	if !last {
		return nil
	}
	if p.in || p.have > 0 || len(p.list) != p.columns {
		return errRow
	}
	list := p.list
	p.list = make([]cell, 0, p.columns)
	hash := p.whole.Sum128()
	p.whole.Reset()
	return p.row(hash, list)
}

// begin begins a value whose length is there.
func (p *cells) begin() {
	p.left = uint64(p.count[0])
	if p.need > 1 {
		var wide [8]byte
		copy(wide[:], p.count[1:p.need])
		p.left = binary.LittleEndian.Uint64(wide[:])
	}
	p.have = 0
	p.list = append(p.list, cell{size: int64(p.left)})
	p.value.Reset()
	p.in = true
	if p.left == 0 {
		p.end()
	}
}

// body takes what belongs to the value from b and returns the rest.
func (p *cells) body(b []byte) []byte {
	n := int(min(uint64(len(b)), p.left))
	c := &p.list[len(p.list)-1]
	p.value.Write(b[:n])
	if p.heads || len(p.list) <= len(p.want) && p.want[len(p.list)-1] {
		if room := maxHead - len(c.head); room > 0 {
			c.head = append(c.head, b[:min(room, n)]...)
		}
	}
	if p.left -= uint64(n); p.left == 0 {
		p.end()
	}
	return b[n:]
}

func (p *cells) end() {
	p.list[len(p.list)-1].hash = p.value.Sum128()
	p.in = false
}
