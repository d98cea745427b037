package binlogevent

import "fmt"

// RenameTable puts another table's name into a table map event without checksum. The rows events after it name the table by
// number and stay as they are.
func RenameTable(f Format, raw []byte, schema, name string) ([]byte, error) {
	const longest = 250 // what one byte can hold; a name has at most 64 characters of three bytes
	if len(schema) > longest || len(name) > longest {
		return nil, fmt.Errorf("%s.%s is too long a name", schema, name)
	}
	c := cursor{b: raw[HeaderLen:]}
	c.take(idLen(f) + 2)
	head := raw[:len(raw)-len(c.b)]
	c.take(int(c.uint(1)) + 1)
	c.take(int(c.packed()&0xffff) + 1)
	if c.bad {
		return nil, errShort
	}
	out := make([]byte, 0, len(raw)+len(schema)+len(name))
	out = append(out, head...)
	out = append(append(append(out, byte(len(schema))), schema...), 0)
	out = append(append(append(out, byte(len(name))), name...), 0)
	return fixLength(append(out, c.b...), TypeTableMap), nil
}
