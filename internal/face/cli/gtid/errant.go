package gtid

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

type errantFlags struct {
	flags.Servers
	source, output string
	quick          bool
}

func newErrant(s screen.Streams) *cobra.Command {
	var f errantFlags
	cmd := &cobra.Command{
		Use:   "errant --dsn REPLICA… [--source DSN]",
		Short: "Find transactions that only a replica has, and say what they changed",
		Long: `Finds errant transactions: those that a replica has had and its source has not. They are named with
what they changed, as the replica's binary logs tell. Nothing is changed.

A replica's source is --source, or the one of --dsn that it replicates from. Replicas are read before
their source, and the source twice, so that what is on its way does not count; nor does what the source
of a semi-synchronous replica (AFTER_SYNC) is just committing.

If the source cannot be asked, a replica is compared with the other servers of --dsn and with what it
received itself; each finding says how certain it is.

MariaDB's servers are compared by gtid_binlog_state, for each domain and server_id.

A server that replicates from a replica is no witness for it: it has everything from there.

Exit codes: 0 nothing is errant; 4 something is; 1 nothing was found, but a server, --source among them,
could not be asked, or of some transactions nothing can be said.`,
		Example: `  risso gtid errant --dsn 'risso:secret@tcp(db2:3306)/' --source 'risso:secret@tcp(db1:3306)/'
  risso gtid errant --all --config risso.yaml
  risso gtid errant --dsn 'risso@tcp(db2)/' --dsn 'risso@tcp(db3)/'      # the source of both is down`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runErrant(cmd.Context(), s, f) },
	}
	f.Servers.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.source, "source", "", "the source, written as --dsn")
	fl.BoolVar(&f.quick, "no-logs", false, "do not read binary logs: say which transactions, not what they changed")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// asked is what the servers of --dsn and --source told.
type asked struct {
	list    []named
	read    []errant.Reading // of each of list; the zero value: it could not be asked
	failed  []error
	source  *errant.Reading // of --source, read after the others
	from    named
	unasked string // in brackets, what kept it from being asked
}

func runErrant(ctx context.Context, s screen.Streams, f errantFlags) error {
	a, err := f.ask(ctx)
	if err != nil {
		return err
	}
	answer := ErrantAnswer{Servers: []errant.Verdict{}}
	unknown := a.unasked != ""
	for i := range a.list {
		if a.failed[i] != nil {
			fmt.Fprintln(s.Err, "risso:", a.list[i].name+":", a.failed[i])
			unknown = true
			continue
		}
		if a.isSource(i) && len(a.list) > 1 {
			continue
		}
		v, err := a.judge(ctx, i)
		if err != nil {
			return err
		}
		if !f.quick {
			errant.Describe(ctx, &v, flags.ErrantLogs{Server: a.list[i].target})
		}
		answer.Servers = append(answer.Servers, v)
		unknown = unknown || v.Unsaid()
	}
	if f.output == "json" {
		err = render.JSON(s.Out, answer)
	} else {
		for i := range answer.Servers {
			writeVerdict(s.Out, &answer.Servers[i], f.quick)
		}
	}
	found := slices.ContainsFunc(answer.Servers, func(v errant.Verdict) bool { return len(v.Errant()) > 0 })
	switch {
	case err != nil:
		return err
	case found:
		return &fault.Told{Code: fault.Differs}
	case unknown:
		return &fault.Told{Code: fault.Failed}
	}
	return nil
}

// ask reads all servers once, --source last.
func (f errantFlags) ask(ctx context.Context) (a asked, err error) {
	if a.list, err = servers(f.Servers); err != nil {
		return a, err
	}
	from, given, err := source(f.Servers, f.source)
	if err != nil {
		return a, err
	}
	a.read, a.failed = make([]errant.Reading, len(a.list)), make([]error, len(a.list))
	for i, n := range a.list {
		a.read[i], a.failed[i] = n.ask(ctx)
	}
	if len(a.list) == 1 && a.failed[0] != nil {
		return a, a.failed[0]
	}
	if given {
		a.from = from
		r, err := from.ask(ctx)
		if err != nil {
			a.unasked = fmt.Sprintf(" (%v)", err)
		} else {
			a.source = &r
		}
	}
	return a, nil
}

// isSource reports whether another one that was asked replicates from it, and it from none.
func (a *asked) isSource(i int) bool {
	if a.source != nil && a.source.Identity == a.read[i].Identity {
		return true
	}
	for j := range a.read {
		if j != i && a.failed[j] == nil && len(a.read[i].Channels) == 0 && a.read[j].Follows(&a.read[i]) {
			return true
		}
	}
	return false
}

