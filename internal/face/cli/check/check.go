// Package check is the command risso check, for Nagios and the like.
package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/rules"
)

// The states of a check, which are its exit codes. Source: Monitoring Plugins Development Guidelines.
const (
	OK = iota
	Warning
	Critical
	Unknown
)

var checkWords = [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}

type findingFlags struct {
	want
	flags.Running
	passive
	dsns     []string
	defaults string
	host     bool
	look     time.Duration
	wait     time.Duration
	output   string
}

// New is `risso check`.
func New(s screen.Streams) *cobra.Command {
	var f findingFlags
	cmd := &cobra.Command{
		Use:   "check {NAME... | --all}",
		Short: "Run checks for Nagios and Icinga: one line, performance data, exit codes 0 to 3",
		Long: `Says in one line whether findings hold: what the page of risso serve says is wrong. A NAME
is a finding, such as repl.lag, a pattern, such as 'repl.*', or freshness: do readings
arrive? --all means all of these. Performance data follow the vertical bar, further lines say
what else holds and the next step. Silences of alerts change nothing here.

A running risso serve is asked: the one on this machine, or that of --url. With --dsn no
risso serve is needed: servers are watched for --look, from here; what a finding learns over a
longer time (what is usual on a server, trends, counts over a minute), backups and what happened
before are then not known.

Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. What cannot be known is never OK: a server
that is down, or of which there are no readings for --max-age, has for each NAME but
server.down and freshness the state UNKNOWN. Of several states the worst counts: CRITICAL,
then WARNING, then UNKNOWN. Wrong use is UNKNOWN, too.

With --nsca the states are also sent to a Nagios or Icinga by NSCA, as a passive result for each
server; the exit code is that of the check, or UNKNOWN if they could not be sent.`,
		Example: `  risso check --all
  risso check --all --server 'shop-*' --url http://risso:8306 --token-file /etc/risso/token
  risso check repl.lag repl.stopped --server db2
  risso check 'disk.*' freshness
  risso check --all --dsn 'monitor@tcp(db1:3306)/' --defaults-file /etc/risso/db1.cnf
  risso check --all --nsca nagios:5667 --nsca-password-file /etc/risso/nsca`,
		// A check that is not configured right must be neither OK nor CRITICAL.
		Args: func(_ *cobra.Command, args []string) error {
			f.names = args
			if err := f.want.check(); err != nil {
				return failed(s, "CHECK", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheck(cmd.Context(), s, f) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(s, "CHECK", err) })
	fl := cmd.Flags()
	f.BindTo(fl)
	fl.BoolVar(&f.all, "all", false, "all findings, and freshness")
	fl.StringArrayVar(&f.servers, "server", nil, "only this server or host: its name, or a pattern; may be repeated")
	fl.StringArrayVar(&f.dsns, "dsn", nil, "watch this server from here: user@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it; may be repeated")
	fl.StringVar(&f.defaults, "defaults-file", "", "with --dsn: option file of the mysql clients, for user and password (default ~/.my.cnf)")
	fl.BoolVar(&f.host, "host", false, "watch this host from here")
	flags.DurationVar(fl, &f.look, "look", 6*time.Second, "with --dsn or --host: for how long")
	flags.DurationVar(fl, &f.maxAge, "max-age", 30*time.Second, "how old the newest reading may be")
	flags.DurationVar(fl, &f.wait, "timeout", 30*time.Second, "give up after this time, as UNKNOWN")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	f.bind(fl)
	cmd.AddCommand(newCheckBackup(s), newCheckAccounts(s), newCheckAdvice(s), newCheckDatadir(s))
	return cmd
}

// failed is the state UNKNOWN of a check with its reason.
func failed(s screen.Streams, check string, err error) error {
	fmt.Fprintln(s.Out, check+" UNKNOWN - "+noBar(fault.Line(err.Error(), fleet.RemedyOf(err))))
	return &fault.Told{Code: Unknown}
}

// noBar removes the character after which performance data begin.
func noBar(text string) string { return strings.ReplaceAll(text, "|", "/") }

func runCheck(ctx context.Context, s screen.Streams, f findingFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.wait, fmt.Errorf("no answer within %s", f.wait))
	defer cancel()
	rows, now, err := f.rows(ctx)
	if err == nil {
		var list []Service
		if list, err = judge(rows, f.want, now); err == nil {
			a := sum(list, f.want)
			if f.passive.to == "" {
				return a.write(s, f.output)
			}
			if err = f.send(ctx, list); err == nil {
				return a.write(s, f.output)
			}
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return failed(s, "RISSO", err)
}

// write shows an answer; its state is the exit code.
func (a Answer) write(s screen.Streams, output string) error {
	if output == "json" {
		if err := render.JSON(s.Out, a); err != nil {
			return err
		}
	} else if _, err := io.WriteString(s.Out, a.text()); err != nil {
		return err
	}
	if a.Code == OK {
		return nil
	}
	return &fault.Told{Code: a.Code}
}

// rows are all that is watched, and when that was so.
func (f *findingFlags) rows(ctx context.Context) ([]live.Row, time.Time, error) {
	if len(f.dsns) > 0 || f.host {
		return f.glance(ctx)
	}
	if f.defaults != "" {
		return nil, time.Time{}, fault.Usagef("--defaults-file is for --dsn")
	}
	var a struct {
		Now       float64
		Instances []live.Row
	}
	var raw json.RawMessage
	if err := f.Do(ctx, http.MethodGet, "/api/fleet", nil, "tell what is wrong", &raw); err != nil {
		return nil, time.Time{}, err
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.Now == 0 {
		return nil, time.Time{}, fmt.Errorf("%s answers, but not as risso serve does", f.URL)
	}
	if err := f.itself(ctx, &a.Instances, time.UnixMilli(int64(a.Now*1000))); err != nil {
		return nil, time.Time{}, err
	}
	if f.protection() {
		if err := f.protected(ctx, a.Instances); err != nil {
			return nil, time.Time{}, err
		}
	}
	return a.Instances, time.UnixMilli(int64(a.Now * 1000)), nil
}

// itself adds what is wrong with Risso itself, if anything is.
func (f *findingFlags) itself(ctx context.Context, rows *[]live.Row, now time.Time) error {
	var self live.Self
	if err := f.Do(ctx, http.MethodGet, "/api/self", nil, "tell what is wrong", &self); err != nil {
		return err
	}
	if len(self.Findings) == 0 {
		return nil
	}
	*rows = append(*rows, live.Row{Instance: fleet.Instance{ID: "risso", Name: "Risso"}, State: rules.StateOK, Seen: now.Unix(), Findings: self.Findings})
	return nil
}

// protected adds what the page Protect finds: also of servers for which nothing is configured, and which therefore have no such finding.
func (f *findingFlags) protected(ctx context.Context, rows []live.Row) error {
	var a struct {
		Servers []struct {
			ID       string
			Findings []fleet.Finding
		}
	}
	if err := f.Do(ctx, http.MethodGet, "/api/protect", nil, "tell how servers are protected", &a); err != nil {
		return err
	}
	f.judged = map[string]bool{}
	for _, s := range a.Servers {
		f.judged[s.ID] = true
		i := slices.IndexFunc(rows, func(r live.Row) bool { return r.ID == s.ID })
		if i < 0 {
			continue
		}
		rows[i].Findings = append(slices.DeleteFunc(rows[i].Findings, func(f fleet.Finding) bool { return strings.HasPrefix(f.ID, protectPrefix) }), s.Findings...)
	}
	return nil
}

// glance watches from here for a while.
func (f *findingFlags) glance(ctx context.Context) ([]live.Row, time.Time, error) {
	if f.To != "" {
		return nil, time.Time{}, fault.Usagef("either --url or --dsn and --host: a risso serve, or a look from here")
	}
	if f.look < 3*time.Second || f.look >= f.wait {
		return nil, time.Time{}, fault.Usagef("--look %s: it must be 3s or more, and less than --timeout", f.look)
	}
	var servers []config.Watched
	if len(f.dsns) > 0 {
		var err error
		if servers, err = config.Resolve(f.dsns, f.defaults, config.File{}); err != nil {
			return nil, time.Time{}, err
		}
		if err := serve.FirstContact(ctx, io.Discard, servers, serve.Hopeless); err != nil {
			return nil, time.Time{}, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var group collect.Group
	defer group.Wait()
	defer cancel()
	board, err := serve.Glance(ctx, &group, servers, f.host)
	if err != nil {
		return nil, time.Time{}, err
	}
	if err := delay.For(ctx, f.look); err != nil {
		return nil, time.Time{}, err
	}
	now := time.Now()
	return board.Fleet(now), now, nil
}
