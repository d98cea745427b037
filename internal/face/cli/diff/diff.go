// Package diff is the command risso diff.
package diff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

type diffFlags struct {
	flags.Server
	flags.Running
	schemas      []string
	save, output string
	failOn       string
	all          bool
	ago          string        // --since
	since        time.Duration // the same
	upgradeFlags
}

// New is risso diff.
func New(s screen.Streams) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff A B [C…]",
		Short: "Show how servers differ, worst first, or what an upgrade would break",
		Long: `Shows how two servers differ, and why it matters: version, build, variables, plug-ins,
engines, collations, time zones, accounts, and with --schema their schemas. What loses data
or breaks replication comes first, then what changes results, then speed. Defaults of
different versions, and paths and names, are counted; --all lists them. Of three and more
servers each is compared with what most of them have.

A server is a DSN (user@tcp(host:3306)/), a name from --config, or a file that --save wrote.
No password and no hash is shown or saved. What the account may not read is said.

--upgrade-to starts a server of that version here, if it is installed, gives it the settings
and definitions of A, and says what it refuses and what would change. Nothing is changed on A.

With --fail-on the exit code is 4 if there is a difference of that rank, or a worse one.

` + fault.Help,
		Example: `  risso diff 'risso@tcp(db1)/' 'risso@tcp(db2)/' --schema
  risso diff 'risso@tcp(db1)/' 'risso@tcp(db2)/' 'risso@tcp(db3)/' --fail-on behaviour
  risso diff 'risso@tcp(db1)/' --save db1.json --schema
  risso diff db1.json 'risso@tcp(db1)/' --schema --output json
  risso diff 'risso@tcp(db1)/' --since 30d
  risso diff 'risso@tcp(db1)/' --upgrade-to mysql-9.7 --slow-log slow.log`,
		RunE: func(cmd *cobra.Command, args []string) error { return runDiff(cmd.Context(), s, f, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Server.ConfigFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.DefaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	fl.StringArrayVar(&f.schemas, "schema", nil, "compare schemas, too; --schema=PATTERN: only those (with *); may be repeated")
	fl.Lookup("schema").NoOptDefVal = "*"
	fl.StringVar(&f.save, "save", "", "write the description of one server to this file, to be compared later")
	fl.StringVar(&f.failOn, "fail-on", "", "exit with 4 if something of this rank or a worse one differs: data, behaviour, performance, version, names; with --upgrade-to: error, warning, note")
	fl.BoolVar(&f.all, "all", false, "also list defaults that differ by version, paths and names")
	fl.StringVar(&f.ago, "since", "", "compare the settings of one server with those of so long ago, as risso serve has seen them")
	fl.StringVar(&f.To, "url", "", "with --since: address of risso serve: http://risso:8306 (default: the one on this machine)")
	fl.StringVar(&f.TokenFile, "token-file", "", "with --since: file with the token (default: the environment variable RISSO_TOKEN)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	f.upgradeFlags.bind(fl)
	return cmd
}

// check finds wrong use before any server is asked.
func (f *diffFlags) check(args []string) error {
	ranks := differ.Ranks()
	if f.ago != "" {
		var err error
		if f.since, err = digits.ParseAge(f.ago); err != nil {
			return fault.Usagef("--since %q: write it as 12h or 30d: so long ago", f.ago)
		}
	}
	switch {
	case len(args) == 0:
		return fault.New(fault.Usage, "risso diff A B", errors.New("which servers?"))
	case f.to != "" && (len(args) != 1 || f.save != "" || f.since != 0):
		return fault.Usagef("--upgrade-to looks at one server: give one, without --save and --since")
	case f.to == "" && f.slowLog != "":
		return fault.Usagef("--slow-log without --upgrade-to")
	case f.save != "" && (len(args) != 1 || f.since != 0):
		return fault.Usagef("--save describes one server: give one, without --since")
	case f.since != 0 && len(args) != 1:
		return fault.Usagef("--since compares one server with itself: give one")
	case f.to == "" && f.save == "" && f.since == 0 && len(args) < 2:
		return fault.New(fault.Usage, "risso diff A B; --save, --since and --upgrade-to take one", errors.New("one server differs from nothing"))
	case f.to == "" && f.failOn != "" && !slices.Contains(ranks, differ.Rank(f.failOn)):
		return fault.Usagef("--fail-on %q: data, behaviour, performance, version or names", f.failOn)
	}
	return f.upgradeFlags.check(f.failOn)
}

func runDiff(ctx context.Context, s screen.Streams, f diffFlags, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	f.Running.ConfigFile = f.Server.ConfigFile
	now := time.Now()
	if f.to != "" {
		return f.runUpgrade(ctx, s, args[0], now)
	}
	list := make([]*differ.Description, len(args))
	for i, arg := range args {
		d, err := f.describe(ctx, s, arg, now)
		if errors.Is(err, describe.ErrFile) {
			return err // which names the file
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.shownName(arg), err)
		}
		list[i] = d
	}
	distinct(list)
	switch {
	case f.save != "":
		return f.saved(s, list[0])
	case f.since != 0:
		then, err := f.past(ctx, args[0], list[0], now)
		if err != nil {
			return err
		}
		return f.tell(s, differ.Compare(then, list[0], false))
	case len(list) > 2:
		return f.tellGroup(s, differ.Group(list, len(f.schemas) > 0))
	}
	return f.tell(s, differ.Compare(list[0], list[1], len(f.schemas) > 0))
}

// describe reads a server, or the file of that name.
func (f diffFlags) describe(ctx context.Context, s screen.Streams, arg string, now time.Time) (*differ.Description, error) {
	if st, err := os.Stat(arg); err == nil && st.Mode().IsRegular() {
		d, err := describe.Load(arg)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(arg, "/") && !strings.HasPrefix(arg, ".") {
			d.Name += " (" + arg + ")"
		}
		return d, nil
	}
	if isFile(arg) {
		return nil, fault.New(fault.Usage, "risso diff DSN --save FILE writes one", errors.New("there is no such file"))
	}
	f.Dsn = arg
	target, err := f.Target()
	if err != nil {
		if strings.HasSuffix(arg, ".json") || !strings.ContainsAny(arg, "@/") {
			return nil, fault.New(fault.Usage, "a DSN such as 'risso@tcp(db1:3306)/', a name from --config, or a file that risso diff --save wrote", err)
		}
		return nil, err
	}
	progress := screen.NewProgress(s.Err)
	defer progress.End()
	o := describe.Options{Schemas: len(f.schemas) > 0, Want: f.want(), Now: now, Progress: func(done, total int) {
		progress.Show(func(float64) string {
			return fmt.Sprintf("%s: read %d of %s", target, done, digits.Counted(total, "definition"))
		})
	}}
	return describe.Take(ctx, target, o)
}

// isFile reports whether an argument can only mean a file.
func isFile(arg string) bool {
	return strings.HasSuffix(arg, ".json") && !strings.ContainsAny(arg, "@(")
}

// shownName is an argument without what a DSN holds that is secret.
func (f diffFlags) shownName(arg string) string {
	if isFile(arg) {
		return arg
	}
	f.Dsn = arg
	if t, err := f.Target(); err == nil {
		return t.String()
	}
	if strings.Contains(arg, "@") {
		return "a server"
	}
	return arg
}

// want says which schemas are compared; nil: all.
func (f diffFlags) want() func(string) bool {
	if len(f.schemas) == 0 || slices.Contains(f.schemas, "*") {
		return nil
	}
	return func(name string) bool {
		return slices.ContainsFunc(f.schemas, func(p string) bool { return pattern.Stars(p, name) })
	}
}

// distinct gives descriptions of one name numbers.
func distinct(list []*differ.Description) {
	seen := map[string]int{}
	for _, d := range list {
		if seen[d.Name]++; seen[d.Name] > 1 {
			d.Name = fmt.Sprintf("%s (%d)", d.Name, seen[d.Name])
		}
	}
}

func (f diffFlags) saved(s screen.Streams, d *differ.Description) error {
	if err := describe.Save(f.save, d); err != nil {
		return err
	}
	tables := 0
	for _, schema := range d.Schemas {
		tables += len(schema.Tables)
	}
	if f.output == "json" {
		return render.JSON(s.Out, SavedAnswer{File: f.save, Server: d.Name, Variables: len(d.Variables), Accounts: len(d.Accounts), Tables: tables, Unread: d.Unread})
	}
	fmt.Fprintf(s.Out, "%s described in %s: %s, %s, %s\n", d.Name, f.save, digits.Counted(len(d.Variables), "variable"), digits.Counted(len(d.Accounts), "account"), digits.Counted(tables, "table"))
	for _, u := range d.Unread {
		fmt.Fprintf(s.Out, "not read: %s\n", troubleWords(u.Area, u.Trouble))
	}
	return nil
}

func troubleWords(area string, t fleet.Trouble) string {
	if t.What != "" {
		area += ", " + t.What
	}
	return area + ": " + fault.Line(t.Why, t.Remedy)
}

// tell writes how two servers differ.
func (f diffFlags) tell(s screen.Streams, r *differ.Report) error {
	if f.output == "json" {
		if err := render.JSON(s.Out, r); err != nil {
			return err
		}
	} else if err := f.text(s.Out, r); err != nil {
		return err
	}
	return f.verdict(r.Worst(differ.Rank(f.failOn)))
}

// verdict is the exit code.
func (f diffFlags) verdict(n int) error {
	if f.failOn != "" && n > 0 {
		return &fault.Told{Code: fault.Differs}
	}
	return nil
}

func (f diffFlags) tellGroup(s screen.Streams, g *differ.Drift) error {
	n := 0
	for _, r := range g.Servers {
		n += r.Worst(differ.Rank(f.failOn))
	}
	if f.output == "json" {
		if err := render.JSON(s.Out, g); err != nil {
			return err
		}
		return f.verdict(n)
	}
	for i, r := range g.Servers {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		if err := f.text(s.Out, r); err != nil {
			return err
		}
	}
	if len(g.Split) > 0 {
		fmt.Fprintf(s.Out, "\nNo majority: %s\n", strings.Join(g.Split, ", "))
	}
	return f.verdict(n)
}
