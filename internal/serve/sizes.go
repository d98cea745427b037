package serve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// Sizes reads what the data of servers takes when somebody asks, and keeps it for a while: reading has its price.
type Sizes struct {
	servers func() []config.Watched
	numbers *series.Store
	board   *live.Board

	mu   sync.Mutex
	kept map[string]*keptSizes
}

// keptSizes are those of one server. turn lets one question at a time ask the server.
type keptSizes struct {
	turn   chan struct{}
	report *size.Report
}

// Limits of reading sizes.
const (
	sizesFresh    = 10 * time.Minute
	sizesPatience = 2 * time.Minute // for one answer of the server
	sizesTop      = 200
	growthSpan    = 7 * 24 * time.Hour
	growthStep    = 3600 // seconds
)

func newSizes(servers func() []config.Watched, numbers *series.Store, board *live.Board) *Sizes {
	return &Sizes{servers: servers, numbers: numbers, board: board, kept: map[string]*keptSizes{}}
}

// Read returns the sizes of a server, at most ten minutes old, with fresh as they are now. For a server that is not watched it returns
// state.ErrNotFound.
func (s *Sizes) Read(ctx context.Context, instance string, fresh bool) (*size.Report, error) {
	w, there := config.WatchedAs(s.servers(), instance)
	if !there {
		return nil, state.ErrNotFound
	}
	s.mu.Lock()
	k := s.kept[instance]
	if k == nil {
		k = &keptSizes{turn: make(chan struct{}, 1)}
		s.kept[instance] = k
	}
	s.mu.Unlock()
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if k.report != nil && !fresh && time.Since(k.report.At) < sizesFresh {
		return k.report, nil
	}
	// Who asked may not wait as long as a server with very many tables takes; who asks next gets what is read then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sizesPatience)
	defer cancel()
	r, err := readSizes(ctx, w.Target)
	if err != nil {
		return nil, err
	}
	datadir := ""
	if r.Disk != nil {
		datadir = r.Disk.Path
	}
	g, err := s.Growth(ctx, instance, datadir)
	if err != nil {
		return nil, err
	}
	size.Grown(r, g)
	k.report = r
	return r, nil
}

func readSizes(ctx context.Context, target mysql.Target) (*size.Report, error) {
	target = target.WithPatience(sizesPatience)
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	local, why, err := c.SameMachine(ctx, target)
	if err != nil {
		why = err.Error()
	}
	return size.Read(ctx, c, size.Options{Top: sizesTop, Local: local, Elsewhere: why})
}

// Growth is how fast a server's data has grown in the last days, as the store of numbers has it: that of the file system with its data
// directory, if that is known and its host is watched; else of the tables that are followed, and the binary logs. It is zero if nothing
// was seen for long enough.
func (s *Sizes) Growth(ctx context.Context, instance, datadir string) (*size.Growth, error) {
	if _, there := config.WatchedAs(s.servers(), instance); !there {
		return nil, state.ErrNotFound
	}
	now := time.Now()
	from := now.Add(-growthSpan)
	g := &size.Growth{Of: size.OfData}
	tables, total, err := s.grown(ctx, instance, from, now)
	if err != nil {
		return nil, err
	}
	g.Tables = tables
	if day, ok := size.Trend(total); ok {
		g.PerDay, g.Since, g.Until = day, total[0].At, total[len(total)-1].At
	}
	host := ""
	if d, ok := s.board.Detail(instance); ok {
		host = d.Host
	}
	if datadir == "" || host == "" {
		return g, nil
	}
	left, err := s.leftOnDisk(ctx, host, datadir, from, now)
	if err != nil {
		return nil, err
	}
	if day, ok := size.Trend(left); ok {
		g.Of, g.PerDay, g.Since, g.Until = size.OfDisk, -day, left[0].At, left[len(left)-1].At
	}
	return g, nil
}

// mostGrowing are the tables that Growth names.
const mostGrowing = 10

