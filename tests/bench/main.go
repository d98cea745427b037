// Command bench compares Risso with other tools, in one run on the same machine. script/bench calls it.
//
// Costs are processor time, not elapsed time, wherever the question allows it: the machine may be
// doing other things. The programs compared alternate, round by round, and medians are shown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errUsage is what every error about the command line wraps; the exit status is then 2.
var errUsage = errors.New("usage")

// benches are the benchmarks by name, each with its sections.
var benches = map[string][]part{
	"watch": {
		{"collect", "processor time of collecting, beside prometheus-mysqld-exporter and Prometheus", (*bench).collect},
		{"disk", "bytes a sample, beside VictoriaMetrics and Prometheus", (*bench).disk},
		{"memory", "memory with 3 and with 100 servers", (*bench).memory},
		{"charts", "latency of a chart's data over HTTP", (*bench).charts},
		{"sandbox", "starting a sandbox with replicas", (*bench).sandboxes},
	},
	"bench": {
		{"alone", "the load driver against nothing: speed, timer, histogram", (*bench).alone},
		{"mysql", "MySQL or MariaDB, beside sysbench", (*bench).speed},
		{"postgres", "PostgreSQL, beside pgbench", (*bench).postgres},
	},
	"binlog": {
		{"mirror", "mirroring binary logs, beside mariadb-binlog --raw", (*bench).mirrorSpeed},
		{"lag", "how far a mirror is behind a server at its full write rate", (*bench).mirrorLag},
	},
	"digest": {
		{"digest", "a generated slow log, beside pt-query-digest", (*bench).digest},
	},
	"backup": {
		{"dump", "logical backups, beside mydumper and mysqldump", (*bench).backup},
		{"restore", "the same put back, beside myloader", (*bench).restore},
		{"tables", "very many empty tables, beside mydumper and mysqldump where it is not too many for them", (*bench).tables},
	},
	"checksum": {
		{"checksum", "a replica and its primary, beside pt-table-checksum", (*bench).checksum},
	},
	"alter": {
		{"mariadb", "forecasts of ALTER TABLE on MariaDB, beside what it takes", (*bench).alterMariaDB},
		{"mysql", "forecasts of ALTER TABLE on MySQL, beside what it takes", (*bench).alterMySQL},
	},
	"advise": {
		{"many", "what is wrong with a server of very many tables", (*bench).adviseMany},
	},
	"topology": {
		{"discover", "300 servers found from one of them", (*bench).discover},
		{"sets", "sets of very many intervals, beside MySQL's GTID_SUBTRACT", (*bench).gtidSets},
		{"health", "the health of a node of Galera for 500 load balancers, beside clustercheck", (*bench).health},
	},
	"failover": {
		{"kill", "kill -9 of primaries under load, beside orchestrator", (*bench).kills},
		{"freeze", "SIGSTOP of primaries under load", (*bench).freezes},
		{"partition", "primaries cut off from everybody, under load", (*bench).partitions},
		{"switchover", "planned changes of the primary under load", (*bench).switchovers},
		{"alarms", "false alarms: stalls, slow disks and full processors of primaries", (*bench).alarms},
		{"many", "processor time of one risso serve that watches 200 groups", (*bench).manyGroups},
	},
	"router": {
		{"speed", "point selects through risso route, beside HAProxy in TCP mode and no router", (*bench).router},
		{"idle", "memory of risso route with 10,000 idle connections", (*bench).routerIdle},
	},
	"night": {
		{"night", "a night of planned trouble, and what was known of it in the morning", (*bench).night},
	},
	"alerts": {
		{"rules", "processor time of 40 rules, and of what rings, over 200 servers", (*bench).rules},
		{"days", "any day of a year of findings of 200 servers", (*bench).findingDays},
		{"ring", "what the moments of a server cost it each second, and their space", (*bench).ringCost},
		{"stall", "from a stalled server to a webhook, and to the incident", (*bench).stalls},
	},
	"events": {
		{"history", "30 days of statements of ten servers in the embedded store", (*bench).history},
		{"digests", "processor time of reading 5,000 classes of statements once a minute", (*bench).digests},
		{"activity", "processor time of looking at the active sessions once a second", (*bench).activity},
	},
}

