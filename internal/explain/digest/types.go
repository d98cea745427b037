// Package digest turns a record of statements (slow log, general log, or any Stream) into a Profile:
// which classes of statements there are, and what each of them cost.
//
// Sources give events, events fall into classes by their fingerprint (package sqltext), classes make the
// profile. Text logs are read in blocks by several workers; the profile does not depend on how many.
package digest

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/sqltext"
)

// Event is one statement as a source describes it. Its slices are valid until the next event.
type Event struct {
	// Time is when the statement ended or, if the source has only that, when it started, in
	// microseconds since 1970 UTC; 0: unknown.
	Time int64
	// Query is the text without the closing semicolon.
	Query []byte
	// Cut is how many bytes were left out at the end of Query.
	Cut int
	// Explain holds MariaDB's "# explain:" lines without that mark, a line each.
	Explain            []byte
	DB, User, Host, IP []byte
	// Thread is the connection's id; 0: unknown.
	Thread int64
	// QueryTime and LockTime are in seconds.
	QueryTime, LockTime float64
	// NoQueryTime and NoLockTime say that they are unknown.
	NoQueryTime, NoLockTime bool
	// Attrs are all further attributes by the log's own names: Rows_sent, Rows_examined, Full_scan,
	// InnoDB_IO_r_ops, Bytes_sent, Errno and so on. Each name comes once.
	Attrs []Attr
}

// AttrKind says what an attribute's value is.
type AttrKind uint8

const (
	// AttrNumber is a number, in Attr.Num.
	AttrNumber AttrKind = iota
	// AttrFlag is Yes (Num 1) or No (Num 0).
	AttrFlag
	// AttrText is anything else, in Attr.Text.
	AttrText
)

// Attr is an attribute of an event.
type Attr struct {
	Name string // one string per name, however many events carry it
	Num  float64
	Text []byte
	Kind AttrKind
}

// Attr returns the attribute of that name.
func (e *Event) Attr(name string) (Attr, bool) {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a, true
		}
	}
	return Attr{}, false
}

// Filter says which events count. It may be called by several goroutines concurrently, and must not keep the event.
type Filter interface{ Keep(*Event) bool }

// Options say what of the sources makes the profile, and how it is ordered.
type Options struct {
	// GroupBy is what makes a class: fingerprint (default), db, user, host, tables, or an attribute by
	// the log's own name. An event without it is counted in Profile.Skipped.
	GroupBy string
	Filter  Filter // nil keeps all
	// MergeTables makes one class of statements on tables whose names differ in numbers or hashes only.
	MergeTables bool
	// Since and Until bound Event.Time: Since ≤ time < Until. Zero: no bound. With a bound, events of
	// unknown time are left out, and counted in Profile.Skipped.
	Since, Until time.Time
	// Limit is how many classes the profile lists; the others make Profile.Other. 0: all.
	Limit int
	// MinShare leaves classes out whose share of the OrderBy figure is less (0.01 is 1 %); they go to Other.
	MinShare float64
	// OrderBy is calls, or ATTRIBUTE:FIGURE with sum, max, min, avg, p95, median, stddev or count as the
	// figure. Highest first. Default: Query_time:sum, or Log_bytes:sum when all sources are binary logs.
	OrderBy string
	// Samples is how many of the slowest statements a class keeps. Default 1; negative: none.
	Samples int
	// SampleBytes is how many bytes of a sample are kept; 0: 16 KiB; negative: all that is read of a statement, which is
	// 8 MiB. When samples take 24 MiB in all, no more than 16 KiB of each are kept. Sample.Cut says what is left out.
	SampleBytes int
	// Redact replaces literals in samples by ?. What sets a password is always cut.
	Redact bool
	// Own counts Risso's own statements, too, which have a comment "/* risso: why */". Else they are left out, and
	// counted in Profile.Skipped.
	Own bool
	// ApdexThreshold is the T of Class.Apdex, in seconds. Default 1, as in pt-query-digest.
	ApdexThreshold float64
	// Workers is how many goroutines read text logs; 0: as many as there are cores.
	Workers int
	// Format is one of Formats; default auto.
	Format string
	// Streams read the formats that this package does not read itself, from the log's first byte on.
	Streams map[string]func(io.Reader) (Stream, error)
	// Location is the zone of times that are written without one. Default UTC.
	Location *time.Location
	// Follow goes on reading at the end of a file, also when it is rotated or cut, until the context ends.
	Follow bool
	// FromEnd, with Follow: what files hold already is skipped.
	FromEnd bool
	// Every and Each, with Follow: Each is called about Every so often with the profile of what came since
	// the last call. Run then returns what came after the last call.
	Every time.Duration
	Each  func(*Profile)
	// Progress is called now and then with the bytes read and the bytes there are (0: unknown).
	Progress func(done, total int64)
	// blockSize is for tests; 0: the default.
	blockSize int
}

