// Package health is the command health: one HTTP answer about a server for load balancers.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
)

type command struct {
	screen.Streams
	flags.Server
	listen, ask, output string
	donor               zeroOne
	notReadOnly         bool
	every, maxAge       time.Duration
	maxLag              time.Duration
	old                 pyclustercheck
}

// pyclustercheck are its flags that have other names here: its unit files work as they are.
type pyclustercheck struct {
	port       string
	ipv4, conf string
	ipv6       bool
	cache      float64
}

// DefaultListen is clustercheck's usual port, on this machine only until another address is asked for.
const DefaultListen = "127.0.0.1:9200"

// New is risso health.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Tell load balancers over HTTP whether a server may have clients now",
		Long: `Looks at one server again and again, and answers HTTP requests from what it saw last: 200 if the
server may have clients, 503 if not, with the reason. It stands where clustercheck or pyclustercheck
stood: the same answers, options and port. However many ask, the server is asked --every 250ms over two
connections. What was seen is never older than --max-age: a server that stops or hangs is 503 within a
second. GET, HEAD and OPTIONS are answered alike; the headers Age and Risso-Age say how old it is.

  /, /galera   a synced node of Galera, as clustercheck; ?available-when-donor=1, ?available-when-readonly=0
  /up          the server answers
  /primary     it is writable, and replicates from none; or is a group's primary, or a synced node
  /replica     it replicates; ?max-lag=5 (seconds, or as 2m)
  /group       it is an online member of Group Replication, in a majority
  ?output=json the same as JSON

Whoever may connect may ask, and learns no more than the answer. The account needs no privilege for / and
/up; for /primary and /replica REPLICATION CLIENT (MySQL) or SLAVE MONITOR (MariaDB); for groups also
SELECT on performance_schema.replication_group_members. risso serve answers the same for all servers that
it watches at /health/NAME.

--ask asks one question here, without HTTP, and ends with 0 if the server is available, else with 1: for
keepalived and the like.`,
		Example: `  risso health --dsn 'clustercheckuser@unix(/run/mysqld/mysqld.sock)/' --listen :9200
  risso health --dsn 'risso:secret@tcp(db2:3306)/' --max-lag 10s
  risso health --dsn 'risso:secret@tcp(db2:3306)/' --ask '/replica?max-lag=5'
  risso health --dsn 'risso:secret@tcp(db1:3306)/' --ask /primary -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), cmd.Flags().Changed) },
	}
	fl := cmd.Flags()
	c.Bind(cmd, "the server to look at")
	fl.StringVar(&c.listen, "listen", DefaultListen, "address to answer at")
	fl.StringVar(&c.ask, "ask", "", "ask this question once, such as /primary, and end")
	fl.VarP(&c.donor, "available-when-donor", "a", "1: a donor, or a desynced node, is available")
	fl.BoolVar(&c.notReadOnly, "disable-when-readonly", false, "a node of Galera that is read-only is not available")
	flags.DurationVar(fl, &c.maxLag, "max-lag", 0, "how far a replica may be behind where a question does not say; 0: any")
	flags.DurationVar(fl, &c.every, "every", health.DefaultEvery, "how often to look at the server")
	flags.DurationVar(fl, &c.maxAge, "max-age", health.DefaultMaxAge, "how old what was seen may be")
	flags.OutputVar(fl, &c.output, "with --ask", "text", "json")
	c.old.bind(cmd)
	return cmd
}

func (o *pyclustercheck) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&o.port, "port", "p", "", "as pyclustercheck: port to answer at")
	fl.StringVarP(&o.ipv4, "ipv4", "4", "", "as pyclustercheck: address to answer at")
	fl.BoolVarP(&o.ipv6, "ipv6", "6", false, "as pyclustercheck: answer at all IPv6 addresses")
	fl.Float64VarP(&o.cache, "cache-time", "c", 0, "as pyclustercheck: how old an answer may be, in seconds")
	fl.StringVarP(&o.conf, "conf", "f", "", "as pyclustercheck: option file")
	for _, name := range []string{"port", "ipv4", "ipv6", "cache-time", "conf"} {
		_ = fl.MarkHidden(name) // it was just made
	}
}

// translate brings pyclustercheck's flags into ours.
func (c *command) translate(given func(string) bool) error {
	o := c.old
	if given("port") || given("ipv4") || given("ipv6") {
		if given("listen") {
			return fault.Usagef("either --listen or pyclustercheck's --port, --ipv4 and --ipv6")
		}
		host, port := "0.0.0.0", "8000"
		if o.port != "" {
			port = o.port
		}
		if o.ipv4 != "" {
			host = o.ipv4
		}
		if o.ipv6 {
			host = "::"
		}
		c.listen = net.JoinHostPort(host, port)
	}
	if given("cache-time") {
		c.maxAge = time.Duration(o.cache * float64(time.Second))
	}
	if given("conf") {
		c.DefaultsFile = o.conf
	}
	return nil
}

func (c *command) run(ctx context.Context, given func(string) bool) error {
	if err := c.translate(given); err != nil {
		return err
	}
	base := health.Question{Donor: bool(c.donor), NotReadOnly: c.notReadOnly, MaxLag: c.maxLag}
	switch {
	case c.every < 10*time.Millisecond:
		return fault.Usagef("--every %s: at least 10ms", c.every)
	case c.maxAge <= c.every:
		return fault.Usagef("--max-age %s: more than --every (%s), or every answer would be too old", c.maxAge, c.every)
	case c.output != "text" && c.ask == "":
		return fault.Usagef("--output is for --ask; over HTTP ask with ?output=json")
	}
	var q health.Question
	var err error
	switch {
	case c.ask != "":
		if q, err = health.Ask(c.ask, base); err != nil {
			return fault.Usagef("--ask: %w", err)
		}
	case given("ask"):
		return fault.Usagef("--ask: write a question, such as /primary")
	default:
		if _, err = config.CheckListen(c.listen); err != nil {
			return err
		}
	}
	target, err := c.Target()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	p := health.NewProber(target, c.every, c.maxAge, func(err error) {
		if c.ask != "" && !q.OfReplication() && mysql.ClassOf(err) == mysql.ClassPrivilege {
			return // what the question does not need
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			fmt.Fprintf(c.Err, "risso: %s answers\n", target.Address())
			return
		}
		fmt.Fprintf(c.Err, "risso: %s\n", fault.Line(err.Error(), fleet.RemedyOf(err)))
	})
	if c.ask != "" {
		return c.once(ctx, p, q)
	}
	ln, err := serve.Listen(ctx, c.listen)
	if err != nil {
		return err
	}
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return errors.New("the listener is none of TCP")
	}
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { p.Run(ctx) })
	defer looking.Wait()
	defer cancel()
	fmt.Fprintf(c.Err, "risso: ready on http://%s looking at %s each %s\n", ln.Addr(), target.Address(), c.every)
	return health.NewResponder(p, base).Serve(ctx, tcp)
}

// onceWait is how long a first look may take with --ask: as clustercheck waits.
const onceWait = 10 * time.Second

// once asks one question after a first look.
func (c *command) once(ctx context.Context, p *health.Prober, q health.Question) (err error) {
	pctx, cancel := context.WithTimeout(ctx, onceWait)
	var looking sync.WaitGroup
	looking.Go(func() { p.Run(pctx) })
	select {
	case <-p.Looked():
	case <-pctx.Done():
	}
	a := p.Judge(q, time.Now())
	cancel()
	looking.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.output == "json" || q.JSON {
		err = render.JSON(c.Out, a)
	} else {
		_, err = fmt.Fprintln(c.Out, strings.TrimSpace(a.Reason))
	}
	if err == nil && !a.Available {
		return &fault.Told{Code: fault.Failed}
	}
	return err
}

// zeroOne is 0 or 1, as clustercheck writes what holds.
type zeroOne bool

// String is the value as it is written.
func (z *zeroOne) String() string {
	if *z {
		return "1"
	}
	return "0"
}

// Set reads it.
func (z *zeroOne) Set(s string) error {
	yes, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New("0 or 1")
	}
	*z = zeroOne(yes)
	return nil
}

// Type is what help calls it.
func (*zeroOne) Type() string { return "0|1" }
