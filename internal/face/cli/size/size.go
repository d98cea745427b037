// Package size is the command size: what a server's data takes on its disks.
package size

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/release"
)

type command struct {
	screen.Streams
	flags.Server
	running        flags.Running
	instance       string
	top            int
	schema, output string
	widths         bool
	measure        []string
}

// patience is how long the server may take for one answer.
const patience = 5 * time.Minute

// New is risso size.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "size",
		Short: "What data takes on disk: schemas, tables, indexes, partitions, logs, undo",
		Long: `Shows what a server's data takes on its disks, by the files and not by estimates: how long
they are and what the file system has given for them (less, if pages are compressed or there are
holes), what is free inside, the sizes of indexes and partitions, and what undo, redo, the
doublewrite buffer, binary and relay logs and temporary tables take. Nothing is changed.

PROCESS lets the account see the files; without it there are the server's estimates. What is on
the disk beside them (doublewrite files, temporary files, text logs, what is left) is seen if the server
runs on this machine.

--widths looks at a sample of the rows of the largest tables for columns that are wider than what they
hold. --measure takes a sample of a table's rows into a sandbox of the same version on this
machine, and measures there what a rebuild or compression would give back.

How fast data grows, and when the disk is full, is known by a risso serve that watches the server:
--url says where it is.`,
		Example: `  risso size --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'
  risso size --dsn db1 --config risso.yaml --schema shop --top 50
  risso size --widths --output html >sizes.html
  risso size --measure shop.orders
  risso size --url http://risso:8306 --instance db1 --dsn 'risso@tcp(db1:3306)/'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	c.Bind(cmd, "the server")
	fl.IntVar(&c.top, "top", 20, "how many tables are listed")
	fl.StringVar(&c.schema, "schema", "", "only this schema")
	fl.BoolVar(&c.widths, "widths", false, "look for columns that are wider than what they hold, in a sample of rows of the listed tables")
	fl.StringArrayVar(&c.measure, "measure", nil, "measure on a sample of rows of this table, schema.table, what a rebuild or compression gives back; may be repeated")
	fl.StringVar(&c.running.To, "url", "", "address of a risso serve that watches the server, for its growth: http://risso:8306")
	fl.StringVar(&c.running.TokenFile, "token-file", "", "with --url: file with the token (default: the environment variable RISSO_TOKEN)")
	fl.StringVar(&c.instance, "instance", "", "with --url: the server's name there (default: --dsn, if that is a name, or else its address)")
	flags.OutputVar(fl, &c.output, "", "text", "json", "html")
	return cmd
}

func (c *command) run(ctx context.Context) error {
	switch {
	case c.top < 1 || c.top > mostTop:
		return fault.Usagef("--top %d: 1 to %d", c.top, mostTop)
	case c.running.To == "" && (c.instance != "" || c.running.TokenFile != ""):
		return fault.Usagef("--instance and --token-file are for --url")
	}
	wanted, err := c.tables()
	if err != nil {
		return err
	}
	target, err := c.Target()
	if err != nil {
		return err
	}
	target = target.WithPatience(patience)
	conn, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	progress := screen.NewProgress(c.Err)
	defer progress.End()
	local, why, err := conn.SameMachine(ctx, target)
	if err != nil {
		local, why = false, err.Error()
	}
	r, err := size.Read(ctx, conn, size.Options{Schema: c.schema, Top: c.top, Local: local, Elsewhere: why, Progress: func(stage string, done int) {
		progress.Show(func(elapsed float64) string {
			return fmt.Sprintf("%s: %s, %s", stage, digits.Thousands(done), digits.Rate(float64(done)/elapsed))
		})
	}})
	if errors.Is(err, size.ErrNoSchema) {
		return fault.New(fault.Failed, "SHOW DATABASES lists those that the account may see", err)
	}
	if err != nil {
		return err
	}
	if c.running.To != "" {
		if err := c.growth(ctx, r, target); err != nil {
			return err
		}
	}
	if c.widths {
		progress.Clear()
		found, unknown, err := size.Widths(ctx, conn, r.Tables, size.WidthOptions{})
		if err != nil {
			return err
		}
		r.Widths, r.Unknown = found, append(r.Unknown, unknown...)
	}
	for _, name := range wanted {
		m, err := c.measured(ctx, conn, target, name, progress)
		if err != nil {
			return err
		}
		r.Measured = append(r.Measured, *m)
	}
	progress.End()
	return c.write(r)
}

// mostTop is the most tables that are listed.
const mostTop = 10000

// tables are those of --measure.
func (c *command) tables() (list []mysql.TableName, err error) {
	for _, text := range c.measure {
		schema, table, ok := strings.Cut(text, ".")
		if !ok || schema == "" || table == "" {
			return nil, fault.Usagef("--measure %q: write it as schema.table", text)
		}
		list = append(list, mysql.TableName{Schema: schema, Name: table})
	}
	return list, nil
}

func (c *command) measured(ctx context.Context, conn *mysql.Conn, target mysql.Target, name mysql.TableName, progress *screen.Progress) (*size.Measured, error) {
	t, err := size.Find(ctx, conn, name)
	if err != nil {
		return nil, fault.New(fault.Failed, "", err)
	}
	return size.Measure(ctx, target, conn, *t, size.MeasureOptions{Say: func(text string) { progress.Show(func(float64) string { return text }) }})
}

// growth asks risso serve how fast the server's data grows.
func (c *command) growth(ctx context.Context, r *size.Report, target mysql.Target) error {
	var g size.Growth
	name := cmp.Or(c.instance, c.Dsn)
	if c.instance == "" && strings.ContainsAny(name, "@(/") {
		name = target.Address()
	}
	datadir := ""
	if r.Disk != nil {
		datadir = r.Disk.Path
	}
	err := c.running.Do(ctx, http.MethodGet, "/api/size/growth?"+url.Values{"instance": {fleet.Slug(name)}, "datadir": {datadir}}.Encode(), nil, "tell how fast data grows", &g)
	if err != nil {
		return err
	}
	size.Grown(r, &g)
	return nil
}

func (c *command) write(r *size.Report) error {
	switch c.output {
	case "json":
		return render.JSON(c.Out, r)
	case "html":
		return r.WriteHTML(c.Out, release.Version())
	}
	return text(c.Out, r, screen.Width(c.Out))
}

// text writes the report for a terminal.
func text(w io.Writer, r *size.Report, width int) error {
	lines := append([]string{r.Server + ", " + r.At.Local().Format("2006-01-02 15:04")}, r.Words...)
	for _, l := range r.Listings() {
		lines = append(append(lines, "", l.Title), render.Table{Heads: l.Heads, Rows: l.Rows}.Lines(width)...)
	}
	if len(r.Unknown) > 0 {
		lines = append(lines, "", "Not known")
		for _, u := range r.Unknown {
			lines = append(lines, "  "+fault.Line(u.What+": "+u.Why, u.Remedy))
		}
	}
	lines = append(lines, "", r.Costs())
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
