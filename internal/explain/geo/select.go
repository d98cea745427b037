package geo

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// Options bound Select.
type Options struct {
	Column string        // which geometry is drawn; "": the first
	Rows   int           // 0: 10,000
	Bytes  int64         // of values; 0: 64 MiB
	Time   time.Duration // of the statement; 0: 30 s
}

// Defaults of Options.
const (
	defaultRows  = 10000
	defaultBytes = 64 << 20
	defaultTime  = 30 * time.Second
)

// ErrNoGeometry is what Select returns for a result without a geometry.
var ErrNoGeometry = errors.New("no column of the result is a geometry")

// Numbers of types in the protocol. Source: MySQL Internals, "Column Types".
const (
	typeBit      = 16
	typeJSON     = 245
	typeGeometry = 255
	binaryText   = 63 // the collation of what is no text
)

// Select runs a statement that only reads, in a read-only transaction, and returns its result as a map: a geometry for each row in degrees
// of WGS 84, if its SRID can be brought there, with the other columns. c is for questions about the statement; it runs in a session of its
// own under the sql_mode that the server's sessions have. Errors of a statement that may do more than read wrap sqltext.ErrWrites or
// plan.ErrStatement.
func Select(ctx context.Context, target mysql.Target, c *mysql.Conn, sql string, o Options) (*Map, error) {
	o.Rows, o.Bytes, o.Time = cmp.Or(o.Rows, defaultRows), cmp.Or(o.Bytes, defaultBytes), cmp.Or(o.Time, defaultTime)
	sql = strings.TrimRight(strings.TrimSpace(sql), "; \t\r\n")
	plain := c.Server.Dialect().ForDefault(sql)
	if err := sqltext.ReadsOnly([]byte(plain)); err != nil {
		return nil, err
	}
	notes, err := plan.Inspect(ctx, c, plain)
	if err != nil {
		return nil, err
	}
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: o.Time + 10*time.Second})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := prepare(ctx, s, c.Server, o.Time); err != nil {
		return nil, err
	}
	m := &Map{Title: oneline.Of(sql), Notes: notes}
	r := &reader{m: m, o: o, s: s, column: -1}
	err = s.Query(ctx, sql, r.row)
	switch {
	case errors.Is(err, errEnough):
	case mysql.OutOfTime(err):
		return nil, fmt.Errorf("the statement ran longer than %s: %w", digits.Span(o.Time), err)
	case err != nil:
		return nil, err
	case !r.begun:
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	return m, r.toDegrees(ctx, c)
}

// prepare bounds a session and lets it only read.
func prepare(ctx context.Context, s *mysql.Stream, server mysql.Server, limit time.Duration) error {
	for _, statement := range append(server.BoundStatements(limit), "SET NAMES utf8mb4 /* risso: map */", "START TRANSACTION /* risso: map */ READ ONLY") {
		if err := s.Exec(ctx, statement); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return fmt.Errorf("prepare the session: %w", err)
		}
	}
	return nil
}

// errEnough ends reading at a limit.
var errEnough = errors.New("enough")

type reader struct {
	m       *Map
	o       Options
	s       *mysql.Stream
	begun   bool
	column  int // of the geometry that is drawn
	columns []wire.Column
	names   []string
	bytes   int64
	broken  int
	why     error
}

// begin looks at the columns.
func (r *reader) begin() error {
	r.begun = true
	r.columns = slices.Clone(r.s.Columns())
	seen := map[string]int{}
	var geometries []string
	for i, c := range r.columns {
		name := c.Name
		if seen[c.Name]++; seen[c.Name] > 1 {
			name += "_" + strconv.Itoa(seen[c.Name])
		}
		r.names = append(r.names, name)
		if c.Type != typeGeometry {
			continue
		}
		geometries = append(geometries, name)
		if r.column < 0 && (r.o.Column == "" || strings.EqualFold(r.o.Column, name)) {
			r.column = i
		}
	}
	switch {
	case len(geometries) == 0:
		return ErrNoGeometry
	case r.column < 0:
		return fmt.Errorf("%w called %q: there are %s", ErrNoGeometry, r.o.Column, strings.Join(geometries, ", "))
	}
	return nil
}

