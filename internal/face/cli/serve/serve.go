// Package serve holds risso serve and the commands for its config file and for access: config, user, token, audit.
package serve

import (
	"context"
	"fmt"
	"io/fs"
	"net"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	shards "github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/web"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/failover"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/ui"
)

// New is risso serve.
func New(s screen.Streams) *cobra.Command {
	var f config.Flags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch servers and this host every second; serve the page and the API",
		Long: `Watches servers and this host every second, keeps every metric, and serves the
page, the JSON API and Prometheus' query API.

Servers come from --dsn (several), or from --config, or from the environment
variable RISSO_DSN (several, separated by spaces), or from ~/.my.cnf. A password in
--dsn is wiped from the process list; ~/.my.cnf, the environment and the config file
(password_file, password_env) are the better places.

The cost of classes of statements is read once a minute from performance_schema or, if
that is off and Risso runs on the server's machine, from the slow log (--statements, or
statements in the config file, also per server). It is kept in the data folder (DuckDB,
in builds with cgo), or in ClickHouse: --events-url, the environment variable
RISSO_EVENTS_URL, or events_url in the config file.

Changes to the protect blocks and the alerts of the config file, and to rule files, take
effect while Risso runs, within a few seconds or on SIGHUP; if there is a mistake, the
previous settings stay in force.
SIGHUP never ends Risso, with or without a config file; if it comes because the
terminal was closed, Risso continues and reports it as an event. SIGTERM and SIGINT end it.

To listen on an address other than loopback, create a user or a token first: risso user
add NAME, risso token create NAME. Once there is one, it is required on loopback, too.

Groups of servers (risso group create) are watched too: GET /primary?group=NAME says where clients go. With
--failover auto, groups are failed over when their primary is dead, but for those created with --manual.

HTTP queries are limited: see limits in the config file.

` + fault.Help,
		Example: `  risso serve --dsn 'risso:secret@tcp(db1:3306)/' --dsn 'db2=risso:secret@tcp(10.0.0.2)/'
  risso serve --host-only
  risso serve --config risso.yaml --data /var/lib/risso
  risso serve --dsn 'risso:secret@tcp(db1:3306)/' --redact --no-plans
  risso serve --dsn 'risso@unix(/run/mysqld/mysqld.sock)/' --statements slow-log`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Listen, "listen", config.DefaultListen, "address of the page and the API")
	fl.StringVar(&f.Data, "data", "", "data folder (default "+home.Data()+")")
	fl.StringVar(&f.Retention, "retention", "", "how long to keep metrics, such as 400d (default: forever)")
	fl.StringVar(&f.Failover, "failover", "", "auto: fail groups over whose primary is dead; off (default off)")
	fl.BoolVar(&f.NoMembers, "no-members", false, "do not read members of groups each second: only watch whether their primaries live, and fail them over; findings of groups are those of this host")
	fl.BoolVarP(&f.Verbose, "verbose", "v", false, "log more")
	flags.BindSources(&f.Sources, cmd)
	bindStatements(&f.Statements, cmd)
	return cmd
}

// bindStatements adds the flags to a command.
func bindStatements(f *config.Statements, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.EventsURL, "events-url", "", "keep statements in ClickHouse: clickhouse://user:password@host:9000/database (default: DuckDB in the data folder)")
	fl.StringVar(&f.Mode, "statements", "", "where statements are read: auto, performance_schema, slow-log or off (default auto: performance_schema, or if that is off, the slow log of a server on this machine)")
	fl.BoolVar(&f.NoStatements, "no-statements", false, "do not follow statements; the same as --statements off")
	fl.BoolVar(&f.NoPlans, "no-plans", false, "do not take query plans of the heaviest statements")
	fl.BoolVar(&f.Redact, "redact", false, "hide literal values in samples and plans before they are stored")
}

// hand changes groups for those who ask over HTTP.
func hand(p serve.Parts) *failover.Hand {
	h := &failover.Hand{Docs: p.Facts, Limits: carry.DefaultLimits(), Hooks: p.Publishing.Hooks(), Desk: p.Groups, Lead: p.Lead, Logger: p.Logger}
	if n, ok := p.Lead.(*agree.Node); ok {
		h.Others = n.Overview
	}
	return h
}

// run keeps the daemon running, with the page and the API as its face.
func run(ctx context.Context, s screen.Streams, f config.Flags) error {
	page, err := fs.Sub(ui.Dist, "dist")
	if err != nil {
		return fmt.Errorf("open the page: %w", err)
	}
	return serve.Run(ctx, s.Err, f, func(ctx context.Context, ln net.Listener, p serve.Parts) error {
		handler := web.New(web.Options{Numbers: p.Numbers, PromQL: p.PromQL, Facts: p.Facts, Live: p.Board, Protect: p.Guard, Alerts: p.Alerts, Incidents: p.Incidents, Sizes: p.Sizes, Advice: p.Advice, Topology: p.Topology, Groups: hand(p), Rules: p.Rules.Now, Health: p.Health.Under("/health/"), Views: p.Views, Shards: &shards.Room{Docs: p.Facts, Who: "risso serve"}, Clients: p.Publishing.Desk(), Page: page, Version: release.Version(),
			Statements: web.Statements{Store: p.Statements, Missing: p.Missing, Sources: p.Sources},
			Open:       p.Settings.Open, Hosts: p.Settings.Hosts, Limits: p.Settings.Limits, Did: p.Did, Logger: p.Logger})
		return web.Serve(ctx, ln, handler, p.Settings.Limits, p.Logger)
	})
}