// part is a section of a benchmark.
type part struct {
	name, title string
	run         func(*bench, context.Context, *section) error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	quick   bool
	output  string
	risso   string
	ticks   string
	minutes int
	rounds  int
	window  time.Duration
	idle    int
	days    int
	series  int
	many    int
	keep    string
	profile bool

	megabytes int
	schemas   int
	socket    string

	server, connections, workload string
	servers                       string
	semi                          bool
}

func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("script/bench", flag.ContinueOnError)
	fs.BoolVar(&o.quick, "quick", false, "short measurements: to see that all works, not to judge by")
	fs.StringVar(&o.output, "output", "text", "text or json")
	fs.StringVar(&o.risso, "risso", os.Getenv("RISSO_BIN"), "the risso program to measure")
	fs.StringVar(&o.ticks, "ticks", "", "tick file: read it if it exists, else record it and keep it (default: record one and remove it)")
	fs.IntVar(&o.minutes, "minutes", 0, "how long to record ticks and to watch memory (default 60, quick 3)")
	fs.IntVar(&o.rounds, "rounds", 0, "collect, digest, bench, ring, advise and failover: rounds (default 3, of bench 5, of ring 1, of failover 100; quick 2)")
	fs.DurationVar(&o.window, "window", 0, "collect and ring: how long each round measures each tool (default 60s: what is done once a minute is in it; quick 10s); bench: of each measurement (default 2s, quick 1s)")
	fs.StringVar(&o.server, "server", "mariadb", "bench mysql, backup, checksum and advise: the server, as risso sandbox knows it")
	fs.StringVar(&o.servers, "servers", "mariadb,mysql-9.7", "failover: the servers of kill, freeze, partition and switchover")
	fs.BoolVar(&o.semi, "semi", false, "failover: kill and switchover with semi-synchronous replication only")
	fs.StringVar(&o.connections, "connections", "1,4,16,64", "bench: numbers of connections")
	fs.StringVar(&o.workload, "workloads", "point_select,read_write,update_index", "bench mysql: workloads")
	fs.IntVar(&o.idle, "idle", 1000, "collect: idle connections in the second half")
	fs.IntVar(&o.days, "days", 30, "charts and history: days of data")
	fs.IntVar(&o.series, "series", 0, "charts: series in the data (default -1: all that a server has; quick 100)")
	fs.IntVar(&o.many, "many", 100, "memory: servers in the second half")
	fs.IntVar(&o.megabytes, "megabytes", 0, "backup and alter: data to make (default 2000, of alter 1000; quick 100)")
	fs.IntVar(&o.schemas, "schemas", 0, "backup tables and advise: schemas of 65 empty tables; 10000 need 8 GB of disk and half an hour to be made (default 300, quick 30)")
	fs.StringVar(&o.socket, "socket", "", "backup tables and advise: socket of a server of this machine that has been filled already, and is left as it is")
	fs.StringVar(&o.keep, "keep", "", "history: folder of the store: asked if it exists, else made and kept (default: made and removed); night: anything lets the page stay for half an hour")
	fs.BoolVar(&o.profile, "profile", false, "collect and charts: show with perf where the processor time goes")
	return fs
}

