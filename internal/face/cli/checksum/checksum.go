// Package checksum is the command risso checksum.
package checksum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/throttle"
)

type checksumFlags struct {
	flags.Server
	replicas, schemas, tables []string
	against, output, method   string
	state                     string
	threads, maxRows, rounds  int
	chunk, patience           time.Duration
	resume, redact, rows, all bool
	flags.Throttle
	mendFlags
}

// New is risso checksum.
func New(s screen.Streams) *cobra.Command {
	var f checksumFlags
	cmd := &cobra.Command{
		Use:   "checksum --dsn PRIMARY [--replica DSN…] | --dsn A --against B",
		Short: "Compare replicas with their primary, and repair rows that differ",
		Long: `Compares the tables of replicas with those of their primary, chunk by chunk. It only reads;
it needs neither statement-based replication nor a table of its own. Rows that change in the
meantime are compared again once the replica has caught up, until they are equal or certainly
different.

Without --replica it asks the primary for its replicas; the account of --dsn must work on them,
too. --against compares two servers that do not replicate from each other.

--mend rewrites the rows that differ on the primary, with the primary's values, so that they
replicate; the plan is shown first, and with --dry-run only the plan.

` + fault.Help,
		Example: `  risso checksum --dsn 'risso:secret@tcp(db1:3306)/'
  risso checksum --dsn 'root@unix(/run/mysqld/mysqld.sock)/' --replica 'risso:secret@tcp(db2:3306)/' --schema shop
  risso checksum --dsn 'risso@tcp(db1)/' --table 'shop.order*' --rows
  risso checksum --dsn 'risso@tcp(db1)/' --replica 'risso@tcp(db2)/' --table shop.orders --mend --dry-run
  risso checksum --dsn 'risso@tcp(old:3306)/' --against 'risso@tcp(new:3306)/' --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.resume = cmd.Flags().Changed("resume")
			return runChecksum(cmd.Context(), s, f)
		},
	}
	fl := cmd.Flags()
	f.Server.Bind(cmd, "the primary")
	fl.StringArrayVar(&f.replicas, "replica", nil, "a replica, written as --dsn; may be repeated (default: all that are found)")
	fl.StringVar(&f.against, "against", "", "a server to compare with --dsn that does not replicate from it")
	fl.StringArrayVar(&f.schemas, "schema", nil, "only this schema; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, "only this table, schema.table; patterns with * allowed, a name with dots in backticks; may be repeated")
	fl.IntVar(&f.threads, "threads", 2, "sessions per server: tables, or chunks of a large table, read at once")
	flags.DurationVar(fl, &f.chunk, "chunk-time", 500*time.Millisecond, "how long reading one chunk should take")
	flags.DurationVar(fl, &f.patience, "wait", 10*time.Second, "how long to wait for a replica that is behind before differences count as not comparable")
	fl.IntVar(&f.rounds, "rounds", 8, "how often a row must be seen unequal and unchanged before it counts as different")
	fl.BoolVar(&f.rows, "rows", false, "show the rows that differ, with their values")
	fl.IntVar(&f.maxRows, "max-rows", 100, "differing rows to show per table and server")
	fl.BoolVar(&f.redact, "redact", false, "hide the values of rows")
	fl.BoolVar(&f.all, "all", false, "also list tables that are equal")
	fl.StringVar(&f.method, "sum", "auto", "where checksums are computed: rows (here, from rows fetched), server (on the servers), quick (on the servers, with 32 bits instead of 59 or more), auto")
	fl.StringVar(&f.state, "resume", "", "file that records what was compared, so that an interrupted run can continue")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	f.Throttle.Bind(cmd)
	f.mendFlags.bind(cmd)
	return cmd
}

// options reads the flags.
func (f checksumFlags) options(ctx context.Context, s screen.Streams) (o checksum.Options, err error) {
	switch {
	case !slices.Contains([]string{"auto", "rows", "server", "quick"}, f.method):
		return o, fault.Usagef("--sum %q: rows, server, quick or auto", f.method)
	case f.threads < 1 || f.threads > 64:
		return o, fault.Usagef("--threads %d: 1 to 64", f.threads)
	case f.chunk < time.Millisecond || f.chunk > time.Minute:
		return o, fault.Usagef("--chunk-time %s: 1ms to 1m", f.chunk)
	case f.rounds < 2 || f.rounds > 1000:
		return o, fault.Usagef("--rounds %d: 2 to 1000", f.rounds)
	case f.maxRows < 1 || f.maxRows > 1_000_000:
		return o, fault.Usagef("--max-rows %d: 1 to 1000000", f.maxRows)
	case f.against != "" && len(f.replicas) > 0:
		return o, fault.Usagef("--against is a server that does not replicate: leave out --replica")
	case f.against != "" && f.mend:
		return o, fault.Usagef("--mend needs a replica: rows replicate to it")
	case f.dryRun && !f.mend:
		return o, fault.Usagef("--dry-run shows what --mend would do; without --mend nothing is changed")
	}
	for _, t := range f.tables {
		if _, err := pattern.ParseTable(t); err != nil {
			return o, fault.Usagef("--table: %w", err)
		}
	}
	o = checksum.Options{Schemas: f.schemas, Tables: f.tables, Threads: f.threads, Target: f.chunk, Patience: f.patience, Rounds: f.rounds,
		MaxRows: f.maxRows, Method: checksum.Method(f.method), State: f.state, Resume: f.resume, Redact: f.redact, Replicas: f.against == ""}
	if o.Primary, err = f.Target(); err != nil {
		return o, err
	}
	names := f.replicas
	if f.against != "" {
		names = []string{f.against}
	}
	if o.Others, err = f.Others(names); err != nil || len(o.Others) > 0 {
		return o, err
	}
	found, notes, err := look.Replicas(ctx, o.Primary)
	if err != nil {
		remedy := ""
		if errors.Is(err, look.ErrNoReplica) {
			remedy = "name them with --replica DSN"
		}
		return o, fault.New(fault.Failed, remedy, err)
	}
	for _, n := range notes {
		fmt.Fprintln(s.Err, "risso:", n)
	}
	o.Others = found
	return o, nil
}

func runChecksum(ctx context.Context, s screen.Streams, f checksumFlags) error {
	o, err := f.options(ctx, s)
	if err != nil {
		return err
	}
	gate, err := f.Gate(ctx, f.threads, o.Primary, o.Others...)
	if err != nil {
		return err
	}
	defer gate.Close()
	o.Gate = gate
	if f.mend {
		o.MaxRows = max(o.MaxRows, mendRows)
	}
	progress := screen.NewProgress(s.Err)
	o.Progress = func(p checksum.Progress) { progress.Show(checksumProgress(p, gate)) }
	text := checksumText{out: s.Out, flags: f, width: screen.Width(s.Out)}
	var list []checksum.Table
	o.Each = func(t checksum.Table) {
		if f.output == "json" {
			if t.Verdict().Bad() {
				text.found = append(text.found, t)
			}
			if f.all || t.Verdict() != checksum.Equal {
				list = append(list, t)
			}
			return
		}
		progress.Clear()
		text.table(t)
	}
	result, err := checksum.Compare(ctx, o)
	progress.End()
	result.List = list
	slices.SortFunc(result.List, func(a, b checksum.Table) int { // the sessions end in any order
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
	})
	if f.output == "json" {
		if err := render.JSON(s.Out, result); err != nil {
			return err
		}
	} else if result.Tables > 0 {
		text.end(result)
	}
	var unmet *pattern.UnmetError
	switch {
	case errors.Is(err, context.Canceled):
		remedy := ""
		if f.state != "" {
			remedy = "the same command continues from there"
		}
		return fault.New(fault.Interrupted, remedy, errors.New("interrupted"))
	case errors.Is(err, checksum.ErrNothing) && len(result.Unseen) > 0:
		return fault.New(fault.Failed, result.Unseen[0].Remedy, fmt.Errorf("%w: %s", err, result.Unseen[0].What))
	case errors.As(err, &unmet):
		return fault.New(fault.Usage, screen.Joined(unmet.Remedy(), "--schema and --table take patterns such as 'shop.*'; the account sees only what it has a privilege on"), err)
	case errors.Is(err, checksum.ErrNothing):
		return fault.New(fault.Failed, "--schema and --table take patterns such as 'shop.*'; the account sees only what it has a privilege on", err)
	case err != nil:
		return err
	}
	if f.mend {
		return f.runMend(ctx, s, o, result, text.found)
	}
	return checksumVerdict(result)
}

// checksumVerdict makes the exit code.
func checksumVerdict(r checksum.Result) error {
	switch {
	case r.Counts.Differ == 0 && r.Counts.Definitions > 0:
		return fault.New(fault.Differs, "", fmt.Errorf("%s; no row was found to differ", digits.Plural(r.Counts.Definitions, "definition differs", "definitions differ")))
	case r.Counts.Differ > 0:
		return fault.New(fault.Differs, "", fmt.Errorf("%s", digits.Plural(r.Counts.Differ, "table differs", "tables differ")))
	case len(r.Unseen) > 0:
		return fault.New(fault.Failed, r.Unseen[0].Remedy, fmt.Errorf("on %s: %s; of what was seen nothing differs", r.Unseen[0].Server, r.Unseen[0].What))
	case r.Counts.Open > 0:
		return fault.New(fault.Failed, "run it again for these tables, when the replica has caught up or fewer rows change",
			fmt.Errorf("of %s not all rows could be compared; no difference was found", digits.Plural(r.Counts.Open, "table", "tables")))
	}
	return nil
}

func checksumProgress(p checksum.Progress, gate *throttle.Gate) func(float64) string {
	return func(elapsed float64) string {
		rate := float64(p.Rows) / max(elapsed, 0.001)
		text := fmt.Sprintf("%s, %s, %s rows/s, %s/s", p.Table, digits.Roughly(p.Rows, "row"), digits.Number(rate), digits.Bytes(float64(p.Bytes)/max(elapsed, 0.001)))
		if p.Of > p.Rows && p.Rows > 0 {
			text = fmt.Sprintf("%s, %s, %s left", digits.Percent(float64(p.Rows)/float64(p.Of)), text, digits.Age(float64(p.Of-p.Rows)/rate))
		}
		if p.Differ > 0 {
			text += ", " + digits.Plural(p.Differ, "table differs", "tables differ")
		}
		if _, why := gate.Held(); why != "" {
			text += ", waits: " + why
		}
		return text
	}
}

// checksumText writes results as they come.
type checksumText struct {
	out   io.Writer
	flags checksumFlags
	width int
	found []checksum.Table // that differ
}

func (c *checksumText) table(t checksum.Table) {
	v := t.Verdict()
	if v.Bad() {
		c.found = append(c.found, t)
	}
	if v == checksum.Equal && !c.flags.all && len(t.Notes) == 0 {
		quiet := true
		for _, on := range t.On {
			quiet = quiet && len(on.Notes)+len(on.Definition)+len(on.Undefined) == 0
		}
		if quiet {
			return
		}
	}
	rate := ""
	if t.Seconds > 0 && t.Rows > 0 {
		rate = fmt.Sprintf(", %s, %s rows/s", digits.Roughly(t.Rows, "row"), digits.Number(float64(t.Rows)/t.Seconds))
	}
	fmt.Fprintf(c.out, "%s.%s: %s%s\n", sqltext.Printable(t.Schema), sqltext.Printable(t.Name), v, rate)
	for _, n := range t.Notes {
		fmt.Fprintf(c.out, "  %s\n", n)
	}
	for _, on := range t.On {
		if on.Verdict != checksum.Equal || len(on.Notes)+len(on.Definition)+len(on.Undefined) > 0 {
			c.on(on)
		}
	}
}

// on writes what was found on one server.
func (c *checksumText) on(on checksum.On) {
	fmt.Fprintf(c.out, "  on %s: %s\n", on.Server, strings.Join(on.Words(), ", "))
	for _, n := range on.Notes {
		fmt.Fprintf(c.out, "    %s\n", n)
	}
	for _, d := range on.Definition {
		fmt.Fprintf(c.out, "    definition differs: %s\n", sqltext.Printable(d))
	}
	for _, d := range on.Undefined {
		fmt.Fprintf(c.out, "    definition not compared: %s\n", sqltext.Printable(d))
	}
	if on.Why != "" {
		fmt.Fprintf(c.out, "    %s\n", fault.Line(on.Why, on.Remedy))
	}
	if !c.flags.rows {
		return
	}
	for _, r := range on.Rows {
		fmt.Fprintf(c.out, "    %s\n", rowWords(r))
	}
	n := on.Missing + on.Extra + on.Different
	for _, r := range on.Rows {
		n -= max(1, r.Times)
	}
	if n > 0 && len(on.Rows) > 0 {
		fmt.Fprintf(c.out, "    and %d more\n", n)
	}
}

// rowWords is a row in one line.
func rowWords(r checksum.Row) string {
	var b strings.Builder
	b.WriteString(string(r.Kind))
	for i, k := range r.Key {
		sep := ", "
		if i == 0 {
			sep = " "
		}
		fmt.Fprintf(&b, "%s%s=%s", sep, sqltext.Printable(k.Column), sqltext.Printable(k.Value))
	}
	if r.Times > 1 {
		fmt.Fprintf(&b, " %d times", r.Times)
	}
	for i, c := range r.Columns {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s ", sep, sqltext.Printable(c.Name))
		switch r.Kind {
		case checksum.Missing:
			b.WriteString(valueWords(c.Primary))
		case checksum.Extra:
			b.WriteString(valueWords(c.Other))
		default:
			fmt.Fprintf(&b, "%s on the primary, %s there", valueWords(c.Primary), valueWords(c.Other))
		}
	}
	return b.String()
}

func valueWords(v *string) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%q", *v)
}

// end writes the summary.
func (c *checksumText) end(r checksum.Result) {
	for _, d := range r.Definitions {
		fmt.Fprintln(c.out, d.Words())
	}
	for _, u := range r.Unseen {
		fmt.Fprintf(c.out, "%s: not compared is what cannot be seen: %s\n", u.Server, u.What)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(c.out, sqltext.Printable(n))
	}
	for _, side := range r.Others {
		for _, n := range side.Notes {
			fmt.Fprintf(c.out, "%s: %s\n", side.Server, n)
		}
	}
	names := make([]string, len(r.Others))
	for i, side := range r.Others {
		names[i] = side.Server
	}
	words := []string{digits.Plural(r.Counts.Equal, "equal", "equal")}
	for _, w := range []struct {
		n    int64
		what string
	}{{r.Counts.Differ, "differ"}, {r.Counts.Open, "not fully comparable"}, {r.Counts.Filtered, "left out by filters"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.what))
		}
	}
	if n := r.Counts.Definitions; n > 0 {
		words = append(words, digits.Plural(n, "definition differs", "definitions differ"))
	}
	if n := r.Counts.Undefined; n > 0 {
		words = append(words, digits.Plural(n, "definition was", "definitions were")+" not compared")
	}
	fmt.Fprintf(c.out, "%s of %s compared with %s: %s\n", digits.Plural(r.Tables, "table", "tables"), r.Primary.Server, strings.Join(names, ", "), strings.Join(words, ", "))
	if r.Seconds > 0 && r.Rows > 0 {
		fmt.Fprintf(c.out, "%s in %s: %s rows/s; %s of them read here\n",
			digits.Roughly(r.Rows, "row"), digits.Seconds(r.Seconds), digits.Number(float64(r.Rows)/r.Seconds), digits.Bytes(r.Bytes))
	}
}
