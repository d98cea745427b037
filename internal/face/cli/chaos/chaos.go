// Package chaos holds the command risso chaos: faults in a group of servers, and what they cost.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sandbox"
)

// The files in the folder of a run.
const (
	ledgerFile = "ledger.jsonl"
	jsonFile   = "certificate.json"
	pageFile   = "certificate.html"
)

// command is risso chaos.
type command struct {
	screen.Streams
	flags.Groups
	sandbox, on, dir, output string
	primary, through         string
	only, breaks, heals      []string
	faults, replicas         int
	controllers              int
	writers                  int
	seed                     uint64
	pause, limit, settle     time.Duration
	async, keep, manual      bool
	dryRun, yes, yesReally   bool
	saying                   sync.Mutex
}

// PlanAnswer is what would be done.
type PlanAnswer struct {
	Seed   uint64        `json:"seed"`
	Faults []chaos.Fault `json:"faults"`
	// Left lists the kinds that cannot be caused there, with the reason.
	Left []chaos.Fact `json:"left_out,omitempty"`
	// Statements would be run on the primary first.
	Statements []string `json:"statements,omitempty"`
}

// New is risso chaos and all below it.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Cause faults in a staging group or a sandbox, and certify what they cost",
		Long: `Kills, freezes and cuts off servers, fills and slows their disks, in a random order from a seed, while
writers keep a ledger of each acknowledged write. After each fault all of them are looked for. It prints
outage and loss per fault, stops at the first loss or second writer, and writes a certificate, as a page
and as JSON, which risso chaos verify computes again from the ledger.

With --sandbox it makes servers and a controller of its own, in network namespaces, with disks of their
own, so that every fault is a real one and harms nothing else; that needs root on Linux. With --group it
uses a group of yours: never one in production. --on has to repeat its name, and its --about has to say
staging. Faults are caused by the commands that you give, in which {host}, {port}, {name} and {address}
are those of the server. Faults: ` + chaos.Listed(chaos.Kinds()) + `.

Ctrl-C ends the fault that is going on. After kill -9, risso chaos heal does.

` + fault.Help,
		Example: `  risso chaos --sandbox mariadb --count 40 --seed 7
  risso chaos --sandbox mysql-9.7 --dry-run
  risso chaos --group shop-staging --on shop-staging --fault 'kill=ssh {host} systemctl kill -s KILL mysql' --heal 'kill=ssh {host} systemctl start mysql'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.Groups.Bind(cmd, true)
	fl := cmd.Flags()
	fl.StringVar(&c.sandbox, "sandbox", "", "make servers for it: mariadb, mysql-9.7, … or a path")
	fl.IntVarP(&c.replicas, "replicas", "r", 2, "replicas of that sandbox")
	fl.IntVar(&c.controllers, "controllers", 1, "of that sandbox, which share their state: 1, 3 or 5; 0: none, clients wait until the primary is back")
	fl.BoolVar(&c.async, "async", false, "without semi-synchronous replication in that sandbox: a failover may lose writes then")
	fl.StringVar(&c.on, "on", "", "the name of the group once more: yes, on that one")
	fl.BoolVar(&c.yesReally, "yes-really", false, "also on a group whose --about does not say staging")
	fl.StringVar(&c.primary, "primary", "", "where clients ask for the primary: the URL of /primary of risso serve (default: the data folder)")
	fl.StringVar(&c.through, "through", "", "host:port of the proxy or router by which clients reach the primary, instead")
	fl.BoolVar(&c.manual, "no-failover", false, "nothing fails that group over by itself: clients may have to wait until a fault has ended")
	fl.StringArrayVar(&c.breaks, "fault", nil, "KIND=COMMAND that causes a fault; can be repeated")
	fl.StringArrayVar(&c.heals, "heal", nil, "KIND=COMMAND that ends it; can be repeated")
	fl.IntVarP(&c.faults, "count", "n", 26, "how many faults")
	fl.Uint64Var(&c.seed, "seed", 0, "the same seed gives the same faults in the same order (default: a random one, which is printed)")
	fl.StringSliceVar(&c.only, "only", nil, "kinds of faults (default: all that are possible)")
	fl.IntVar(&c.writers, "writers", 4, "writers that follow the primary")
	flags.DurationVar(fl, &c.pause, "pause", 20*time.Millisecond, "of a writer between two writes")
	flags.DurationVar(fl, &c.limit, "limit", time.Minute, "how long a fault lasts at most while nobody can write")
	flags.DurationVar(fl, &c.settle, "settle", 2*time.Minute, "how long all members may take to be well again after a fault")
	fl.StringVar(&c.dir, "dir", "", "folder for the ledger and the certificate (default: risso-chaos- and the time, here)")
	fl.BoolVar(&c.keep, "keep-servers", false, "keep the sandbox's servers, also when all went well")
	fl.BoolVar(&c.dryRun, "dry-run", false, "show the faults, and change nothing")
	fl.BoolVar(&c.yes, "yes", false, "do not ask")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	cmd.AddCommand(newVerify(s), newHeal(s))
	return cmd
}

// run checks what was asked for, and does it.
func (c *command) run(ctx context.Context) error {
	switch {
	case (c.sandbox == "") == (c.Group == ""):
		return fault.Usagef("give --sandbox for servers of its own, or --group for a group of yours")
	case c.faults < 1 || c.writers < 1 || c.replicas < 1:
		return fault.Usagef("--count, --writers and --replicas must be positive")
	case !slices.Contains([]int{0, 1, 3, 5}, c.controllers):
		return fault.Usagef("--controllers must be 0, 1, 3 or 5: of two, none may fail")
	case c.limit < time.Second || c.settle < time.Second || c.pause < 0:
		return fault.Usagef("--limit and --settle must be at least 1s, and --pause not negative")
	}
	if c.seed == 0 {
		c.seed = rand.Uint64N(1_000_000) + 1 //nolint:gosec // a name for a plan
	}
	kinds, err := chaos.ParseKinds(c.only)
	if err != nil {
		return err
	}
	// However it ends, it ends its faults.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if c.sandbox != "" {
		return c.inSandbox(ctx, kinds)
	}
	return c.inGroup(ctx, kinds)
}

// told is where what people read goes.
func (c *command) told() io.Writer {
	if c.output == "json" {
		return c.Err
	}
	return c.Out
}

// say tells a line; several goroutines start servers.
func (c *command) say(text string) {
	c.saying.Lock()
	defer c.saying.Unlock()
	fmt.Fprintln(c.told(), oneline.Of(text))
}

// possible leaves out what cannot be caused there. What was asked for by name has to be possible.
func (c *command) possible(kinds []chaos.Kind, can func(chaos.Kind) error) (list []chaos.Kind, left []chaos.Fact, err error) {
	for _, k := range kinds {
		switch why := can(k); {
		case why == nil:
			list = append(list, k)
		case len(c.only) > 0:
			return nil, nil, fault.Usagef("--only %s: %w", k, why)
		default:
			left = append(left, chaos.Fact{Name: string(k), Value: why.Error()})
		}
	}
	if len(list) == 0 {
		return nil, nil, fault.Usagef("no fault is possible there: %s: %s", left[0].Name, left[0].Value)
	}
	return list, left, nil
}

// show prints what would be done.
func (c *command) show(a PlanAnswer) error {
	if c.output == "json" && c.dryRun {
		return render.JSON(c.Out, a)
	}
	for _, q := range a.Statements {
		c.say(q + ";")
	}
	fmt.Fprintf(c.told(), "%s from seed %d:\n", digits.Counted(int64(len(a.Faults)), "fault"), a.Seed)
	for _, f := range a.Faults {
		c.say(f.String())
	}
	for _, l := range a.Left {
		c.say("left out: " + l.Name + ": " + l.Value)
	}
	return nil
}

// folder makes the folder of the run.
func (c *command) folder() (string, error) {
	dir := c.dir
	if dir == "" {
		dir = "risso-chaos-" + time.Now().UTC().Format("20060102T150405Z")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the run: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ledgerFile)); err == nil {
		return "", fault.Usagef("%s has the ledger of another run: choose another --dir", dir)
	}
	return dir, nil
}

// work is a run that is prepared.
type work struct {
	dir     string
	group   string
	cluster chaos.Cluster
	names   map[uint64]string
	plan    []chaos.Fault
	facts   []chaos.Fact
	journal *chaos.Journal
	// failover says that a controller promises to fail the group over.
	failover bool
	heal     func(f chaos.Fault, target string) string // the command that ends a fault, for the journal; nil: none is needed
}

// do causes the faults and writes the certificate.
func (c *command) do(ctx context.Context, w work) (*chaos.Certificate, error) {
	path := filepath.Join(w.dir, ledgerFile)
	book, err := ledger.Create(path, w.group, w.cluster.Members())
	if err != nil {
		return nil, err
	}
	r := chaos.Run{Cluster: w.cluster, Faults: w.plan, Book: book, Writers: c.writers, Pause: c.pause, Limit: c.limit, Settle: c.settle, Say: c.say, Failover: w.failover,
		Journal: func(event string, f chaos.Fault, target string) error {
			e := chaos.Entry{Event: event, Fault: f.Number, Kind: f.Kind, Target: target}
			if w.heal != nil {
				e.Command = w.heal(f, target)
			}
			return w.journal.Note(e)
		}}
	rerr := r.Do(ctx, c.seed, w.names, w.facts)
	if err := book.Close(); err != nil {
		return nil, errors.Join(rerr, err)
	}
	cert, err := certify(w.dir)
	if err != nil {
		return nil, errors.Join(rerr, err)
	}
	if err := c.tell(cert, w.dir); err != nil {
		return cert, err
	}
	switch {
	case ctx.Err() != nil:
		return cert, errors.Join(ctx.Err(), rerr)
	case !cert.Passed:
		return cert, fault.New(fault.Failed, "everything is kept in "+w.dir, fmt.Errorf("not passed: %s", cert.Violations[0]))
	}
	return cert, rerr
}

// certify computes the certificate of a folder's ledger, signs it with the account's key, and writes it beside.
func certify(dir string) (*chaos.Certificate, error) {
	path := filepath.Join(dir, ledgerFile)
	book, sum, err := ledger.Read(path)
	if err != nil {
		return nil, err
	}
	cert, err := chaos.Judge(book)
	if err != nil {
		return nil, err
	}
	keys, err := places.Sign(repo.Keys{})
	if err != nil {
		return nil, err
	}
	if err := cert.Sign(path, sum, keys.Signer); err != nil {
		return nil, err
	}
	for name, write := range map[string]func(io.Writer) error{jsonFile: func(w io.Writer) error { return render.JSON(w, cert) }, pageFile: cert.WritePage} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("write the certificate: %w", err)
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			return nil, fmt.Errorf("write the certificate: %w", err)
		}
	}
	return cert, nil
}

// tell prints a certificate.
func (c *command) tell(cert *chaos.Certificate, dir string) error {
	if c.output == "json" {
		return render.JSON(c.Out, cert)
	}
	if err := describe(c.Out, cert); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.Out, "certificate: %s\n", filepath.Join(dir, pageFile))
	return err
}

// describe prints what a certificate says.
func describe(out io.Writer, cert *chaos.Certificate) error {
	err := screen.Tabulate(out, func(w io.Writer) {
		fmt.Fprintln(w, "FAULT\tCOUNT\tOUTAGE, MEDIAN\tWORST\tNEW PRIMARY\tLOST")
		for _, k := range cert.Kinds {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%d\n", k.Kind, k.Count, digits.Span(k.Median), digits.Span(k.Worst), k.Failovers, k.Lost)
		}
	})
	if err != nil {
		return err
	}
	t := cert.Totals
	fmt.Fprintf(out, "%s, %s: %d lost, %d taken by a second writer; %s of the primary, %d of them false alarms\n", digits.Counted(int64(t.Faults), "fault"),
		digits.Counted(int64(t.Acknowledged), "acknowledged write"), t.Lost, t.Doubles, digits.Counted(int64(t.Failovers), "change"), t.FalseAlarms)
	for _, v := range cert.Violations {
		fmt.Fprintln(out, "broken:", oneline.Of(v))
	}
	if cert.Passed {
		fmt.Fprintln(out, "passed")
	}
	return nil
}

// inSandbox makes a sandbox for it.
func (c *command) inSandbox(ctx context.Context, kinds []chaos.Kind) error {
	server, err := sandbox.Find(ctx, c.sandbox)
	if err != nil {
		return err
	}
	clock := slices.Contains(c.only, string(chaos.Clock)) || len(c.only) == 0 && !server.SlowClock()
	possible, left, err := c.possible(kinds, func(k chaos.Kind) error {
		if k.NeedsController() && c.controllers == 0 {
			return errors.New("there is no controller")
		}
		if k == chaos.Clock && !clock {
			return errors.New("a clock that jumps makes this server too slow; --only clock causes it all the same")
		}
		return nil
	})
	if err != nil {
		return err
	}
	plan := chaos.Plan(c.seed, possible, c.faults)
	if err := c.show(PlanAnswer{Seed: c.seed, Faults: plan, Left: left}); err != nil || c.dryRun {
		return err
	}
	dir, err := c.folder()
	if err != nil {
		return err
	}
	journal, err := chaos.NewJournal(dir)
	if err != nil {
		return err
	}
	defer journal.Close()
	if err := journal.Note(chaos.Entry{Event: "sandbox", Sandbox: filepath.Join(dir, "servers")}); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	const disk = 700 << 20
	lab, err := chaos.OpenLab(ctx, chaos.LabOptions{Dir: dir, Group: "chaos", Risso: program, Server: c.sandbox, Replicas: c.replicas, SemiSync: !c.async, Disk: disk, Clock: clock, Controllers: c.controllers, Say: c.say,
		Started: func(pid int) error { return journal.Note(chaos.Entry{Event: "controller", PID: pid}) }})
	kept := false
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := lab.Close(clean, kept); err != nil {
			fmt.Fprintln(c.Err, "risso:", oneline.Of(err.Error()))
		}
		if kept {
			c.say("the servers are kept; risso chaos heal --down " + dir + " removes them")
		}
	}()
	if err != nil {
		return err
	}
	names, err := lab.Names(ctx)
	if err != nil {
		return err
	}
	cert, err := c.do(ctx, work{dir: dir, group: lab.Group, cluster: lab, names: names, plan: plan, facts: c.facts(lab, left), journal: journal, failover: c.controllers > 0})
	kept = c.keep || cert != nil && !cert.Passed && ctx.Err() == nil
	return err
}

// facts are what a reader of the certificate needs to know of a sandbox.
func (c *command) facts(lab *chaos.Lab, left []chaos.Fact) []chaos.Fact {
	n := lab.Sandbox.Primary()
	replication := "semi-synchronous, AFTER_SYNC, without a time-out"
	if c.async {
		replication = "asynchronous: a failover may lose acknowledged writes"
	}
	list := []chaos.Fact{
		{Name: "servers", Value: fmt.Sprintf("%d of %s %s, sandboxes on one machine", len(lab.Sandbox.Nodes), n.Program.Family, n.Version)},
		{Name: "replication", Value: replication},
		{Name: "killed, frozen", Value: "SIGKILL, SIGSTOP and SIGCONT to the server's process; it is started again read-only"},
		{Name: "partitions", Value: "each server, the clients and the controller are in network namespaces of their own; the router between them drops packets"},
		{Name: "full disk", Value: "each server has a file system of its own, which a file fills"},
		{Name: "slow disk", Value: "a control group limits the writes of the server's process to 20 to 99 a second"},
		{Name: "clock", Value: "libfaketime sets the server's time of day up to two hours ahead or back; monotonic clocks go on"},
	}
	if c.controllers > 1 {
		list = append(list, chaos.Fact{Name: "controllers", Value: fmt.Sprintf("%d that share their state; one is killed at a time", c.controllers)})
	}
	for _, l := range left {
		list = append(list, chaos.Fact{Name: "left out: " + l.Name, Value: l.Value})
	}
	return list
}