func (r *reader) row(values [][]byte) error {
	if !r.begun {
		if err := r.begin(); err != nil {
			return err
		}
	}
	if len(r.m.Features) >= r.o.Rows {
		r.m.Notes = append(r.m.Notes, "Only the first "+digits.Counted(r.o.Rows, "row")+" are here: --max-rows.")
		return errEnough
	}
	var f Feature
	for i, v := range values {
		r.bytes += int64(len(v))
		if i != r.column {
			f.Properties = append(f.Properties, Property{r.names[i], valueOf(r.columns[i], v)})
			continue
		}
		if v == nil {
			continue
		}
		g, err := Decode(v)
		if err != nil {
			r.broken++
			r.why = cmp.Or(r.why, err)
			continue
		}
		f.Geometry = &g
	}
	r.m.Features = append(r.m.Features, f)
	if r.bytes > r.o.Bytes {
		r.m.Notes = append(r.m.Notes, "Only the first "+digits.Counted(len(r.m.Features), "row")+" are here, of "+digits.Bytes(r.bytes)+": --bytes.")
		return errEnough
	}
	return nil
}

// valueOf is a value as JSON: numbers that JSON has are numbers, what is no text is written in hexadecimal digits.
func valueOf(c wire.Column, v []byte) json.RawMessage {
	switch {
	case v == nil:
		return json.RawMessage("null")
	case c.Type == typeGeometry:
		if g, err := Decode(v); err == nil {
			return g.appendJSON(nil)
		}
	case numeric(c.Type) && json.Valid(v):
		return slices.Clone(v)
	case c.Type == typeJSON && json.Valid(v):
		return slices.Clone(v)
	}
	text := string(v)
	if c.Type == typeBit || c.Type == typeGeometry || !utf8.Valid(v) || c.Charset == binaryText && textual(c.Type) && !utf8.Valid(v) {
		text = "0x" + strings.ToUpper(hex.EncodeToString(v))
	}
	out, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// numeric reports whether a type of the protocol is a number: DECIMAL, TINY to DOUBLE, LONGLONG, INT24, YEAR, NEWDECIMAL.
func numeric(t byte) bool { return t <= 5 || t == 8 || t == 9 || t == 13 || t == 246 }

// textual reports whether a type of the protocol is of strings.
func textual(t byte) bool { return t >= 249 && t <= 254 || t == 15 }

// toDegrees brings the geometries to longitude and latitude, as far as that is possible.
func (r *reader) toDegrees(ctx context.Context, c *mysql.Conn) error {
	m := r.m
	bySRID := map[uint32][]*Geometry{}
	empty, null := 0, 0
	for _, f := range m.Features {
		switch {
		case f.Geometry == nil:
			null++
		case f.Geometry.Empty():
			empty++
		default:
			bySRID[f.Geometry.SRID] = append(bySRID[f.Geometry.SRID], f.Geometry)
		}
	}
	for srid := range bySRID {
		m.SRIDs = append(m.SRIDs, srid)
	}
	slices.Sort(m.SRIDs)
	if r.broken > 0 {
		m.Notes = append(m.Notes, digits.Plural(r.broken, "geometry", "geometries")+" could not be read: "+r.why.Error()+".")
	}
	if empty > 0 {
		m.Notes = append(m.Notes, digits.Plural(empty, "geometry is", "geometries are")+" empty.")
	}
	if null -= r.broken; null > 0 {
		m.Notes = append(m.Notes, digits.Plural(null, "row has", "rows have")+" no geometry.")
	}
	geographic := map[uint32]bool{4326: true}
	if err := askGeographic(ctx, c, m.SRIDs, geographic); err != nil {
		return err
	}
	for _, srid := range m.SRIDs {
		if err := m.bring(ctx, c, srid, bySRID[srid], geographic[srid]); err != nil {
			return err
		}
	}
	if !m.Plane && slices.ContainsFunc(m.Features, func(f Feature) bool { return f.Geometry != nil && !f.Geometry.degrees() }) {
		m.Plane = true
		m.Notes = append(m.Notes, "Some coordinates are beyond the world: they are drawn as they are.")
	}
	if m.Plane && len(m.SRIDs) > 1 {
		m.Notes = append(m.Notes, "Geometries of several SRIDs are drawn on one plane: what is next to what does not mean anything.")
	}
	if !m.Plane {
		m.normalize()
	}
	return nil
}

func askGeographic(ctx context.Context, c *mysql.Conn, srids []uint32, into map[uint32]bool) error {
	var list []string
	for _, s := range srids {
		list = append(list, strconv.FormatUint(uint64(s), 10))
	}
	statement := c.Server.Geographic(strings.Join(list, ", "))
	if statement == "" || len(list) == 0 {
		return nil
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return fmt.Errorf("ask which SRIDs are of degrees: %w", err)
	}
	for _, row := range rows {
		if n, err := strconv.ParseUint(row["SRS_ID"], 10, 32); err == nil {
			into[uint32(n)] = true
		}
	}
	return nil
}

// bring brings geometries of one SRID to degrees of WGS 84.
func (m *Map) bring(ctx context.Context, c *mysql.Conn, srid uint32, list []*Geometry, geographic bool) error {
	name := "SRID " + strconv.FormatUint(uint64(srid), 10)
	all := !slices.ContainsFunc(list, func(g *Geometry) bool { return !g.degrees() })
	switch {
	case srid == 4326 && all:
		return nil
	case srid == 4326:
		m.Plane = true
		m.Notes = append(m.Notes, "There are coordinates of "+name+" beyond ±180° of longitude or ±90° of latitude; is latitude before longitude? risso map --faults looks for that.")
		return nil
	case srid == 0 && all:
		m.Notes = append(m.Notes, "Coordinates of SRID 0 are of no system; they are taken for longitude and latitude, which they may be.")
		return nil
	case Mercator(srid):
		for _, g := range list {
			g.Each(func(p *Point) { *p = FromMercator(*p) })
		}
		return nil
	case srid == 0:
		m.Plane = true
		m.Notes = append(m.Notes, "Coordinates of SRID 0 are of no system, and are not all within the degrees of the world: they are drawn as they are.")
		return nil
	}
	err := transform(ctx, c, srid, list)
	switch {
	case err == nil:
		m.Notes = append(m.Notes, "Coordinates of "+name+" were transformed by the server.")
	case ctx.Err() != nil:
		return ctx.Err()
	case geographic && all:
		m.Notes = append(m.Notes, "Coordinates of "+name+" are degrees of another datum; they are taken for those of WGS 84, which may be some hundred metres off ("+err.Error()+").")
	default:
		m.Plane = true
		m.Notes = append(m.Notes, "Coordinates of "+name+" are drawn as they are: "+strings.TrimSuffix(err.Error(), ".")+".")
	}
	return nil
}

// errNoTransform is why some servers leave coordinates as they are.
var errNoTransform = errors.New("this server has no ST_Transform")

// transform lets the server transform geometries, some at a time. All of them or none.
func transform(ctx context.Context, c *mysql.Conn, srid uint32, list []*Geometry) error {
	if c.Server.ToDegrees("", "") == "" {
		return errNoTransform
	}
	const most = 1 << 20 // bytes of a statement: four times less than the smallest default of max_allowed_packet
	out := make([]Geometry, 0, len(list))
	var asks []string
	size := 0
	flush := func() error {
		if len(asks) == 0 {
			return nil
		}
		err := c.QuietQuery(ctx, "SELECT /* risso: to degrees */ "+strings.Join(asks, " UNION ALL SELECT "), func(row []sqldriver.Value) error {
			b, ok := row[0].([]byte)
			if !ok {
				return fmt.Errorf("%w: the server made nothing of it", ErrGeometry)
			}
			g, err := Decode(b)
			out = append(out, g)
			return err
		})
		asks, size = nil, 0
		return err
	}
	for _, g := range list {
		wkb := g.WKB(nil)
		asks = append(asks, c.Server.ToDegrees("X'"+hex.EncodeToString(wkb)+"'", strconv.FormatUint(uint64(srid), 10)))
		size += 2 * len(wkb)
		if size > most || len(asks) == 100 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if len(out) != len(list) {
		return fmt.Errorf("%w: %d of %d came back", ErrGeometry, len(out), len(list))
	}
	for i, g := range list {
		*g = out[i]
	}
	return nil
}

// normalize turns and cuts geometries as GeoJSON wants them.
func (m *Map) normalize() {
	cuts, poles := 0, 0
	for i := range m.Features {
		g := m.Features[i].Geometry
		if g == nil {
			continue
		}
		n, cut, pole := g.Normal()
		if cut {
			cuts++
		}
		if pole {
			poles++
		}
		m.Features[i].Geometry = &n
	}
	if cuts > 0 {
		m.Notes = append(m.Notes, digits.Plural(cuts, "geometry was", "geometries were")+" cut at the antimeridian: between two points the shorter way around the world is taken.")
	}
	if poles > 0 {
		m.Notes = append(m.Notes, digits.Plural(poles, "geometry goes", "geometries go")+" around a pole, and is left as it is.")
	}
}
