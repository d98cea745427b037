package script

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/measure/workload/draw"
)

const maxInt = math.MaxInt64

// kindsOfValue are the keys of which each value has one.
var kindsOfValue = []string{"range", "decimal", "string", "digits", "choice", "sequence", "date", "time", "uuid"}

// ofRange are further keys of a range: sysbench's names of what its distributions need.
var ofRange = []string{"spec-iter", "spec-pct", "spec-res", "pareto-h", "zipfian-exp"}

func (p *parser) readValues(n *yaml.Node) error {
	p.names, p.values = []string{"session"}, []generator{sessionNumber{}}
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return p.at(n.Line, "values: a mapping from names to what is drawn")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, x := n.Content[i], resolved(n.Content[i+1])
		if !isName(key.Value) {
			return p.at(key.Line, "values: %q is not a name (letters, digits and _)", key.Value)
		}
		for _, have := range p.names {
			if have == key.Value {
				return p.at(key.Line, "values: %s already exists", have)
			}
		}
		g, err := p.readValue(key.Value, x)
		if err != nil {
			return err
		}
		p.names, p.values = append(p.names, key.Value), append(p.values, g)
	}
	return nil
}

func (p *parser) readValue(name string, n *yaml.Node) (generator, error) {
	if n.Kind == yaml.ScalarNode && n.Value == "uuid" {
		return uuid{}, nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return nil, p.at(n.Line, "value %s: a mapping with one of %s", name, strings.Join(kindsOfValue, ", "))
	}
	known := append([]string{"distribution", "per", "step"}, append(ofRange, kindsOfValue...)...)
	f, err := p.fields(n, "value "+name, known...)
	if err != nil {
		return nil, err
	}
	kind := ""
	for _, k := range kindsOfValue {
		switch {
		case f[k] == nil:
		case kind != "":
			return nil, p.at(f[k].Line, "value %s is a %s and a %s", name, kind, k)
		default:
			kind = k
		}
	}
	if kind == "" {
		return nil, p.at(n.Line, "value %s: one of %s", name, strings.Join(kindsOfValue, ", "))
	}
	for k, x := range f {
		switch {
		case k == kind, kind == "sequence" && (k == "per" || k == "step"):
		case kind == "range" && k != "per" && k != "step":
		default:
			return nil, p.at(x.Line, "value %s: a %s has no %s", name, kind, k)
		}
	}
	what := name + ": " + kind
	switch x := f[kind]; kind {
	case "range":
		return p.numbers(x, what, f)
	case "decimal":
		return p.decimals(x, what)
	case "string":
		return p.signs(x, what, letters)
	case "digits":
		return p.signs(x, what, digitLetter)
	case "choice":
		return p.choice(x, what)
	case "sequence":
		return p.sequence(x, what, f)
	case "date":
		return p.moments(x, what, time.DateOnly, 24*time.Hour)
	case "time":
		return p.moments(x, what, time.DateTime, time.Second)
	}
	return uuid{}, nil
}

// pair reads [from, to].
func (p *parser) pair(n *yaml.Node, what string) (a, b *yaml.Node, err error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		return nil, nil, p.at(n.Line, "%s: [from, to]", what)
	}
	return resolved(n.Content[0]), resolved(n.Content[1]), nil
}

func (p *parser) numbers(n *yaml.Node, what string, f map[string]*yaml.Node) (generator, error) {
	a, b, err := p.pair(n, what)
	if err != nil {
		return nil, err
	}
	lo, err := p.whole(a, what, math.MinInt64/4, math.MaxInt64/4)
	if err != nil {
		return nil, err
	}
	hi, err := p.whole(b, what, lo, math.MaxInt64/4)
	if err != nil {
		return nil, err
	}
	name, line := "uniform", n.Line
	if x := f["distribution"]; x != nil {
		name, line = x.Value, x.Line
	}
	params := map[string]float64{}
	for _, k := range ofRange {
		if x := f[k]; x != nil {
			v, err := strconv.ParseFloat(x.Value, 64)
			if err != nil {
				return nil, p.at(x.Line, "%s: a number", k)
			}
			params[k], line = v, x.Line
		}
	}
	d, err := draw.New(name, params)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), draw.ErrUnknown.Error()+": ")
		if !errors.Is(err, draw.ErrUnknown) {
			text = err.Error()
		}
		return nil, p.at(line, "%s: %s", what, text)
	}
	return &numbers{d.Over(lo, hi)}, nil
}

