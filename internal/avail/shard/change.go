package shard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fault"
)

// Asked is a change of a map for which rows move.
type Asked struct {
	Shard  string   `json:"shard"`            // that has them now
	New    string   `json:"new"`              // that will have them; the same as Shard: it moves as a whole
	At     string   `json:"at,omitempty"`     // the first key, or slot, that moves
	Values []string `json:"values,omitempty"` // of a list: those that move
	To     string   `json:"to"`               // the group
}

// Plan is what a change moves, from which group, and the map after it.
func (m *Map) Plan(a Asked, now time.Time) (p Part, from string, after Map, err error) {
	i := m.Find(a.Shard)
	if i < 0 {
		return p, "", after, fault.New(fault.Failed, "risso shard list "+m.Name+" shows them", fmt.Errorf("%s in map %s: %w", a.Shard, m.Name, ErrNone))
	}
	from, p = m.Shards[i].Group, m.Part(i)
	if from == a.To {
		return p, from, after, fault.Usagef("shard %s is in group %s already", a.Shard, a.To)
	}
	after = *m
	after.Shards = slices.Clone(m.Shards)
	after.Epoch, after.Changed, after.Move = m.Epoch+1, now, ""
	if a.New == a.Shard {
		after.Shards[i].Group = a.To
		return p, from, after, after.Check()
	}
	fresh := Shard{Name: a.New, Group: a.To}
	if m.Kind == List {
		if p.Values, err = m.taken(i, a.Values); err != nil {
			return p, from, after, err
		}
		fresh.Values = p.Values
		after.Shards[i].Values = slices.DeleteFunc(slices.Clone(m.Shards[i].Values), func(v string) bool { return slices.Contains(p.Values, v) })
		after.Shards = append(after.Shards, fresh)
		return p, from, after, after.Check()
	}
	at, err := m.at(a.At, p)
	if err != nil {
		return p, from, after, err
	}
	p.From, fresh.From = at, at
	after.Shards = slices.Insert(after.Shards, i+1, fresh)
	return p, from, after, after.Check()
}

// at is where a part is split: a key or slot within it, behind its first.
func (m *Map) at(text string, p Part) (at string, err error) {
	if m.Kind == Hash {
		first, _ := strconv.Atoi(p.From)
		end := Slots
		if p.To != "" {
			end, _ = strconv.Atoi(p.To)
		}
		if text == "" {
			text = strconv.Itoa((first + end) / 2)
		}
		if n, err := strconv.Atoi(text); err != nil || n <= first || n >= end {
			return "", fault.Usagef("--at %s: a slot from %d to %d", text, first+1, end-1)
		}
		return text, nil
	}
	if at, err = m.Key(text); err != nil {
		return "", err
	}
	if at == "" || p.From != "" && m.compare(at, p.From) <= 0 || p.To != "" && m.compare(at, p.To) >= 0 {
		return "", fault.Usagef("--at %q: not within the %s of the shard, and behind the first", at, p.Words())
	}
	return at, nil
}

// taken are the values of a shard that move; some have to stay.
func (m *Map) taken(i int, values []string) (out []string, err error) {
	for _, v := range values {
		key, err := m.Key(v)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(m.Shards[i].Values, key) {
			return nil, fault.Usagef("shard %s does not have the key %q", m.Shards[i].Name, key)
		}
		out = append(out, key)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) == 0 || len(out) == len(m.Shards[i].Values) {
		return nil, fault.Usagef("--values: some of the keys of shard %s, not all of them", m.Shards[i].Name)
	}
	return out, nil
}

// Add gives keys of a map by list that had no shard to one, which may be new.
func (m *Map) Add(name, group string, values []string, now time.Time) error {
	if m.Kind != List {
		return fault.Usagef("each key of map %s has a shard: risso shard split %s divides one", m.Name, m.Name)
	}
	for i, v := range values {
		key, err := m.Key(v)
		if err != nil {
			return err
		}
		values[i] = key
	}
	m.Shards = slices.Clone(m.Shards)
	if i := m.Find(name); i < 0 {
		m.Shards = append(m.Shards, Shard{Name: name, Group: group, Values: values})
	} else if m.Shards[i].Group != group {
		return fault.Usagef("shard %s is in group %s, not %s", name, m.Shards[i].Group, group)
	} else {
		m.Shards[i].Values = append(slices.Clone(m.Shards[i].Values), values...)
	}
	m.Epoch, m.Changed, m.Move = m.Epoch+1, now, ""
	return m.Check()
}

// Remove takes a shard out of a map by list: its keys have none then.
func (m *Map) Remove(name string, now time.Time) error {
	i := m.Find(name)
	switch {
	case i < 0:
		return fault.New(fault.Failed, "risso shard list "+m.Name+" shows them", fmt.Errorf("%s in map %s: %w", name, m.Name, ErrNone))
	case m.Kind != List:
		return fault.Usagef("the keys of shard %s would have none: only a map by list lets one be removed", name)
	}
	m.Shards = slices.Delete(slices.Clone(m.Shards), i, i+1)
	m.Epoch, m.Changed, m.Move = m.Epoch+1, now, ""
	return m.Check()
}

// ParseTable reads SCHEMA.TABLE:COLUMN.
func ParseTable(text string) (t Table, err error) {
	name, column, ok := strings.Cut(text, ":")
	schema, table, both := strings.Cut(name, ".")
	if !ok || !both || schema == "" || table == "" || column == "" {
		return t, fault.Usagef("%q: a table and the column of its key are SCHEMA.TABLE:COLUMN", text)
	}
	return Table{Schema: schema, Name: table, Column: column}, nil
}

// ParseShard reads NAME=GROUP[@BOUND], of a list NAME=GROUP@VALUE,VALUE.
func ParseShard(kind Kind, text string) (s Shard, err error) {
	name, rest, ok := strings.Cut(text, "=")
	group, bound, _ := strings.Cut(rest, "@")
	if !ok || name == "" || group == "" {
		return s, fault.Usagef("%q: a shard is NAME=GROUP@BOUND", text)
	}
	s = Shard{Name: name, Group: group}
	switch {
	case kind != List:
		s.From = bound
	case bound != "":
		s.Values = strings.Split(bound, ",")
	}
	return s, nil
}

// Even divides the slots of a map by hash evenly, if no shard has a bound.
func (m *Map) Even() {
	if m.Kind != Hash || slices.ContainsFunc(m.Shards, func(s Shard) bool { return s.From != "" }) {
		return
	}
	for i := range m.Shards {
		m.Shards[i].From = strconv.Itoa(i * Slots / len(m.Shards))
	}
}
