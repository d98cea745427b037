package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/web"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/ui"
)

// defaultListen is where the page is when nothing else is said.
const defaultListen = "127.0.0.1:8306"

type serveFlags struct {
	sourceFlags
	statementFlags
	listen    string
	data      string
	retention string
	verbose   bool
}

func newServe(s Streams) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch servers and this host every second; serve the page and the API",
		Long: `Watch servers and this host every second, keep every number, and serve the
page, the JSON API and Prometheus' query API.

Servers come from --dsn (several), else from --config, else from the environment
variable RISSO_DSN (several, parted by blanks), else from ~/.my.cnf. A password in
--dsn is wiped from the process list; ~/.my.cnf, the environment and the config file
(password_file, password_env) are the better places.

What classes of statements cost is read once a minute from performance_schema or, where
that is off and Risso runs on the server's machine, from the slow log (--statements, or
statements in the config file, also for one server). It is kept in the data folder (DuckDB,
in builds with cgo), or in ClickHouse: --events-url, the environment variable
RISSO_EVENTS_URL, or events_url in the config file.

A change of the protect blocks of the config file is taken while Risso runs, within some
seconds or at SIGHUP; when there is a mistake in it, what was before stays in force.
SIGHUP never ends Risso, with or without a config file; when it comes because the
terminal was closed, Risso goes on and says so among its events. SIGTERM and SIGINT end it.

Whoever listens on another address than loopback needs a token first:
risso token create NAME. Once there is a token, it is asked for on loopback, too.

What questions over HTTP may cost is bounded: limits in the config file.

` + exitCodesHelp,
		Example: `  risso serve --dsn 'risso:secret@tcp(db1:3306)/' --dsn 'db2=risso:secret@tcp(10.0.0.2)/'
  risso serve --host-only
  risso serve --config risso.yaml --data /var/lib/risso
  risso serve --dsn 'risso:secret@tcp(db1:3306)/' --redact --no-plans
  risso serve --dsn 'risso@unix(/run/mysqld/mysqld.sock)/' --statements slow-log`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), s.Err, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", defaultListen, "address of the page and the API")
	fl.StringVar(&f.data, "data", "", "folder of the data (default "+defaultDataDir()+")")
	fl.StringVar(&f.retention, "retention", "", "how long numbers are kept, such as 400d (default: for good)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	bindSources(&f.sourceFlags, cmd)
	bindStatements(&f.statementFlags, cmd)
	return cmd
}

// settings are the flags and the config file, checked and joined.
type settings struct {
	listen     string
	data       string
	retention  time.Duration
	servers    []watched
	host       bool
	open       bool // loopback only
	hosts      []string
	limits     web.Limits
	statements statementFlags
}

func (f serveFlags) settings() (settings, error) {
	c, servers, none := f.sources()
	if none != nil && !errors.Is(none, errNoServer) {
		return settings{}, none
	}
	var err error
	s := settings{listen: f.listen, data: cmp.Or(f.data, c.Data, defaultDataDir()), servers: servers, host: !f.noHost, hosts: c.Hosts, statements: f.statementFlags}
	s.statements.eventsURL = eventsURL(f.eventsURL, c.EventsURL)
	s.statements.redact = f.redact || c.Redact
	if s.statements.mode, err = statementMode(f.statementFlags, c.Statements); err != nil {
		return settings{}, err
	}
	if f.mode != "" || f.noStatements { // flags win over the config file
		for i := range s.servers {
			s.servers[i].statements = ""
		}
	}
	if c.Listen != "" && f.listen == defaultListen {
		s.listen = c.Listen
	}
	if s.retention, err = digits.ParseAge(cmp.Or(f.retention, c.Retention)); err != nil {
		return settings{}, usageError("--retention: %w", err)
	}
	host, port, err := net.SplitHostPort(s.listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return settings{}, usageError("--listen %q: write it as host:port", s.listen)
	}
	if s.limits, err = c.Limits.check(); err != nil {
		return settings{}, usageError("limits of the config file: %w", err)
	}
	ip := net.ParseIP(host)
	s.open = host == "localhost" || (ip != nil && ip.IsLoopback())
	return s, none // last, so that a file which leaves the servers to --dsn is read to its end
}