// grown are the tables that grow most, and how large all that is followed was.
func (s *Sizes) grown(ctx context.Context, instance string, from, to time.Time) (list []size.GrowthOf, total []size.Point, err error) {
	const tableSize, logSize = "mysql_info_schema_table_size", "mysql_binlog_size_bytes"
	type part struct{ schema, table string }
	var keys []string
	var parts []part
	for _, d := range s.numbers.Descs(instance, from.Unix(), to.Unix()) {
		switch {
		case d.Name == logSize:
			keys, parts = append(keys, d.Key()), append(parts, part{})
		case d.Name == tableSize && (labelOf(d.Labels, "component") == "data_length" || labelOf(d.Labels, "component") == "index_length"):
			keys, parts = append(keys, d.Key()), append(parts, part{labelOf(d.Labels, "schema"), labelOf(d.Labels, "table")})
		}
	}
	series, err := s.hourly(ctx, instance, keys, from, to)
	if err != nil {
		return nil, nil, err
	}
	sums := map[part][]size.Point{}
	for i, points := range series {
		total = added(total, points)
		if parts[i] != (part{}) {
			sums[parts[i]] = added(sums[parts[i]], points)
		}
	}
	for p, points := range sums {
		if day, ok := size.Trend(points); ok && day > 0 {
			list = append(list, size.GrowthOf{Schema: p.schema, Name: p.table, PerDay: day})
		}
	}
	slices.SortFunc(list, func(a, b size.GrowthOf) int {
		return cmp.Or(cmp.Compare(b.PerDay, a.PerDay), strings.Compare(a.Schema+"."+a.Name, b.Schema+"."+b.Name))
	})
	return list[:min(len(list), mostGrowing)], total, nil
}

// added are two series of sizes as one. At a moment of which only one tells, the other counts as it was last, or first: a table that
// is not among the largest ones is not followed.
func added(a, b []size.Point) []size.Point {
	if len(a) == 0 {
		return slices.Clone(b)
	}
	if len(b) == 0 {
		return a
	}
	var out []size.Point
	for i, k := 0, 0; i < len(a) || k < len(b); {
		var at time.Time
		switch {
		case k == len(b) || i < len(a) && a[i].At.Before(b[k].At):
			at = a[i].At
		default:
			at = b[k].At
		}
		for i < len(a) && !a[i].At.After(at) {
			i++
		}
		for k < len(b) && !b[k].At.After(at) {
			k++
		}
		out = append(out, size.Point{At: at, Bytes: a[max(i-1, 0)].Bytes + b[max(k-1, 0)].Bytes})
	}
	return out
}

func labelOf(labels []fleet.Label, name string) string {
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// leftOnDisk is how much was left on the file system that a folder is on.
func (s *Sizes) leftOnDisk(ctx context.Context, host, folder string, from, to time.Time) ([]size.Point, error) {
	key, longest := "", -1
	for _, d := range s.numbers.Descs(host, from.Unix(), to.Unix()) {
		if d.Name != "node_filesystem_avail_bytes" {
			continue
		}
		if mount := labelOf(d.Labels, "mountpoint"); mount != "" && len(mount) > longest && below(folder, mount) {
			key, longest = d.Key(), len(mount)
		}
	}
	if key == "" {
		return nil, nil
	}
	list, err := s.hourly(ctx, host, []string{key}, from, to)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// below reports whether a folder is in another, or is it.
func below(folder, in string) bool {
	rest, err := filepath.Rel(in, filepath.Clean(folder))
	return err == nil && rest != ".." && !strings.HasPrefix(rest, "../")
}

// hourly are the means of hours.
func (s *Sizes) hourly(ctx context.Context, instance string, keys []string, from, to time.Time) ([][]size.Point, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	begin := from.Unix() / growthStep * growthStep
	bands, err := s.numbers.Bands(ctx, instance, keys, begin, to.Unix(), growthStep)
	if err != nil {
		return nil, fmt.Errorf("read how large %s was: %w", instance, err)
	}
	out := make([][]size.Point, len(keys))
	for i, b := range bands {
		for k, v := range b.Avg {
			if !math.IsNaN(v) && b.N[k] > 0 {
				out[i] = append(out[i], size.Point{At: time.Unix(begin+int64(k)*growthStep, 0).UTC(), Bytes: v})
			}
		}
	}
	return out, nil
}
