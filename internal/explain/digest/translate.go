package digest

// translation maps the slots, dimensions and values of one worker to those of another.
type translation struct {
	same     bool // the two are one
	from, to *worker
	metrics  []int
	flags    []int
	dims     [maxDim + 1]uint32
	isValue  [maxDim + 1]bool
	values   []uint32 // 0: not looked up yet
}

func translate(from, to *worker) *translation {
	t := &translation{from: from, to: to, metrics: make([]int, from.names.metrics), flags: make([]int, from.names.flags), values: make([]uint32, len(from.values.list))}
	for d := range uint32(dimFirstFree) {
		t.dims[d] = d
	}
	for d := range uint32(dimHost + 1) {
		t.isValue[d] = true
	}
	for _, s := range from.names.slots {
		name := to.names.find([]byte(s.name))
		if name == nil {
			continue
		}
		at := to.names.slot(name, s.kind)
		if at < 0 {
			continue
		}
		o := to.names.slots[at]
		switch s.kind {
		case AttrNumber:
			t.metrics[s.at] = o.at
			t.dims[s.dim] = o.dim
		case AttrFlag:
			t.flags[s.at] = o.at
		case AttrText:
			t.dims[s.dim] = o.dim
			t.isValue[s.dim] = true
		}
	}
	return t
}

func (t *translation) metric(i int) int {
	if t.same {
		return i
	}
	return t.metrics[i]
}

func (t *translation) flag(i int) int {
	if t.same {
		return i
	}
	return t.flags[i]
}

// count adds a counter of the other worker to a class.
func (t *translation) count(c *class, dim, id uint32, n uint64) {
	value := t.to.names.isValue(dim)
	if !t.same {
		if value = t.isValue[dim]; value && id != 0 {
			if t.values[id] == 0 {
				t.values[id] = t.to.values.id([]byte(t.from.values.list[id]))
			}
			id = t.values[id]
		}
		dim = t.dims[dim]
	}
	if value {
		t.to.valueID(c, dim, id, n)
	} else {
		c.counts.add(dim, id, n)
	}
}
