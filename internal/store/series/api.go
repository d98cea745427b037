// Package series keeps numbers: every second of every watched instance, for
// good, in little space, with the extremes of every minute and hour.
//
// DESIGN.md explains the design, FORMAT.md the format of its files.
package series

import (
	"slices"

	"github.com/rissodb/risso/internal/fleet"
)

// Type says how a series is read.
type Type uint8

// The types of series.
const (
	// Gauge is a value in itself: threads running, bytes free.
	Gauge Type = iota
	// Counter only grows, except for a reset; its rate per second is shown.
	Counter
)

// Label is one name and value; a Desc's labels are sorted by name.
type Label = fleet.Label

// Desc names a series of one instance. The instance itself is no label here;
// the querier adds instance="<id>".
type Desc struct {
	Name   string // Prometheus metric name: mysql_global_status_commands_total
	Labels []Label
	Type   Type
}

// DescOf is a metric as a series.
func DescOf(m fleet.Metric) Desc {
	d := Desc{Name: m.Name, Labels: slices.Clone(m.Labels)}
	if m.Counter {
		d.Type = Counter
	}
	return d
}

// Key is the canonical text of a series within its instance.
func (d Desc) Key() string { return fleet.Key(d.Name, d.Labels) }