// gcPercent is how much the heap may grow between two collections of garbage.
const gcPercent = 50

// serve is the story of risso serve: open what is kept, take the address, watch, serve, and end in order.
func serve(ctx context.Context, out io.Writer, f serveFlags) error {
	set, err := f.settings()
	if err != nil {
		return err
	}
	hup := hearHangup()
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))

	if err := os.MkdirAll(set.data, 0o700); err != nil {
		return folderFailure(set.data, fmt.Errorf("data folder: %w", err))
	}
	warnOfOwner(out, set.data)
	ln, err := listen(ctx, set.listen)
	if err != nil {
		return err
	}
	defer ln.Close()

	// Risso makes little garbage: to collect it at half the usual growth costs next to nothing and keeps the process small.
	debug.SetGCPercent(gcPercent)
	// Questions take as many of Go's processors as may be worked on at once. So many more let collectors begin at once; the
	// system shares the machine's own among them, and favours who slept.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + max(set.limits.AtOnce, 2))
	w := newWatch(logger)
	numbers, err := series.Open(series.Options{Dir: filepath.Join(set.data, "series"), Retention: set.retention, Logger: logger, OnEvent: w.Event})
	if err != nil {
		if errors.Is(err, series.ErrLocked) {
			return failure(exitInUse, "give each its own folder with --data", fmt.Errorf("another risso serve uses %s", set.data))
		}
		return folderFailure(set.data, fmt.Errorf("open the numbers: %w", err))
	}
	defer numbers.Close()
	facts, err := state.Open(ctx, filepath.Join(set.data, "state.db"))
	if err != nil {
		return folderFailure(set.data, fmt.Errorf("open the facts: %w", err))
	}
	defer facts.Close()
	if err := requireToken(ctx, set, facts); err != nil {
		return err
	}
	if err := firstContact(ctx, out, set.servers, staysAway); err != nil {
		return err
	}

	rows, err := openStatements(ctx, set)
	if err != nil {
		return err
	}
	defer rows.close()

	guard, err := newProtect(set.servers, facts, w.board, w.Event, w.logger)
	if err != nil {
		return err
	}

	page, err := fs.Sub(ui.Dist, "dist")
	if err != nil {
		return fmt.Errorf("open the page: %w", err)
	}
	handler := web.New(web.Options{Numbers: numbers, Facts: facts, Live: w.board, Statements: rows.web(), Protect: guard, Page: page, Version: Version(),
		Open: set.open, Hosts: set.hosts, Limits: set.limits, Event: w.Event, Logger: logger})
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.run(gctx, set, numbers, facts, rows, guard) })
	g.Go(func() error { return web.Serve(gctx, ln, handler, set.limits, logger) })
	c := newConfigWatch(f, set.servers, guard, w, hup, out)
	g.Go(func() error { return c.run(gctx) })
	select {
	case <-w.begun: // who asks now is told of every server
	case <-gctx.Done():
		return inOrder(ctx, g.Wait())
	}
	fmt.Fprintf(out, "risso: ready on http://%s watching %s, data in %s\n", ln.Addr(), digits.Counted(len(set.servers), "server"), set.data)
	return inOrder(ctx, g.Wait())
}

// inOrder is how serve ended: to be stopped while something only begins is no failure either.
func inOrder(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failure(exitInUse, "choose another with --listen, or 127.0.0.1:0 for any free port", fmt.Errorf("the address %s is in use", addr))
	case err != nil:
		return nil, failure(exitFailed, "", fmt.Errorf("listen: %w", err))
	}
	return ln, nil
}
