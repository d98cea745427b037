package drive

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Types of fields. Source: enum_field_types of both servers.
const (
	typeTiny      = 1
	typeShort     = 2
	typeLong      = 3
	typeFloat     = 4
	typeDouble    = 5
	typeNull      = 6
	typeTimestamp = 7
	typeLonglong  = 8
	typeInt24     = 9
	typeDate      = 10
	typeTime      = 11
	typeDatetime  = 12
	typeYear      = 13
	typeVarString = 253

	flagUnsigned = 32
)

// length reads a length-encoded number.
func length(p []byte) (n uint64, rest []byte, ok bool) {
	if len(p) == 0 {
		return 0, nil, false
	}
	size := 0
	switch p[0] {
	case 0xfc:
		size = 2
	case 0xfd:
		size = 3
	case 0xfe:
		size = 8
	case 0xfb, 0xff:
		return 0, nil, false
	default:
		return uint64(p[0]), p[1:], true
	}
	if len(p) < 1+size {
		return 0, nil, false
	}
	for i := size; i > 0; i-- {
		n = n<<8 | uint64(p[i])
	}
	return n, p[1+size:], true
}

func appendLength(dst []byte, n int) []byte {
	switch {
	case n < 0xfb:
		return append(dst, byte(n))
	case n < 1<<16:
		return append(dst, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(dst, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(dst, 0xfe), uint64(n))
}

// definition reads what is needed of a column's definition.
func definition(p []byte) (column, error) {
	for range 6 { // catalogue, schema, table, original table, name, original name
		n, rest, ok := length(p)
		if !ok || uint64(len(rest)) < n {
			return column{}, malformed("definition of a column")
		}
		p = rest[n:]
	}
	// MariaDB's extended metadata, where it is agreed to, would stand here; it is not agreed to.
	if len(p) < 11 {
		return column{}, malformed("definition of a column")
	}
	return column{kind: p[7], unsigned: binary.LittleEndian.Uint16(p[8:])&flagUnsigned != 0}, nil
}

// appendRow reads one row of the binary protocol.
func appendRow(dst []Value, cols []column, p []byte) ([]Value, error) {
	nulls := (len(cols) + 9) / 8
	if len(p) < 1+nulls {
		return dst, malformed("row")
	}
	set, p := p[1:1+nulls], p[1+nulls:]
	for i, c := range cols {
		if set[(i+2)/8]&(1<<((i+2)%8)) != 0 {
			dst = append(dst, Value{Null: true})
			continue
		}
		v, rest, ok := value(c, p)
		if !ok {
			return dst, malformed(fmt.Sprintf("column %d of a row", i+1))
		}
		dst, p = append(dst, v), rest
	}
	return dst, nil
}

// appendTextRow reads one row of the text protocol; whole numbers become numbers.
func appendTextRow(dst []Value, cols []column, p []byte) ([]Value, error) {
	for i, c := range cols {
		if len(p) > 0 && p[0] == 0xfb {
			dst, p = append(dst, Value{Null: true}), p[1:]
			continue
		}
		n, rest, ok := length(p)
		if !ok || uint64(len(rest)) < n {
			return dst, malformed(fmt.Sprintf("column %d of a row", i+1))
		}
		var v Value
		switch c.kind {
		case typeTiny, typeShort, typeLong, typeInt24, typeLonglong, typeYear:
			if c.unsigned {
				u, _ := strconv.ParseUint(string(rest[:n]), 10, 64)
				v.Int = int64(u)
			} else {
				v.Int, _ = strconv.ParseInt(string(rest[:n]), 10, 64)
			}
		default:
			v.Text = append([]byte{}, rest[:n]...)
		}
		dst, p = append(dst, v), rest[n:]
	}
	return dst, nil
}

// value reads one value of the binary protocol.
func value(c column, p []byte) (v Value, rest []byte, ok bool) {
	size := 0
	switch c.kind {
	case typeTiny:
		size = 1
	case typeShort, typeYear:
		size = 2
	case typeLong, typeInt24, typeFloat:
		size = 4
	case typeLonglong, typeDouble:
		size = 8
	case typeNull:
		return Value{Null: true}, p, true
	case typeDate, typeDatetime, typeTimestamp, typeTime:
		if len(p) == 0 || len(p) < 1+int(p[0]) {
			return v, nil, false
		}
		n := 1 + int(p[0])
		return Value{Text: append([]byte{}, moment(c.kind, p[1:n])...)}, p[n:], true
	default:
		n, rest, ok := length(p)
		if !ok || uint64(len(rest)) < n {
			return v, nil, false
		}
		return Value{Text: append([]byte{}, rest[:n]...)}, rest[n:], true
	}
	if len(p) < size {
		return v, nil, false
	}
	var n uint64
	for i := size - 1; i >= 0; i-- {
		n = n<<8 | uint64(p[i])
	}
	switch {
	case c.kind == typeFloat:
		v.Text = fmt.Appendf(nil, "%g", math.Float32frombits(uint32(n)))
	case c.kind == typeDouble:
		v.Text = fmt.Appendf(nil, "%g", math.Float64frombits(n))
	case c.unsigned || size == 8:
		v.Int = int64(n)
	default:
		shift := 64 - 8*size
		v.Int = int64(n<<shift) >> shift
	}
	return v, p[size:], true
}

// moment writes a date or a time as the text protocol does.
func moment(kind byte, p []byte) []byte {
	if kind == typeTime {
		if len(p) < 8 {
			return []byte("00:00:00")
		}
		sign := ""
		if p[0] == 1 {
			sign = "-"
		}
		out := fmt.Appendf(nil, "%s%02d:%02d:%02d", sign, int(binary.LittleEndian.Uint32(p[1:]))*24+int(p[5]), p[6], p[7])
		if len(p) >= 12 {
			out = fmt.Appendf(out, ".%06d", binary.LittleEndian.Uint32(p[8:]))
		}
		return out
	}
	if len(p) < 4 {
		return []byte("0000-00-00")
	}
	out := fmt.Appendf(nil, "%04d-%02d-%02d", binary.LittleEndian.Uint16(p), p[2], p[3])
	if kind == typeDate {
		return out
	}
	if len(p) < 7 {
		return append(out, " 00:00:00"...)
	}
	out = fmt.Appendf(out, " %02d:%02d:%02d", p[4], p[5], p[6])
	if len(p) >= 11 {
		out = fmt.Appendf(out, ".%06d", binary.LittleEndian.Uint32(p[7:]))
	}
	return out
}