// decimals reads [0.01, 99.99]: the digits after the point are those of the bound that has more.
func (p *parser) decimals(n *yaml.Node, what string) (generator, error) {
	a, b, err := p.pair(n, what)
	if err != nil {
		return nil, err
	}
	digits := func(s string) int {
		if i := strings.IndexByte(s, '.'); i >= 0 {
			return len(s) - i - 1
		}
		return 0
	}
	d := &decimals{digits: max(digits(a.Value), digits(b.Value))}
	for i, x := range []*yaml.Node{a, b} {
		v, err := strconv.ParseFloat(x.Value, 64)
		v = math.Round(v * math.Pow10(d.digits))
		if err != nil || d.digits > 9 || math.Abs(v) > 1e15 || math.IsNaN(v) {
			return nil, p.at(x.Line, "%s: %q is not a number with at most 9 decimals and 15 digits in total", what, x.Value)
		}
		if i == 0 {
			d.lo = int64(v)
		} else {
			d.hi = int64(v)
		}
	}
	if d.hi < d.lo {
		return nil, p.at(n.Line, "%s: the first is larger than the second", what)
	}
	return d, nil
}

// signs reads a length, or [shortest, longest].
func (p *parser) signs(n *yaml.Node, what, of string) (generator, error) {
	a, b := n, n
	if n.Kind == yaml.SequenceNode {
		var err error
		if a, b, err = p.pair(n, what); err != nil {
			return nil, err
		}
	}
	lo, err := p.whole(a, what, 0, maxString)
	if err != nil {
		return nil, err
	}
	hi, err := p.whole(b, what, lo, maxString)
	if err != nil {
		return nil, err
	}
	return &signs{int(lo), int(hi), of}, nil
}

// choice reads a list, or a mapping from texts to weights.
func (p *parser) choice(n *yaml.Node, what string) (generator, error) {
	c := &choice{}
	var sum float64
	add := func(x *yaml.Node, weight float64) error {
		if x.Kind != yaml.ScalarNode {
			return p.at(x.Line, "%s: texts or numbers", what)
		}
		v := value{text: []byte(x.Value), kind: isText}
		if i, err := strconv.ParseInt(x.Value, 10, 64); x.Tag == "!!int" && err == nil {
			v = value{num: i}
		} else if x.Tag == "!!float" && strings.Trim(x.Value, "0123456789.-") == "" {
			v.kind = isDecimal
		} else if x.Tag == "!!null" {
			v.kind = isNull
		}
		sum += weight
		c.items, c.ends = append(c.items, v), append(c.ends, sum)
		return nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, x := range n.Content {
			if err := add(resolved(x), 1); err != nil {
				return nil, err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w, err := strconv.ParseFloat(n.Content[i+1].Value, 64)
			if err != nil || !(w >= 0 && w <= 1e9) {
				return nil, p.at(n.Content[i+1].Line, "%s: a weight from 0 to 1000000000", what)
			}
			if err := add(n.Content[i], w); err != nil {
				return nil, err
			}
		}
	}
	if sum <= 0 {
		return nil, p.at(n.Line, "%s: a list, or a mapping from texts to weights, at least one of them above 0", what)
	}
	for i := range c.ends {
		c.ends[i] /= sum
	}
	return c, nil
}

func (p *parser) sequence(n *yaml.Node, what string, f map[string]*yaml.Node) (generator, error) {
	first, err := p.whole(n, what, math.MinInt64/4, math.MaxInt64/4)
	if err != nil {
		return nil, err
	}
	s := &sequence{first: first, step: 1, number: p.sequences}
	p.sequences++
	if x := f["step"]; x != nil {
		if s.step, err = p.whole(x, "step", -1e9, 1e9); err != nil {
			return nil, err
		}
	}
	if x := f["per"]; x != nil {
		switch x.Value {
		case "session":
		case "run":
			s.shared = new(atomic.Int64)
		default:
			return nil, p.at(x.Line, "per %q: session or run", x.Value)
		}
	}
	return s, nil
}

func (p *parser) moments(n *yaml.Node, what, form string, unit time.Duration) (generator, error) {
	a, b, err := p.pair(n, what)
	if err != nil {
		return nil, err
	}
	var ends [2]time.Time
	for i, x := range []*yaml.Node{a, b} {
		if ends[i], err = time.Parse(form, x.Value); err != nil {
			return nil, p.at(x.Line, "%s: %q is not written as %s", what, x.Value, form)
		}
	}
	span := int64(ends[1].Unix()-ends[0].Unix()) / int64(unit/time.Second)
	if span < 0 {
		return nil, p.at(n.Line, "%s: the first is later than the second", what)
	}
	if span > math.MaxInt64/int64(unit) {
		return nil, p.at(n.Line, "%s: at most 290 years", what)
	}
	return &moments{ends[0], span + 1, unit, form}, nil
}