// Source is where events come from: a text log (Open), or anything that produces events itself (Events). One of
// the two is set. File and Reader make the usual ones.
type Source struct {
	Name string
	// Size is the number of bytes there are, for Progress; 0: unknown.
	Size int64
	// Open opens a log, plain or as package wrap reads it.
	Open func(ctx context.Context) (io.ReadCloser, error)
	// Events opens a stream of events: performance_schema, a proxy.
	Events func(ctx context.Context) (Stream, error)
	path   string // of a file that can be followed
}

// Stream returns events one after the other: all that a source other than a text log has to do. It is read by
// one goroutine.
type Stream interface {
	// Next fills in the next event; io.EOF after the last. The event's slices stay valid until the next
	// call. Next resets all fields that it does not set.
	Next(e *Event) error
	// Info returns, after the last event, what was read: format, server, bytes. Events may stay 0.
	Info() SourceInfo
	// Skipped returns, after the last event, what was left out: why → how many. nil: nothing.
	Skipped() map[string]int64
	Close() error
}

// SkippedOwn is the reason in Profile.Skipped for statements that Risso itself sent.
const SkippedOwn = "Risso's own statements (--own counts them)"

// Profile is what the sources cost, class by class.
type Profile struct {
	Sources []SourceInfo `json:"sources"`
	// From and To are the first and last Event.Time; zero if no event has one.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Calls is the number of events that count; Unique the number of classes, also those not listed.
	Calls  int64 `json:"calls"`
	Unique int   `json:"unique"`
	// Metrics, Flags and Histogram are those of all events together.
	Metrics   []Metric `json:"metrics"`
	Flags     []Flag   `json:"flags,omitempty"`
	Histogram [8]int64 `json:"histogram"`
	// Classes are ordered by OrderBy, highest first.
	Classes []Class `json:"classes"`
	// Other is all classes that Limit or MinShare left out, and what was folded to bound memory; nil if none.
	Other   *Class `json:"other,omitempty"`
	GroupBy string `json:"group_by"`
	OrderBy string `json:"order_by"`
	// Skipped says what was not understood or left out: why → how many.
	Skipped map[string]int64 `json:"skipped,omitempty"`
	// Folded is how many classes lost figures to Other because there were too many for memory; FoldedTime
	// is the most Query_time, in seconds, that may be missing from one class. 0: all figures are exact.
	Folded     int64   `json:"folded,omitempty"`
	FoldedTime float64 `json:"folded_time,omitempty"`
	// QuantileError bounds the relative error of P95 and Median (0.0078 is 0.78 %).
	QuantileError float64 `json:"quantile_error"`
}

// SourceInfo says what was read from a source.
type SourceInfo struct {
	Name   string `json:"name"`
	Format string `json:"format"`           // slow, general, or a Stream's name
	Server string `json:"server,omitempty"` // from the log's header
	Bytes  int64  `json:"bytes"`            // after decompression
	Events int64  `json:"events"`           // including those that a filter left out
	// Unread is how many bytes belong to no event.
	Unread int64 `json:"unread,omitempty"`
	// Broken says why reading stopped before the end of the source; empty: it did not.
	Broken string `json:"broken,omitempty"`
	// Looks says what the source looks like if it is not a log; empty: it is a log, or nothing known.
	Looks string `json:"looks,omitempty"`
	// PassedOver says what the source is if it is a file that servers keep next to logs and that contains no statements: an
	// index of GTIDs, a list of logs. It was not read.
	PassedOver string `json:"passed_over,omitempty"`
	// Quiet says why a log has no events although nothing is wrong: "is empty"; empty: it has events, or is not a log.
	Quiet string `json:"quiet,omitempty"`
}

// quiet says why a log that was read to its end has no events.
func (s *SourceInfo) quiet() string {
	switch {
	case s.Events > 0 || s.Unread > 0 || s.PassedOver != "" || s.Broken != "" || s.Looks != "":
	case s.Bytes == 0:
		return "is empty"
	case s.Server != "" && (s.Format == FormatBinlog || s.Format == FormatBinlogText):
		return "has no statements and no rows"
	case s.Server != "":
		return "has only the lines that a server writes when it opens a log"
	}
	return ""
}