// defaults fills in what depends on --quick.
func (o *options) defaults(name string) {
	if name == "bench" || name == "router" {
		if o.rounds == 0 && !o.quick {
			o.rounds = 5
		}
		if o.window == 0 {
			o.window = 2 * time.Second
			if o.quick {
				o.window = time.Second
			}
		}
	}
	if name == "failover" && o.rounds == 0 && !o.quick {
		o.rounds = 100
	}
	if name == "alter" && o.megabytes == 0 && !o.quick {
		o.megabytes = 1000
	}
	if name == "alerts" && o.rounds == 0 {
		o.rounds = 1 // what its questions cost is exact
	}
	pick := func(v *int, full, quick int) {
		if *v == 0 {
			*v = full
			if o.quick {
				*v = quick
			}
		}
	}
	pick(&o.megabytes, 2000, 100)
	pick(&o.schemas, 300, 30)
	pick(&o.minutes, 60, 3)
	pick(&o.rounds, 3, 2)
	pick(&o.series, -1, 100)
	if o.window == 0 {
		o.window = time.Minute
		if o.quick {
			o.window = 10 * time.Second
		}
	}
}

func names() string {
	var list []string
	for n := range benches {
		list = append(list, n)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// parse reads NAME [SECTION…] [flags].
func parse(args []string) (name string, parts []part, o options, err error) {
	fs := o.flags()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		fs.Usage()
		return "", nil, o, flag.ErrHelp
	}
	all, ok := benches[name]
	if !ok {
		return "", nil, o, fmt.Errorf("%w: no benchmark %q; there are: %s", errUsage, name, names())
	}
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == args[0] })
		if i < 0 {
			var list []string
			for _, p := range all {
				list = append(list, p.name)
			}
			return "", nil, o, fmt.Errorf("%w: %s has no section %q; it has: %s", errUsage, name, args[0], strings.Join(list, ", "))
		}
		parts = append(parts, all[i])
		args = args[1:]
	}
	if len(parts) == 0 {
		parts = all
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return "", nil, o, err
		}
		return "", nil, o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if fs.NArg() > 0 {
		return "", nil, o, fmt.Errorf("%w: unexpected %q: sections stand before flags", errUsage, fs.Arg(0))
	}
	if o.output != "text" && o.output != "json" {
		return "", nil, o, fmt.Errorf("%w: --output %q: text or json", errUsage, o.output)
	}
	if o.risso == "" {
		return "", nil, o, fmt.Errorf("%w: --risso says which program to measure; script/bench builds it", errUsage)
	}
	for _, c := range strings.Split(o.connections, ",") {
		if n, err := strconv.Atoi(c); err != nil || n < 1 || n > 300 {
			return "", nil, o, fmt.Errorf("%w: --connections %q: numbers from 1 to 300, such as 1,16", errUsage, o.connections)
		}
	}
	if (name == "bench" || name == "router") && o.window != 0 && (o.window < time.Second || o.window%time.Second != 0) {
		return "", nil, o, fmt.Errorf("%w: --window %s: whole seconds, as sysbench wants them", errUsage, o.window)
	}
	o.defaults(name)
	return name, parts, o, nil
}

// bench is one run.
type bench struct {
	options
	work   string // folder that is removed at the end
	report *report
	source *recording
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	name, parts, o, err := parse(args)
	if err != nil {
		return err
	}
	// A short path: unix sockets lie below it.
	work, err := os.MkdirTemp("", "risso-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	b := &bench{options: o, work: work, report: newReport(name, o.quick)}
	var failed []error
	for _, p := range parts {
		s := b.report.section(p.name, p.title)
		began := time.Now()
		say("%s: %s", p.name, p.title)
		s.Load = append(s.Load, loadAverage())
		err := p.run(b, ctx, s)
		s.Seconds = time.Since(began).Seconds()
		s.Load = append(s.Load, loadAverage())
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil { // the other sections are still of use
			s.note("FAILED: %v", err)
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
		if o.output == "text" {
			s.text(out)
		}
	}
	if o.output == "json" {
		if err := b.report.json(out); err != nil {
			return err
		}
	} else {
		b.report.text(out)
	}
	return errors.Join(failed...)
}

// say tells on stderr what is going on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "· %s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
