// Package shard is maps of shards: which group of servers has the rows of a key, by range, by hash or by list, as MySQL Fabric had them. Looking up is
// arithmetic that a client can do by itself, and what a shard has is a condition in SQL that any server computes alike. It is pure.
package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// Kind is how keys are assigned to shards.
type Kind string

// The kinds.
const (
	Range Kind = "range" // a shard has the keys from its bound up to the next one's
	Hash  Kind = "hash"  // a shard has the slots from its bound up to the next one's
	List  Kind = "list"  // a shard has the keys that it lists
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{Range, Hash, List} }

// Keys is what keys are, and so how two of them compare.
type Keys string

// The types of keys.
const (
	Integer Keys = "integer" // compared as numbers
	Text    Keys = "text"    // compared byte by byte as UTF-8, whatever the collation of the column
)

// Slots is how many a map by hash has.
const Slots = 4096

// Table is a table whose rows are spread.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Column string `json:"column"` // that has the key
}

// String is the table and its column, as the command takes it.
func (t Table) String() string { return t.Schema + "." + t.Name + ":" + t.Column }

// Shard is a part of the keys, and the group that has their rows.
type Shard struct {
	Name   string   `json:"name"`
	Group  string   `json:"group"`
	From   string   `json:"from,omitempty"`   // by range: its first key, "" for no bound; by hash: its first slot
	Values []string `json:"values,omitempty"` // by list
}

// Map is a map of shards.
type Map struct {
	Name   string  `json:"name"`
	Kind   Kind    `json:"kind"`
	Keys   Keys    `json:"keys"`
	Tables []Table `json:"tables"`
	// Shards are in the order of their bounds: the first of a range has none, the first of a hash has slot 0, so that no key is without a shard.
	Shards  []Shard   `json:"shards"`
	Epoch   uint64    `json:"epoch"` // each change has a higher one: clients that see it look up again
	Changed time.Time `json:"changed"`
	Move    string    `json:"move,omitempty"` // the ID of the move that made it, if one did
	// Restored is when the state was restored from a backup, which may have an older map: rows may be elsewhere until somebody confirms it.
	Restored time.Time `json:"restored,omitzero"`
}

// Errors of this package.
var (
	ErrNoShard = errors.New("no shard has this key")
	ErrNone    = errors.New("no such shard in the map")
	ErrKey     = errors.New("not a key of this map")
	ErrMap     = errors.New("not a map of shards")
)

// SlotOf is the slot of a key: the first three hexadecimal digits of the SHA-256 of its text in UTF-8, a number from 0 to 4095. An integer's text is its
// decimal digits, with - in front of a negative one. In SQL it is CONV(LEFT(SHA2(key, 256), 3), 16, 10). (MySQL 9.7 has no MD5 without a component.)
func SlotOf(key string) int {
	sum := sha256.Sum256([]byte(key))
	return int(sum[0])<<4 | int(sum[1])>>4
}