// Quiet says in a sentence which sources are logs without any statement, and why; empty: none.
func (p *Profile) Quiet() string {
	var parts []string
	for _, s := range p.Sources {
		if s.Quiet != "" {
			parts = append(parts, s.Name+" "+s.Quiet)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "No statements: " + strings.Join(parts, "; ") + "."
}

// PassedOver says in a sentence which sources hold no statements and were left alone; empty: none.
func (p *Profile) PassedOver() string {
	kinds := map[string][]string{}
	n := 0
	for _, s := range p.Sources {
		if s.PassedOver != "" {
			kinds[s.PassedOver] = append(kinds[s.PassedOver], s.Name)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, what+": "+strings.Join(kinds[what], ", "))
	}
	return "Skipped, because it contains no statements: " + strings.Join(parts, "; ") + "."
}

// Class is the statements whose fingerprints have one plain form, or one value of another GroupBy.
type Class struct {
	// ID is the one name of the statement, whatever it was read from: sqltext.ClassID of the plain form of the
	// fingerprint, 32 upper-case hex digits. Of another GroupBy it is ClassID of the group.
	ID string `json:"id"`
	// PtID is pt-query-digest 3.7.1's ID of the class, by its slowest sample; empty without a sample, and unless
	// grouped by fingerprint. Where statements of one plain form are spelled in several ways, which are classes of
	// their own there, PtIDs are the IDs of all of them, and PtID is that of the spelling that took the most time.
	PtID  string   `json:"pt_id,omitempty"`
	PtIDs []string `json:"pt_ids,omitempty"`
	// Digests are the server's own DIGEST of the class, if that was read.
	Digests []string `json:"digests,omitempty"`
	// Group is the value of GroupBy: the fingerprint, or a user's name.
	Group string `json:"group"`
	// Fingerprint and Verb are those of the worst sample; with GroupBy fingerprint, of all: of the spelling that took
	// the most time. Fingerprint is cut at 16 KiB (the ID is that of the whole).
	Fingerprint string `json:"fingerprint"`
	Verb        string `json:"verb"`
	Calls       int64  `json:"calls"`
	// Share is the class's part of the OrderBy figure summed over all classes, 0 to 1.
	Share float64   `json:"share"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Metrics are Query_time, Lock_time, Query_size (bytes of the text), then all numeric attributes by name.
	Metrics []Metric `json:"metrics"`
	Flags   []Flag   `json:"flags,omitempty"`
	// Values counts db, user and host, and attributes that are text or codes (Errno, Stored_routine).
	Values []Values `json:"values,omitempty"`
	// Histogram counts calls by Query_time: <10 µs, <100 µs, <1 ms, <10 ms, <100 ms, <1 s, <10 s, ≥10 s.
	Histogram [8]int64 `json:"histogram"`
	// VarianceToMean is the variance of Query_time over its mean (index of dispersion), in seconds.
	VarianceToMean float64 `json:"variance_to_mean"`
	// Apdex is (calls ≤ T + half of those ≤ 4T) / calls for Query_time, T being Options.ApdexThreshold
	// (Apdex Technical Specification 1.1, 3.2).
	Apdex   float64         `json:"apdex"`
	Samples []Sample        `json:"samples,omitempty"` // slowest first
	Tables  []sqltext.Table `json:"tables,omitempty"`  // of the slowest sample
}

// Metric returns the metric of that name; the zero Metric if there is none.
func (c *Class) Metric(name string) Metric { return metricOf(c.Metrics, name) }

// Metric returns the metric of that name over all classes; the zero Metric if there is none.
func (p *Profile) Metric(name string) Metric { return metricOf(p.Metrics, name) }

func metricOf(list []Metric, name string) Metric {
	for _, m := range list {
		if m.Name == name {
			return m
		}
	}
	return Metric{Name: name}
}

// Metric sums up a numeric attribute. Count is how many events carry it.
type Metric struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"` // s, ms, bytes, or empty: a number of things
	Count  int64   `json:"count"`
	Sum    float64 `json:"sum"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Avg    float64 `json:"avg"`
	P95    float64 `json:"p95"`
	Median float64 `json:"median"`
	Stddev float64 `json:"stddev"` // of the population
}

// Flag counts how often an attribute was Yes and No.
type Flag struct {
	Name string `json:"name"`
	Yes  int64  `json:"yes"`
	No   int64  `json:"no"`
}

// Values counts the values of db, user, host or a text attribute.
type Values struct {
	Name string       `json:"name"`
	Top  []ValueCount `json:"top"` // most frequent first, at most 20
	// Distinct is the number of different values. A class counts at most 4,000 values over all attributes; calls with others
	// are in Rest.
	Distinct int   `json:"distinct"`
	Rest     int64 `json:"rest,omitempty"` // calls whose value is not in Top
}

// ValueCount is how many calls had a value.
type ValueCount struct {
	Value string `json:"value"`
	Calls int64  `json:"calls"`
}

// Sample is a statement of a class as it was run.
type Sample struct {
	Query   string    `json:"query"`
	DB      string    `json:"db,omitempty"`
	User    string    `json:"user,omitempty"`
	Host    string    `json:"host,omitempty"`
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	Explain string    `json:"explain,omitempty"`
	Cut     int       `json:"cut,omitempty"` // bytes cut off the end of Query; -1: the source does not say how many
}
