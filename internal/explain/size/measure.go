package size

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sample"
)

// Measured is what writing a table anew, or compressing it, would make of it, by a sample of its rows in a sandbox.
type Measured struct {
	Schema  string  `json:"schema"`
	Table   string  `json:"table"`
	Server  string  `json:"server"`    // that of the sandbox
	Now     int64   `json:"now_bytes"` // what it takes on disk
	Rows    int64   `json:"rows"`
	Counted bool    `json:"rows_counted"` // else the server's estimate
	Sampled int64   `json:"sampled_rows"` // that were copied
	Spread  bool    `json:"spread"`       // the sample is from many places of the key's range; else the first rows
	Error   float64 `json:"error_share"`  // twice the standard error of the sample's bytes per row, as a share; 0 if not Spread
	Ways    []Way   `json:"ways"`

	places     int   // of the key's range
	compressed bool  // its pages are compressed already
	other      bool  // the sandbox is of another version
	page       int64 // bytes of its pages, if not those of the server
}

// Way is one way to write a table anew.
type Way struct {
	Statement string  `json:"statement"`
	After     int64   `json:"after_bytes"`      // what it would take
	PerRow    float64 `json:"bytes_per_row"`    // of the sample, on disk
	Failed    string  `json:"failed,omitempty"` // why it could not be measured
	Sure      string  `json:"sure"`             // how it was measured, and how sure that is
}

func (w Way) words() string { return cmp.Or(w.Failed, w.Sure) }

// MeasureOptions bound Measure.
type MeasureOptions struct {
	Rows  int           // of the sample; 0: 40,000
	Bytes int64         // of the sample at most; 0: 64 MiB
	Count time.Duration // for counting the rows; 0: 10 s
	Dir   string        // of the sandbox; "": the default one
	Say   func(string)  // nil: silence
}

// purpose is what sandboxes are claimed for.
const purpose = "size"

// Measure takes a sample of a table's rows into a sandbox of the server's version, writes it anew there in several ways, and scales what
// each takes to all rows. The server itself is only read: SELECT is needed, and a count of the rows for a bounded time. What the pages take is counted
// by pages, for page compression by the blocks that the file system of this machine has given.
func Measure(ctx context.Context, target mysql.Target, c *mysql.Conn, t Table, o MeasureOptions) (*Measured, error) {
	o.Rows, o.Bytes, o.Count = cmp.Or(o.Rows, 40000), cmp.Or(o.Bytes, 64<<20), cmp.Or(o.Count, 10*time.Second)
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if !strings.EqualFold(t.Engine, "InnoDB") {
		return nil, fault.New(fault.Failed, "", fmt.Errorf("%s is a %s table: only InnoDB can be measured", mysql.TableName{Schema: t.Schema, Name: t.Name}, t.Engine))
	}
	m := &Measured{Schema: t.Schema, Table: t.Name, Now: t.Allocated}
	m.count(ctx, c, t, o.Count)
	from, err := target.WithDatabase(t.Schema).ConnectStream(ctx, mysql.StreamOptions{Patience: time.Minute})
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err := from.ForRows(ctx, c.Server); err != nil {
		return nil, err
	}
	server, err := sandbox.Nearest(ctx, c.Server.Server, nil)
	if err != nil {
		return nil, err
	}
	pageSize, err := c.Text(ctx, "SELECT /* risso: measure a sample */ @@innodb_page_size")
	if err != nil {
		return nil, fmt.Errorf("ask for the size of pages: %w", err)
	}
	o.Say("starting a sandbox of " + server.Name)
	box, err := sandbox.UpFor(ctx, purpose, sandbox.Options{Dir: o.Dir, Servers: []string{server.Binary}, Settings: []string{"skip_log_bin", "local_infile=ON", "innodb_page_size=" + pageSize}})
	if err != nil {
		return nil, fmt.Errorf("start a sandbox of %s: %w", server.Name, err)
	}
	err = m.in(ctx, box.Sandbox, from, t, c.Server, o)
	return m, errors.Join(err, box.End(ctx))
}

// count counts the rows, or takes the server's estimate if that takes too long.
func (m *Measured) count(ctx context.Context, c *mysql.Conn, t Table, limit time.Duration) {
	text, err := c.Text(ctx, c.Server.Bounded(limit, "SELECT /* risso: measure a sample */ COUNT(*) FROM "+mysql.TableName{Schema: t.Schema, Name: t.Name}.String()))
	if err == nil {
		m.Rows, m.Counted = number(text), true
	} else if t.Rows != nil {
		m.Rows = *t.Rows
	}
}

