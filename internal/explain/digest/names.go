package digest

import "strings"

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
		return "ms" // MariaDB writes these in milliseconds beside Query_time in seconds
	case strings.HasSuffix(name, "_time") || strings.HasSuffix(name, "_wait") || strings.HasPrefix(name, "Profile_"):
		return "s"
	case strings.HasPrefix(name, "Bytes_") || strings.HasSuffix(name, "_bytes") || strings.HasSuffix(name, "_sizes") || name == "Query_size":
		return "bytes"
	}
	return ""
}

// attrName is a name of an attribute and the slots for its values, one per kind, given out when needed.
type attrName struct {
	name  string
	key   string // name and ": ", as it stands in the log
	role  role
	slots [3]int16 // by AttrKind; -1: none yet
	next  int16    // the name that last came after this one
}

// slot is one kind of value of one name.
type slot struct {
	name string
	kind AttrKind
	dim  uint32 // of number and text
	at   int    // of number: index in class.metrics; of flag: in class.flags
	seen uint32 // the event that last had it
	// ignore: known to filters only
	ignore bool
}

// names knows the attributes of one worker. The number of names is bounded: a log can make up any.
type names struct {
	list    []attrName
	byName  map[string]int16
	slots   []slot
	dims    uint32
	metrics int
	flags   int
}

const maxNames = 128

func newNames() *names {
	return &names{byName: make(map[string]int16), dims: dimFirstFree}
}

// find returns the number of a name, or -1 when there are too many.
func (n *names) find(name []byte) int16 {
	if i, ok := n.byName[string(name)]; ok {
		return i
	}
	if len(n.list) >= maxNames {
		return -1
	}
	i := int16(len(n.list))
	s := string(name)
	n.list = append(n.list, attrName{name: s, key: s + ": ", role: roles[s], slots: [3]int16{-1, -1, -1}})
	n.byName[s] = i
	return i
}

// findString is find for a name that is a string.
func (n *names) findString(name string) int16 {
	if i, ok := n.byName[name]; ok {
		return i
	}
	return n.find([]byte(name))
}

// slot returns the slot for a value of that kind, or -1 when there are too many.
func (n *names) slot(name int16, kind AttrKind) int16 {
	a := &n.list[name]
	if s := a.slots[kind]; s >= 0 {
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
	a.slots[kind] = i
	return i
}

// isValue tells whether a dimension counts values, not buckets.
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

// values numbers the values that are counted: users, hosts, schemas, codes. Number 0 stands for all that came
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