// judge says what is errant on one of them.
func (a *asked) judge(ctx context.Context, i int) (errant.Verdict, error) {
	q := errant.Question{Replica: a.read[i], Unasked: a.unasked}
	from := a.from
	if q.Source = a.source; q.Source == nil && a.unasked == "" {
		for j, r := range a.read {
			if j != i && a.failed[j] == nil && a.read[i].Follows(&r) {
				later, err := a.list[j].ask(ctx) // after the replica
				if err != nil {
					q.Unasked = fmt.Sprintf(" (%v)", err)
					continue
				}
				if q.Source != nil { // it replicates from several
					q.Also = append(q.Also, later)
					continue
				}
				q.Source, from = &later, a.list[j]
			}
		}
	}
	sources := func(r errant.Reading) bool {
		return slices.ContainsFunc(q.Also, func(o errant.Reading) bool { return o.Identity == r.Identity })
	}
	for j, r := range a.read {
		if j != i && a.failed[j] == nil && !sources(r) && r.Identity != q.Replica.Identity && (q.Source == nil || q.Source.Identity != r.Identity) {
			if later, err := a.list[j].ask(ctx); err == nil {
				r = later
			}
			q.Others = append(q.Others, r)
		}
	}
	return judgeTwice(ctx, q, from)
}

// again is how long a source has to commit what a replica has.
const again = 500 * time.Millisecond

// judgeTwice judges, and if there is anything, once more by what the source has then: it may have been committing it.
func judgeTwice(ctx context.Context, q errant.Question, from named) (errant.Verdict, error) {
	v, err := errant.Judge(q)
	if err != nil || q.Source == nil || len(v.Parts) == 0 {
		return v, err
	}
	if err := delay.For(ctx, again); err != nil {
		return v, err
	}
	later, err := from.ask(ctx)
	if err != nil {
		return v, fmt.Errorf("ask the source again: %w", err)
	}
	q.Source = &later
	return errant.Judge(q)
}

func writeVerdict(w io.Writer, v *errant.Verdict, quick bool) {
	against := v.Source
	if against == "" {
		against = "without its source"
		if len(v.Beside) > 0 {
			against += ", beside " + joined(v.Beside)
		}
	} else {
		against = "against " + against
	}
	switch {
	case v.Unknown != "":
		fmt.Fprintf(w, "%s %s: not known: %s\n", v.Replica, against, v.Unknown)
	case len(v.Parts) == 0:
		fmt.Fprintf(w, "%s %s: it has nothing that the others have not\n", v.Replica, against)
	default:
		fmt.Fprintf(w, "%s %s:\n", v.Replica, against)
	}
	for i := range v.Parts {
		writePart(w, &v.Parts[i], quick)
	}
	for _, n := range v.Notes {
		fmt.Fprintln(w, "  note:", n)
	}
}

func writePart(w io.Writer, p *errant.Part, quick bool) {
	count := ""
	if p.Count > 0 {
		count = ", " + digits.Counted(p.Count, "transaction")
	}
	fmt.Fprintf(w, "  %s, %s%s: %s\n    %s\n", p.Kind, p.Sure, count, p.GTIDs, p.Because)
	if quick {
		return
	}
	const most = 50
	for i, t := range p.Transactions {
		if i == most {
			fmt.Fprintf(w, "    and %d more (--output json lists all)\n", len(p.Transactions)-most)
			break
		}
		writeTransaction(w, t)
	}
	if p.Unseen != "" {
		fmt.Fprintln(w, "    not seen:", p.Unseen)
	}
}

func writeTransaction(w io.Writer, t errant.Transaction) {
	fmt.Fprintf(w, "    %s  %s  %s:%d", t.GTID, t.Time.UTC().Format("2006-01-02 15:04:05Z"), t.File, t.Position)
	if t.Connection != 0 {
		fmt.Fprintf(w, "  connection %d", t.Connection)
	}
	if t.ServerID != 0 {
		fmt.Fprintf(w, "  server_id %d", t.ServerID)
	}
	fmt.Fprintln(w)
	for _, c := range t.Changes {
		what := c.Table
		if c.Other != "" {
			what = c.Other + " " + what
		}
		fmt.Fprint(w, strings.TrimRight(fmt.Sprintf("      %s %s", c.Kind, what), " "))
		if c.Rows > 0 {
			fmt.Fprintf(w, ": %s", digits.Counted(c.Rows, "row"))
		}
		fmt.Fprintln(w)
	}
	for _, text := range t.Statements {
		fmt.Fprintf(w, "      %s\n", text)
	}
	if len(t.Changes) == 0 && len(t.Statements) == 0 {
		fmt.Fprintln(w, "      it is empty")
	}
}
