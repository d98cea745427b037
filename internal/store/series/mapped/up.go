package mapped

import (
	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// upName is the series that Prometheus itself writes of each target: 1 if it answered, else 0.
const upName = "up"

// sign is a stored series that tells whether its instance answered.
type sign struct {
	name   string
	always bool // it is there only when it did
}

// signs has one sign for each kind of instance: a server, a host, Risso itself.
var signs = []sign{{"mysql_up", false}, {"node_load1", true}, {"risso_store_samples_total", true}}

// instead turns matchers that allow up into those of the sign.
func (s sign) instead(matchers []*labels.Matcher) ([]*labels.Matcher, bool) {
	if !mayBe(matchers, upName) {
		return nil, false
	}
	out := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, prom.MetricNameLabel, s.name)}
	for _, m := range matchers {
		if m.Name != prom.MetricNameLabel {
			out = append(out, m)
		}
	}
	return out, true
}

// mayBe reports whether matchers allow a name.
func mayBe(matchers []*labels.Matcher, name string) bool {
	for _, m := range matchers {
		if m.Name == prom.MetricNameLabel && !m.Matches(name) {
			return false
		}
	}
	return true
}

// named reports whether matchers allow no name but this.
func named(matchers []*labels.Matcher, name string) bool {
	for _, m := range matchers {
		if m.Name == prom.MetricNameLabel && m.Type == labels.MatchEqual && m.Value == name {
			return true
		}
	}
	return false
}

// constant is a series that is 1 where another one has a sample.
type constant struct{ storage.Series }

// Iterator implements storage.Series.
func (c constant) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	if it, ok := old.(*ones); ok {
		it.Iterator = c.Series.Iterator(it.Iterator)
		return it
	}
	return &ones{c.Series.Iterator(old)}
}

type ones struct{ chunkenc.Iterator }

// At implements chunkenc.Iterator.
func (o *ones) At() (int64, float64) { return o.AtT(), 1 }