func (m *Measured) in(ctx context.Context, box *sandbox.Sandbox, from *mysql.Stream, t Table, c mysql.Server, o MeasureOptions) error {
	target, err := mysql.ParseTarget(box.Primary().DSN)
	if err != nil {
		return err
	}
	own, err := mysql.Connect(ctx, target.WithPatience(5*time.Minute), nil)
	if err != nil {
		return err
	}
	defer own.Close()
	m.Server, m.other = own.Server.Server.String(), !own.Server.Number.SameSeries(c.Number)
	to, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: 5 * time.Minute})
	if err != nil {
		return err
	}
	defer to.Close()
	if err := to.ForRows(ctx, own.Server); err != nil {
		return err
	}
	name := mysql.TableName{Schema: m.Schema, Name: m.Table}
	table, err := sample.Define(ctx, from, to, own.Server.DialectOf(""), name)
	if err != nil {
		return err
	}
	o.Say("copying a sample of " + m.Schema + "." + m.Table)
	part, err := sample.Copy(ctx, from, to, table, sample.Options{Rows: int64(o.Rows), Bytes: o.Bytes, Of: m.Rows, OfBytes: optionalNumber(t.Data), Purpose: "measure a sample"})
	if err != nil {
		return err
	}
	if m.Sampled, m.Spread, m.places = part.Rows, part.Kind == sample.Spread, len(part.Places); m.Sampled == 0 {
		return fault.New(fault.Failed, "", fmt.Errorf("%s has no rows to measure", name))
	}
	if m.Spread {
		m.Error = spread(part.Places)
	}
	m.compressed, m.page = t.compressesPages(), t.pageSize(0)
	ways := [][2]string{{"FORCE", ""}}
	if !m.compressed && m.page == 0 {
		ways = append(ways, [2]string{"ROW_FORMAT = COMPRESSED, KEY_BLOCK_SIZE = 8", ""})
	}
	if words := own.Server.PageCompression(); words != "" && !m.compressed {
		ways = append(ways, [2]string{words + ", FORCE", ", ROW_FORMAT = DYNAMIC, KEY_BLOCK_SIZE = 0"}) // which undoes the one before
	}
	for _, w := range ways {
		o.Say("writing the sample anew: " + w[0])
		m.Ways = append(m.Ways, m.way(ctx, own, w[0], w[1]))
	}
	return ctx.Err()
}

func optionalNumber(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// spread is twice the standard error of the mean bytes per row over the places, as a share of the mean.
func spread(places []sample.Place) float64 {
	n := float64(len(places))
	if n < 2 {
		return 0
	}
	means := make([]float64, len(places))
	sum, squares := 0.0, 0.0
	for i, p := range places {
		means[i] = float64(p.Bytes) / float64(max(1, p.Rows))
		sum += means[i]
	}
	mean := sum / n
	for _, v := range means {
		squares += (v - mean) * (v - mean)
	}
	if mean == 0 {
		return 0
	}
	return 2 * math.Sqrt(squares/(n-1)/n) / mean
}

// manyPages is from where on the extents that indexes hold beyond their pages grow with them, a seventh of them on MySQL 9.7; below they are
// some, however few the pages.
const manyPages = 1000

// way writes the sample anew and counts what it takes.
func (m *Measured) way(ctx context.Context, c *mysql.Conn, words, also string) Way {
	name := mysql.TableName{Schema: m.Schema, Name: m.Table}
	w := Way{Statement: "ALTER TABLE " + name.String() + " " + words}
	fail := func(err error) Way {
		w.Failed = err.Error()
		return w
	}
	for _, statement := range []string{w.Statement + also, "ANALYZE TABLE " + name.String(), "FLUSH TABLES " + name.String() + " FOR EXPORT", "UNLOCK TABLES"} {
		if err := c.Query(ctx, statement, mysql.IgnoreRow); err != nil {
			return fail(err)
		}
	}
	pages, page := int64(0), int64(0)
	err := c.Query(ctx, "SELECT /* risso: measure a sample */ SUM(IF(stat_name = 'n_leaf_pages', stat_value, 0)), SUM(IF(stat_name = 'size', stat_value, 0)), @@innodb_page_size FROM mysql.innodb_index_stats WHERE database_name = "+mysql.Literal(m.Schema), func(row []sqldriver.Value) error {
		pages, page = number(mysql.Text(row[0])), number(mysql.Text(row[2]))
		if pages > manyPages {
			pages = number(mysql.Text(row[1]))
		}
		return nil
	})
	if err == nil && pages == 0 {
		err = errors.New("the server has not counted the pages")
	}
	if err != nil {
		return fail(err)
	}
	var files Sum
	err = c.Query(ctx, c.Server.Tablespaces(), func(row []sqldriver.Value) error {
		if t := c.Server.ReadTablespace(bytesOf(nil, row)); isOf(t, m.Schema, m.Table) {
			files.add(Sum{t.File, t.Allocated})
		}
		return nil
	})
	if err == nil && files.File == 0 {
		err = errors.New("the server does not list its file")
	}
	if err != nil {
		return fail(err)
	}
	if strings.Contains(words, "KEY_BLOCK_SIZE") {
		page = 8 << 10
	} else if also == "" {
		page = cmp.Or(m.page, page)
	}
	// A file has room for rows to come: some extents, however many rows there are.
	reserve := float64(max(files.File-pages*page, 0))
	bytes, pressed := float64(pages*page), also != "" || m.compressed
	if pressed && (files.File-files.Allocated)*50 < files.File {
		return fail(errors.New("no holes: its pages do not compress, or the file system of this machine cannot make holes"))
	}
	if pressed {
		if c.Server.SparsePages() {
			reserve = 0
		}
		bytes = max(float64(files.Allocated)-reserve, 0)
	}
	w.PerRow = bytes / float64(m.Sampled)
	w.After = int64(w.PerRow*float64(m.Rows) + reserve)
	w.Sure = m.sure()
	return w
}

// sure says how sure a measurement is.
func (m *Measured) sure() string {
	text := fmt.Sprintf("measured on %s of %s", digits.Thousands(m.Sampled), digits.Counted(m.Rows, "row"))
	if !m.Counted {
		text += ", as the server estimates their number"
	}
	if m.other {
		text += " by " + m.Server + ", for the server's own version is not on this machine"
	}
	switch {
	case m.Sampled >= m.Rows && m.Counted:
		return text
	case m.Spread:
		return text + fmt.Sprintf(", from %s of the key: ± %s", digits.Plural(m.places, "place", "places"), digits.Percent(m.Error))
	}
	return text + ", the first ones: those further on may differ"
}
