package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

type grantsFlags struct {
	flags.Server
	jobs            []string
	account, schema string
	output          string
}

// JobNames are the jobs for which rights can be granted, as --for names them.
func JobNames() (names []string) {
	for _, j := range mysql.Jobs() {
		names = append(names, string(j))
	}
	return names
}

// NewGrants is risso grants.
func NewGrants(s screen.Streams) *cobra.Command {
	var f grantsFlags
	cmd := &cobra.Command{
		Use:   "grants [--for JOB,…] --dsn DSN",
		Short: "Print the GRANT statements that Risso needs for a job on a server",
		Long: `Prints the statements that give an account what Risso needs for the jobs of --for on this
server, and no more; they differ between MySQL, MariaDB and their versions. It changes nothing:
review them, then run them. risso doctor says what an account is missing.

Jobs: ` + strings.Join(JobNames(), ", ") + `.
physical is backup --physical, follow is binlog follow, mend is checksum --mend.

` + fault.Help,
		Example: `  risso grants --dsn 'root@unix(/run/mysqld/mysqld.sock)/'
  risso grants --for serve,backup,follow --dsn 'root@unix(/run/mysqld/mysqld.sock)/' --account "'risso'@'10.0.0.%'"
  risso grants --for bench --schema sbtest --dsn 'root@unix(/run/mysqld/mysqld.sock)/' | mysql`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGrants(cmd.Context(), s, f) },
	}
	f.Bind(cmd, "the server, as any account")
	fl := cmd.Flags()
	fl.StringSliceVar(&f.jobs, "for", []string{"serve"}, "jobs: "+strings.Join(JobNames(), ", "))
	fl.StringVar(&f.account, "account", "'risso'@'%'", "account to grant to, quoted as in SQL")
	fl.StringVar(&f.schema, "schema", "sbtest", "with --for bench: the schema to work in")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// readJobs reads the names of jobs.
func readJobs(names []string) (jobs []mysql.Job, err error) {
	for _, name := range names {
		if j := mysql.Job(name); slices.Contains(mysql.Jobs(), j) {
			jobs = append(jobs, j)
		} else {
			return nil, fault.Usagef("--for %s: use one of %s", name, strings.Join(JobNames(), ", "))
		}
	}
	if len(jobs) == 0 {
		return nil, fault.Usagef("--for names no job: use one of %s", strings.Join(JobNames(), ", "))
	}
	return jobs, nil
}

func runGrants(ctx context.Context, s screen.Streams, f grantsFlags) error {
	jobs, err := readJobs(f.jobs)
	if err != nil {
		return err
	}
	target, err := f.Target()
	if err != nil {
		return err
	}
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	statements := c.Server.Grants(f.account, f.schema, jobs...)
	if f.output == "json" {
		return render.JSON(s.Out, GrantsAnswer{c.Server.Version, f.account, jobs, statements})
	}
	fmt.Fprintf(s.Out, "-- for %s on %s; create the account first: CREATE USER %s IDENTIFIED BY '…'\n", strings.Join(f.jobs, ", "), c.Server.Version, f.account)
	for _, g := range statements {
		fmt.Fprintln(s.Out, g+";")
	}
	return nil
}
