// Package mapsql is the command map: a statement's result on a map, and what is wrong with geometry columns.
package mapsql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/sqltext"
)

type command struct {
	screen.Streams
	flags.Server
	output, column, tiles, bytes, schema string
	rows                                 int
	timeout                              time.Duration
	check                                bool
}

// New is risso map.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "map [STATEMENT]",
		Short: "Show the result of a SELECT with geometry on a map; find spatial mistakes",
		Long: `Runs a statement that only reads, and writes its result as a map: GeoJSON (RFC 7946), KML, a
drawing (SVG) or a page with the drawing and the rows (HTML). The first geometry of each row is
drawn, or the one that --column names; the other columns are its properties. Without a
STATEMENT, or with -, it is read from standard input.

Coordinates are brought to longitude and latitude: those of SRID 4326 and of Web Mercator (3857)
here, others by the server's ST_Transform, where it has one. What cannot be brought there is
drawn as it is, and is no GeoJSON or KML. The drawing has the outlines of land; nothing is fetched, unless
--tiles names a server of pictures, which the browser that opens the page then asks.

The statement runs in a read-only transaction, at most --timeout long; the first --max-rows rows, and
so many that --bytes are reached, are taken, and it is said if there are more.

--faults looks at all geometry columns, a sample of their rows, and the statements that
performance_schema knows, or the STATEMENT: columns without SRID, axes that are swapped,
geometries that are not valid, conditions that no spatial index serves, boxes where shapes are meant.
With findings it ends with 0, too.`,
		Example: `  risso map --dsn 'risso@unix(/run/mysqld/mysqld.sock)/shop' "SELECT name, place FROM stores" >stores.geojson
  risso map "SELECT name, place FROM shop.stores" --output html >stores.html
  risso map "SELECT name, delivers FROM shop.stores" --output svg >stores.svg
  risso map --faults --schema shop`,
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args, cmd.Flags().Changed("output"))
		},
	}
	fl := cmd.Flags()
	c.Bind(cmd, "the server")
	flags.OutputVar(fl, &c.output, "geojson, kml, svg, html, or text and json with --faults (default geojson; text with --faults)", "geojson", "kml", "svg", "html", "json", "text")
	fl.StringVar(&c.column, "column", "", "draw the geometry of this column of the result")
	fl.IntVar(&c.rows, "max-rows", 10000, "take so many rows at most")
	fl.StringVar(&c.bytes, "bytes", "64MiB", "take so many bytes of rows at most, about")
	flags.DurationVar(fl, &c.timeout, "timeout", 30*time.Second, "end the statement after this time")
	fl.StringVar(&c.tiles, "tiles", "", "with --output html: a server of map pictures, https://HOST/{z}/{x}/{y}.png")
	fl.BoolVar(&c.check, "faults", false, "find what is wrong with geometry columns and the statements that search them")
	fl.StringVar(&c.schema, "schema", "", "with --faults: only this schema")
	return cmd
}