// Key is a key in the form in which it is compared: an integer without zeros or a sign in front.
func (m *Map) Key(text string) (string, error) {
	if m.Keys == Text {
		return text, nil
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || strings.HasPrefix(text, "+") || !n.IsInt64() && !n.IsUint64() {
		return "", fault.New(fault.Usage, "keys of map "+m.Name+" are integers of 64 bits", fmt.Errorf("%q: %w", text, ErrKey))
	}
	return n.String(), nil
}

// compare orders two keys, or two slots.
func (m *Map) compare(a, b string) int {
	if m.Kind == Range && m.Keys == Text {
		return strings.Compare(a, b)
	}
	x, _ := new(big.Int).SetString(a, 10) // they were checked
	y, _ := new(big.Int).SetString(b, 10)
	return x.Cmp(y)
}

// Find is the index of a shard by its name, or -1.
func (m *Map) Find(name string) int {
	return slices.IndexFunc(m.Shards, func(s Shard) bool { return s.Name == name })
}

// Lookup is the shard that has a key.
func (m *Map) Lookup(text string) (Shard, error) {
	key, err := m.Key(text)
	if err != nil {
		return Shard{}, err
	}
	if m.Kind == List {
		for _, s := range m.Shards {
			if slices.Contains(s.Values, key) {
				return s, nil
			}
		}
		return Shard{}, fault.New(fault.Failed, "risso shard add "+m.Name+" SHARD --group GROUP --values VALUE gives it one", fmt.Errorf("%q in map %s: %w", text, m.Name, ErrNoShard))
	}
	if m.Kind == Hash {
		key = strconv.Itoa(SlotOf(key))
	}
	for i := len(m.Shards) - 1; i >= 0; i-- {
		if s := m.Shards[i]; s.From == "" || m.compare(s.From, key) <= 0 {
			return s, nil
		}
	}
	return Shard{}, fmt.Errorf("%q in map %s: %w", text, m.Name, ErrNoShard)
}

// Check refuses a map in which a key has no shard, or two.
func (m *Map) Check() error {
	if err := group.CheckName(m.Name); err != nil {
		return err
	}
	switch {
	case !slices.Contains(Kinds(), m.Kind):
		return fault.Usagef("%q is no kind of map: range, hash or list", m.Kind)
	case m.Keys != Integer && m.Keys != Text:
		return fault.Usagef("%q is no type of keys: integer or text", m.Keys)
	case len(m.Tables) == 0:
		return fault.Usagef("a map needs a table: SCHEMA.TABLE:COLUMN")
	case len(m.Shards) == 0:
		return fault.Usagef("a map needs a shard: NAME=GROUP")
	}
	seen := map[string]string{}
	once := func(what, value, shard string) error {
		if other, ok := seen[what+value]; ok {
			return fault.New(fault.Usage, "", fmt.Errorf("%s %q is in shard %s and in shard %s: %w", what, value, other, shard, ErrMap))
		}
		seen[what+value] = shard
		return nil
	}
	for i, s := range m.Shards {
		for _, name := range []string{s.Name, s.Group} {
			if err := group.CheckName(name); err != nil {
				return err
			}
		}
		if err := once("the name", s.Name, s.Name); err != nil {
			return err
		}
		if err := m.checkBound(i, s); err != nil {
			return err
		}
		for _, v := range s.Values {
			if key, err := m.Key(v); err != nil {
				return err
			} else if key != v {
				return fault.Usagef("%q: write %s", v, key)
			} else if err := once("the key", v, s.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBound looks at the bound of a shard, and at the one before it.
func (m *Map) checkBound(i int, s Shard) error {
	wrong := func(format string, args ...any) error {
		return fault.New(fault.Usage, "", fmt.Errorf("shard %s: %s: %w", s.Name, fmt.Sprintf(format, args...), ErrMap))
	}
	switch {
	case m.Kind == List && (s.From != "" || len(s.Values) == 0):
		return wrong("a shard of a list has values, and no bound")
	case m.Kind != List && len(s.Values) > 0:
		return wrong("only a shard of a list has values")
	case m.Kind == List:
		return nil
	}
	if m.Kind == Hash {
		if n, err := strconv.Atoi(s.From); err != nil || n < 0 || n >= Slots || strconv.Itoa(n) != s.From {
			return wrong("%q is no slot: 0 to %d", s.From, Slots-1)
		}
	} else if i > 0 {
		if key, err := m.Key(s.From); err != nil {
			return err
		} else if key != s.From || key == "" {
			return wrong("%q is no bound", s.From)
		}
	}
	switch first := map[Kind]string{Range: "", Hash: "0"}[m.Kind]; {
	case i == 0 && s.From != first:
		return wrong("the keys before %s have no shard", s.From)
	case i > 0 && m.Shards[i-1].From != "" && m.compare(m.Shards[i-1].From, s.From) >= 0:
		return wrong("its bound %s is not behind that of %s", s.From, m.Shards[i-1].Name)
	}
	return nil
}

// Part is some of the keys of a map: those that move from one group to another.
type Part struct {
	Kind   Kind     `json:"kind"`
	Keys   Keys     `json:"keys"`
	From   string   `json:"from,omitempty"` // the first; "": no bound
	To     string   `json:"to,omitempty"`   // the first that is not in it; "": no bound
	Values []string `json:"values,omitempty"`
}

// Part is what a shard has.
func (m *Map) Part(i int) Part {
	s := m.Shards[i]
	p := Part{Kind: m.Kind, Keys: m.Keys, From: s.From, Values: s.Values}
	if m.Kind != List && i+1 < len(m.Shards) {
		p.To = m.Shards[i+1].From
	}
	return p
}

// Where is a condition in SQL that is true for the keys of a part; key is the expression that has them, never NULL, in a session whose character set is
// utf8mb4.
func (p Part) Where(key string) string {
	literal := func(v string) string {
		switch {
		case p.Kind == Hash || p.Keys == Integer:
			return v
		case v == "":
			return "_binary ''"
		}
		return "0x" + hex.EncodeToString([]byte(v))
	}
	switch {
	case p.Kind == Hash:
		key = "CONV(LEFT(SHA2(CONVERT(" + key + " USING utf8mb4), 256), 3), 16, 10) + 0"
	case p.Keys == Text:
		key = "CAST(CONVERT(" + key + " USING utf8mb4) AS BINARY)"
	}
	if p.Kind == List {
		list := make([]string, len(p.Values))
		for i, v := range p.Values {
			list[i] = literal(v)
		}
		return "(" + key + " IN (" + strings.Join(list, ", ") + "))"
	}
	var and []string
	if p.From != "" {
		and = append(and, key+" >= "+literal(p.From))
	}
	if p.To != "" {
		and = append(and, key+" < "+literal(p.To))
	}
	if len(and) == 0 {
		return "(TRUE)"
	}
	return "(" + strings.Join(and, " AND ") + ")"
}

// Words is a part for people.
func (p Part) Words() string {
	what := "keys"
	if p.Kind == Hash {
		what = "slots"
	}
	switch {
	case p.Kind == List:
		return "keys " + strings.Join(p.Values, ", ")
	case p.From == "" && p.To == "":
		return "all " + what
	case p.From == "":
		return what + " below " + p.To
	case p.To == "":
		return what + " from " + p.From
	}
	return what + " from " + p.From + " to below " + p.To
}

// Quoted is the column that has the key, as SQL takes it.
func (t Table) Quoted() string { return mysql.Quote(t.Column) }
