package binlogevent

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestNonsenseDoesNotPanic reads random and nearly right bytes as everything that a log may hold.
func TestNonsenseDoesNotPanic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	format := Format{Version: "9.7.0", tableIDLen: 6, server: fleet.ServerOf("9.7.0", "")}
	types := []byte{typeTiny, typeShort, typeLong, typeFloat, typeDouble, typeTimestamp, typeLongLong, typeInt24, typeDate, typeTime, typeDatetime, typeYear, typeVarchar, typeBit,
		typeTimestamp2, typeDatetime2, typeTime2, typeBlobZip, typeVarcharZip, typeVector, typeJSON, typeNewDecimal, typeBlob, typeString, typeGeometry}
	decoded, literals := 0, 0
	for range 15_000 {
		b := make([]byte, r.IntN(120))
		for i := range b {
			if b[i] = byte(r.Uint32()); r.IntN(3) > 0 {
				b[i] %= 9
			}
		}
		e := Event{Header: Header{Length: uint32(HeaderLen + len(b))}, Body: b, Raw: append(make([]byte, HeaderLen), b...)}
		for _, e.Type = range []Type{TypeGTID, TypeGTIDTagged, TypeMariaGTID, TypePreviousGTIDs, TypeMariaGTIDList} {
			ParseGTID(e)
			ParseGTIDs(e)
		}
		ParseQuery(e)
		e.Type = TypeQueryZip
		ParseQuery(e)
		if v, err := ParseUserVar(b); err == nil {
			v.Assignment("latin1_bin")
		}
		ParseIntvar(b)
		ParseRotate(b)
		ParseXAPrepare(b)
		ParseFormat(e.Raw)
		jsonLiteral(b)
		ParseTable(format, b)

		// A table that may be, and rows that may not.
		body := append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1}, "s\x00\x01t\x00\x03"...)
		for range 3 {
			body = append(body, types[r.IntN(len(types))])
		}
		body = append(body, 6)
		for range 6 {
			body = append(body, byte(r.IntN(12)))
		}
		table, err := ParseTable(format, append(body, 0))
		if err != nil {
			continue
		}
		decoded++
		e.Type = []Type{TypeWriteRows, TypeUpdateRows, TypeDeleteRowsV1, TypePartialUpdateRows, TypeWriteRowsZip}[r.IntN(5)]
		e.Body = append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 7, 7}, b...)
		rows, err := OpenRows(format, e, &table)
		if err != nil {
			continue
		}
		for range 50 {
			before, after, more, err := rows.Next()
			if err != nil || !more {
				break
			}
			for _, row := range [][]Value{before, after} {
				for i, v := range row {
					table.Columns[i].Known = true
					if _, err := table.Columns[i].Literal(v); err == nil {
						literals++
					}
					table.Columns[i].Equals(v)
					table.Columns[i].Shown(v)
					table.Columns[i].Patched(v, Value{Present: true, Partial: true, Raw: b})
				}
			}
		}
		Split(format, append(make([]byte, HeaderLen), e.Body...), &table, 30)
	}
	if decoded < 500 || literals < 500 {
		t.Errorf("only %d tables and %d values were read; want decoded at least 500, literals at least 500", decoded, literals)
	}
}

// TestReaderOnNonsense reads logs whose bytes were changed and whose checksums are off.
func TestReaderOnNonsense(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5_000 {
		b := append([]byte(nil), Magic...)
		for range 1 + r.IntN(3) {
			body := make([]byte, r.IntN(90))
			for i := range body {
				body[i] = byte(r.IntN(60))
			}
			e := Ignorable(Header{Seconds: 1}, uint32(HeaderLen+len(body)), 0, false)
			e[4] = []byte{byte(TypeFormatDescription), byte(TypePayload), byte(TypeTableMap), byte(TypeStartEncryption)}[r.IntN(4)]
			copy(e[HeaderLen:], body)
			b = append(b, e...)
		}
		in, err := NewReader(bytes.NewReader(b[:len(b)-r.IntN(3)]), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = in.Next()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("%x passed for a log", b)
		}
		in.Close()
	}
}
