package digest

import (
	"encoding/binary"
	"strings"
)

// Dimensions of counts that every class has; those of attributes come after.
const (
	dimDB = iota
	dimUser
	dimHost
	dimQueryTime
	dimLockTime
	dimQuerySize
	dimFirstFree
)

// role says what becomes of an attribute.
type role uint8

const (
	roleAuto   role = iota // a number, a flag, or else a value to count
	roleValue              // a code: its values are counted, also when they look like numbers
	roleIgnore             // known to filters only: every event has another value
	roleSchema
	roleThread
	roleQueryTime
	roleLockTime
)

// shape is how a number of that role is read, see shape.
func (r role) shape() shapeKind {
	switch r {
	case roleAuto:
		return shapeNumber
	case roleThread:
		return shapeThread
	case roleQueryTime:
		return shapeQueryTime
	case roleLockTime:
		return shapeLockTime
	}
	return shapeNone
}

// roles are the attributes that are not just numbers or flags. Sources: MySQL Reference Manual 8.4, 7.4.5 (The
// Slow Query Log); Percona Server 8.0, Slow query log; MariaDB Server documentation, Slow Query Log Extended
// Statistics.
var roles = map[string]role{
	"Query_time":          roleQueryTime,
	"Lock_time":           roleLockTime,
	"Thread_id":           roleThread,
	"Id":                  roleThread,
	"Schema":              roleSchema,
	"Errno":               roleValue,
	"Last_errno":          roleValue,
	"Stored_routine":      roleValue,
	"Stored routine":      roleValue,
	"Log_slow_rate_type":  roleValue,
	"Log_slow_rate_limit": roleValue,
	"InnoDB_trx_id":       roleIgnore,
	"Start":               roleIgnore,
	"End":                 roleIgnore,
}

// unitOf is the unit of a numeric attribute, by the names that servers use.
func unitOf(name string) string {
	switch {
	case name == "Engine_time" || name == "Pages_read_time":
		return "ms" // MariaDB writes these in milliseconds next to Query_time in seconds
	case strings.HasSuffix(name, "_time") || strings.HasSuffix(name, "_wait") || strings.HasPrefix(name, "Profile_"):
		return "s"
	case strings.HasPrefix(name, "Bytes_") || strings.HasSuffix(name, "_bytes") || strings.HasSuffix(name, "_sizes") || name == "Query_size":
		return "bytes"
	}
	return ""
}

// attrName is a name of an attribute and the slots for its values, one per kind, given out when needed.
type attrName struct {
	name   string
	key    string // name and ": ", as it is in the log
	role   role
	number bool       // may be a number
	refs   [3]attrRef // by AttrKind; slot -1: none yet
	words  [4]uint64  // key's first 8, last 8, and if it is longer than 16 its next and next to last 8 bytes
	next   *attrName  // the name that last came after this one
	seen   uint32     // the event that last had it
}

// setWords prepares is.
func (a *attrName) setWords() {
	k := []byte(a.key)
	if len(k) < 8 || len(k) > 32 {
		return
	}
	w := func(i int) uint64 { return binary.LittleEndian.Uint64(k[i:]) }
	a.words = [4]uint64{w(0), w(len(k) - 8)}
	if len(k) > 16 {
		a.words[2], a.words[3] = w(8), w(len(k)-16)
	}
}

// is reports whether the key is at b[i:]. It compares words, which may overlap, and calls nothing.
func (a *attrName) is(b []byte, i int) bool {
	n := len(a.key)
	if len(b)-i <= n {
		return false
	}
	s := b[i : i+n]
	if n < 8 || n > 32 {
		return string(s) == a.key
	}
	if binary.LittleEndian.Uint64(s) != a.words[0] || binary.LittleEndian.Uint64(s[n-8:]) != a.words[1] {
		return false
	}
	return n <= 16 || binary.LittleEndian.Uint64(s[8:]) == a.words[2] && binary.LittleEndian.Uint64(s[n-16:]) == a.words[3]
}

// slot is one kind of value of one name.
type slot struct {
	name   string
	kind   AttrKind
	ignore bool   // known to filters only
	dim    uint32 // of number and text
	at     int    // of number: index in class.metrics; of flag: in class.flags
}

// names knows the attributes of one worker. The number of names is bounded: a log can make up any.
type names struct {
	first   attrName // precedes the first name of an event
	byName  map[string]*attrName
	slots   []slot
	dims    uint32
	metrics int
	flags   int
}

const maxNames = 128

func newNames() *names {
	return &names{byName: make(map[string]*attrName), dims: dimFirstFree}
}

// find returns a name, or nil when there are too many.
func (n *names) find(name []byte) *attrName {
	if a, ok := n.byName[string(name)]; ok {
		return a
	}
	if len(n.byName) >= maxNames {
		return nil
	}
	s := string(name)
	r := roles[s]
	a := &attrName{name: s, key: s + ": ", role: r, refs: [3]attrRef{{slot: -1}, {slot: -1}, {slot: -1}}}
	a.setWords()
	a.number = r == roleAuto || r == roleQueryTime || r == roleLockTime || r == roleThread
	n.byName[s] = a
	return a
}

// findString is find for a name that is a string.
func (n *names) findString(name string) *attrName {
	if a, ok := n.byName[name]; ok {
		return a
	}
	return n.find([]byte(name))
}

// slot returns the slot for a value of that kind, or -1 when there are too many.
func (n *names) slot(a *attrName, kind AttrKind) int16 {
	if s := a.refs[kind].slot; s >= 0 {
		return s
	}
	s := slot{name: a.name, kind: kind, ignore: a.role == roleIgnore}
	switch kind {
	case AttrNumber, AttrText:
		if n.dims >= maxDim {
			return -1
		}
		s.dim = n.dims
		n.dims++
	}
	switch kind {
	case AttrNumber:
		s.at = n.metrics
		n.metrics++
	case AttrFlag:
		s.at = n.flags
		n.flags++
	}
	i := int16(len(n.slots))
	n.slots = append(n.slots, s)
	a.refs[kind] = attrRef{slot: i, kind: kind, dim: uint8(s.dim), at: uint8(s.at), ignore: s.ignore}
	return i
}

// isValue reports whether a dimension counts values, not buckets.
func (n *names) isValue(dim uint32) bool {
	if dim < dimFirstFree {
		return dim <= dimHost
	}
	for i := range n.slots {
		if s := &n.slots[i]; s.dim == dim {
			return s.kind == AttrText
		}
	}
	return false
}

// values numbers the values that are counted: users, hosts, schemas, codes. Number 0 means all that came
// when the table was full.
type values struct {
	ids   map[string]uint32
	list  []string
	bytes int
	cache [256]uint32
}

const (
	maxValueBytes = 4 << 20
	maxValueLen   = 256
)

func newValues() *values {
	return &values{ids: make(map[string]uint32), list: []string{""}}
}

// id returns the number of a value.
func (v *values) id(b []byte) uint32 {
	h := uint(len(b))
	if h > 0 {
		h = h*31 + uint(b[0])*7 + uint(b[len(b)-1])
	}
	c := &v.cache[h&255]
	if *c != 0 && v.list[*c] == string(b) {
		return *c
	}
	if len(b) > maxValueLen {
		b = b[:maxValueLen]
	}
	id, ok := v.ids[string(b)]
	if !ok {
		if len(v.list) > maxID || v.bytes > maxValueBytes {
			return 0
		}
		s := string(b)
		id = uint32(len(v.list))
		v.list = append(v.list, s)
		v.ids[s] = id
		v.bytes += len(s) + 48
	}
	*c = id
	return id
}
