// Package cli is the command line: one folder per job, one file per command. This package puts them together, by an explicit list.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/accounts"
	"github.com/rissodb/risso/internal/face/cli/advise"
	"github.com/rissodb/risso/internal/face/cli/agent"
	"github.com/rissodb/risso/internal/face/cli/alert"
	"github.com/rissodb/risso/internal/face/cli/alter"
	"github.com/rissodb/risso/internal/face/cli/appliers"
	"github.com/rissodb/risso/internal/face/cli/backup"
	"github.com/rissodb/risso/internal/face/cli/bench"
	"github.com/rissodb/risso/internal/face/cli/binlog"
	"github.com/rissodb/risso/internal/face/cli/chaos"
	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/face/cli/checksum"
	"github.com/rissodb/risso/internal/face/cli/controller"
	"github.com/rissodb/risso/internal/face/cli/diff"
	"github.com/rissodb/risso/internal/face/cli/doctor"
	"github.com/rissodb/risso/internal/face/cli/events"
	"github.com/rissodb/risso/internal/face/cli/explain"
	"github.com/rissodb/risso/internal/face/cli/failover"
	"github.com/rissodb/risso/internal/face/cli/galera"
	"github.com/rissodb/risso/internal/face/cli/group"
	"github.com/rissodb/risso/internal/face/cli/gtid"
	"github.com/rissodb/risso/internal/face/cli/health"
	"github.com/rissodb/risso/internal/face/cli/incident"
	"github.com/rissodb/risso/internal/face/cli/index"
	"github.com/rissodb/risso/internal/face/cli/lag"
	"github.com/rissodb/risso/internal/face/cli/mapsql"
	"github.com/rissodb/risso/internal/face/cli/publish"
	"github.com/rissodb/risso/internal/face/cli/replica"
	"github.com/rissodb/risso/internal/face/cli/restore"
	"github.com/rissodb/risso/internal/face/cli/route"
	"github.com/rissodb/risso/internal/face/cli/sandbox"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/cli/semisync"
	"github.com/rissodb/risso/internal/face/cli/serve"
	"github.com/rissodb/risso/internal/face/cli/shard"
	"github.com/rissodb/risso/internal/face/cli/size"
	"github.com/rissodb/risso/internal/face/cli/statefile"
	"github.com/rissodb/risso/internal/face/cli/topology"
	"github.com/rissodb/risso/internal/face/cli/watch"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/release"
)

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string, s screen.Streams) int {
	out := &answerWriter{w: s.Out}
	if !screen.OnTerminal(s.Out) {
		s.Out = out
	}
	root := newRoot(s)
	args, err := fromSysbench(args)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		complete(root)
	}
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = out.failed()
	}
	if err == nil {
		return fault.OK
	}
	code := fault.Code(err)
	if told := (*fault.Told)(nil); errors.As(err, &told) {
		return code
	}
	message := err.Error()
	if code == fault.Failed && ctx.Err() != nil { // the signal is why it failed, no matter what broke first
		code = fault.Interrupted
		if errors.Is(err, context.Canceled) {
			message = "interrupted"
		}
	}
	for _, a := range args { // an argument may be in a message; its password must not
		for _, s := range secretSpans(a) { // with the signs around it, because it may be a word of the message, too
			after := min(s[1]+1, len(a))
			message = strings.ReplaceAll(message, a[s[0]-1:after], a[s[0]-1:s[0]]+"***"+a[s[1]:after])
		}
	}
	fmt.Fprintf(s.Err, "risso: %s\n", fault.Line(message, fleet.RemedyOf(err)))
	return code
}

// answerWriter remembers that what was asked for could not be written: a full disk must not look like success. Goroutines may write to it.
type answerWriter struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (a *answerWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.w.Write(p)
	if err != nil && a.err == nil {
		a.err = err
	}
	return n, err
}

// failed is the first error, unless the reader went away.
func (a *answerWriter) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil || errors.Is(a.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("standard output: %w", a.err)
}

func newRoot(s screen.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "risso",
		Short: "The remote-DBA team in one binary",
		Long: `Risso watches MySQL, MariaDB and Percona servers every second, keeps every
metric, and says in words what is going on.`,
		Example: `  risso serve --dsn 'risso:secret@tcp(db1:3306)/'     watch a server, page on http://127.0.0.1:8306
  risso top --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'   the same live, in a terminal
  risso sandbox up --topology replication               a primary and two replicas to try it on`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       release.Version(),
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.AddCommand(serve.New(s), watch.NewTop(s), alert.New(s), incident.New(s), events.NewEvents(s), events.NewEvent(s),
		explain.NewDigest(s), explain.New(s), explain.NewTrace(s), advise.New(s), index.New(s), size.New(s), mapsql.New(s),
		bench.New(s),
		backup.New(s), backup.NewVerify(s), backup.NewDrill(s), check.New(s), binlog.New(s), restore.New(s), checksum.New(s), alter.New(s), diff.New(s),
		topology.New(s), gtid.New(s), lag.New(s), appliers.New(s), semisync.New(s), galera.New(s), health.New(s), route.New(s), replica.New(s), group.New(s), shard.New(s), failover.NewSwitchover(s), failover.NewFailover(s), failover.NewReceipt(s),
		chaos.New(s),
		publish.New(s),
		sandbox.New(), accounts.New(s), serve.NewUser(s), serve.NewToken(s), serve.NewAudit(s), serve.NewConfig(s), doctor.NewGrants(s), doctor.New(s), newVersion(s), newManual(s),
		agent.New(s),
		controller.New(s),
		statefile.New(s),
		&cobra.Command{Use: "exit-codes", Short: "Exit codes of all commands", Long: fault.Help})
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	strict(root)
	return root
}