func (c *command) run(ctx context.Context, args []string, chosen bool) error {
	if !chosen && c.check {
		c.output = "text"
	}
	bytes, err := digits.ParseBytes(c.bytes)
	switch {
	case err != nil || bytes <= 0:
		return fault.Usagef("--bytes %q: write it as 64MiB", c.bytes)
	case c.check && c.output != "text" && c.output != "json":
		return fault.Usagef("--faults --output %s: there are text and json", c.output)
	case !c.check && c.output == "text":
		return fault.Usagef("--output text is for --faults")
	case !c.check && c.schema != "":
		return fault.Usagef("--schema is for --faults")
	case c.tiles != "" && c.output != "html":
		return fault.Usagef("--tiles is for --output html")
	case c.tiles != "" && !tilesFine(c.tiles):
		return fault.Usagef("--tiles %q: write it as https://HOST/{z}/{x}/{y}.png", c.tiles)
	case c.rows < 1:
		return fault.Usagef("--max-rows %d: at least 1", c.rows)
	case c.timeout <= 0:
		return fault.Usagef("--timeout %s: more than 0", c.timeout)
	}
	statement := ""
	if len(args) == 1 && args[0] != "-" {
		statement = args[0]
	} else if !c.check || len(args) == 1 {
		text, err := io.ReadAll(io.LimitReader(c.In, mostStatement))
		if err != nil {
			return fmt.Errorf("read the statement: %w", err)
		}
		statement = string(text)
	}
	if strings.TrimSpace(statement) == "" && !c.check {
		return fault.New(fault.Usage, `risso map "SELECT …"`, errors.New("no statement"))
	}
	target, err := c.Target()
	if err != nil {
		return err
	}
	conn, err := mysql.Connect(ctx, target.WithPatience(patience), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if c.check {
		return c.checked(ctx, conn, target.Database(), statement)
	}
	m, err := geo.Select(ctx, target, conn, statement, geo.Options{Column: c.column, Rows: c.rows, Bytes: bytes, Time: c.timeout})
	if err != nil {
		return hinted(err)
	}
	if c.output != "html" {
		for _, n := range m.Notes {
			screen.Says(c.Err)(n)
		}
	}
	switch c.output {
	case "kml":
		return m.WriteKML(c.Out)
	case "svg":
		return m.WriteSVG(c.Out)
	case "html":
		return m.WriteHTML(c.Out, release.Version(), c.tiles)
	}
	return m.WriteGeoJSON(c.Out) // json is GeoJSON, too
}

// patience is how long the server may take for one answer.
const patience = 90 * time.Second

// mostStatement is the longest statement that is read.
const mostStatement = 1 << 20

// tilesFine reports whether a pattern names a server and says where the numbers of a tile go.
func tilesFine(pattern string) bool {
	rest, ok := strings.CutPrefix(pattern, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(pattern, "http://")
	}
	return ok && rest != "" && !strings.ContainsAny(pattern, " ;'\"") && strings.Contains(rest, "{z}") && strings.Contains(rest, "{x}") && strings.Contains(rest, "{y}")
}

// hinted adds what a person can do.
func hinted(err error) error {
	switch {
	case errors.Is(err, sqltext.ErrWrites), errors.Is(err, plan.ErrStatement):
		return fault.New(fault.Failed, "risso map runs one SELECT that reads and nothing else", err)
	case errors.Is(err, geo.ErrNoGeometry):
		return fault.New(fault.Failed, "SELECT a column of a geometry type, or ST_GeomFromText(…), ST_GeomFromGeoJSON(…), ST_GeomFromWKB(…)", err)
	case mysql.OutOfTime(err):
		return fault.New(fault.Failed, "--timeout gives it more", err)
	}
	return err
}

// checked looks for mistakes.
func (c *command) checked(ctx context.Context, conn *mysql.Conn, database, statement string) error {
	f, unknown, err := geo.ReadFacts(ctx, conn, geo.SampleOptions{Schema: c.schema})
	if err != nil {
		return err
	}
	if strings.TrimSpace(statement) != "" {
		f.Statements = []geo.Statement{{SQL: strings.TrimSpace(statement), Schema: database}}
	}
	a := CheckAnswer{Columns: len(f.Columns), Statements: len(f.Statements), Findings: geo.Check(f), Unknown: unknown}
	if c.output == "json" {
		return render.JSON(c.Out, a)
	}
	lines := []string{digits.Counted(a.Columns, "geometry column") + " and " + digits.Counted(a.Statements, "statement") + " looked at: " + digits.Counted(len(a.Findings), "finding") + "."}
	for _, x := range a.Findings {
		lines = append(lines, "", x.ID+"  "+strconv.Quote(x.Object)+": "+x.What, "  why: "+x.Why, "  remedy: "+x.Remedy)
		if x.Statement != "" {
			lines = append(lines, "  statement: "+sqltext.Printable(x.Statement))
		}
	}
	for _, u := range unknown {
		lines = append(lines, "", "not known: "+fault.Line(u.What+": "+u.Why, u.Remedy))
	}
	_, err = fmt.Fprintln(c.Out, strings.Join(lines, "\n"))
	return err
}
