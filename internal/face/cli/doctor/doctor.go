// Package doctor holds the commands that check whether servers and this machine are ready for Risso: doctor, grants.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
)

// Levels of what the doctor finds.
const (
	findOK   = "ok"
	findNote = "note" // something less is possible here
	FindBad  = "bad"  // something that was asked for does not work
)

// Finding is one thing that the doctor looked at.
type Finding struct {
	Level string `json:"level"` // ok, note or bad
	fleet.Trouble
	Text string `json:"text"` // what was seen of it
}

func finding(level, what, text, remedy string) Finding {
	return Finding{level, fleet.Trouble{What: what, Remedy: remedy}, text}
}

type doctorFlags struct {
	config.Sources
	jobs                         []string
	data, listen, schema, output string
}

// New is risso doctor.
func New(s screen.Streams) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what is missing: on this machine, in the data folder, on servers, in privileges",
		Long: `Checks what Risso needs and says what is missing, with the statement or command that fixes it:
this build, the data folder and its free space, the address to listen on, what the kernel reveals
about the host, the programs for physical backups and drills, and for each server whether it can
be reached and which privileges are missing for the jobs of --for. It changes nothing.

It exits with 1 if something required does not work; things that merely limit Risso are
reported as notes.

` + fault.Help,
		Example: `  risso doctor
  risso doctor --dsn 'risso:secret@tcp(db1:3306)/' --for serve,backup,follow
  risso doctor --config /etc/risso.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), s, f) },
	}
	flags.BindSources(&f.Sources, cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&f.jobs, "for", []string{"serve"}, "jobs to check privileges for: "+strings.Join(JobNames(), ", "))
	fl.StringVar(&f.schema, "schema", "sbtest", "with --for bench: the schema to work in")
	fl.StringVar(&f.data, "data", "", "data folder of risso serve (default "+home.Data()+")")
	fl.StringVar(&f.listen, "listen", config.DefaultListen, "address that risso serve will listen on")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

func runDoctor(ctx context.Context, s screen.Streams, f doctorFlags) error {
	jobs, err := readJobs(f.jobs)
	if err != nil {
		return err
	}
	set, err := config.Flags{Listen: f.listen, Data: f.data, Sources: f.Sources}.Settings()
	if err != nil && !errors.Is(err, config.ErrNoServer) {
		return err
	}
	list := []Finding{ofBuild(), ofFolder(cmp.Or(set.Data, f.data, home.Data())), ofAddress(ctx, cmp.Or(set.Listen, f.listen))}
	list = append(list, ofHost()...)
	list = append(list, ofPrograms(ctx)...)
	if len(set.Servers) == 0 && !f.HostOnly {
		list = append(list, finding(findNote, "servers", "none was named", "risso doctor --dsn 'user:password@tcp(host:3306)/'"))
	}
	for _, w := range set.Servers {
		list = append(list, ofServer(ctx, w, f.schema, jobs)...)
	}
	bad := 0
	for _, x := range list {
		if x.Level == FindBad {
			bad++
		}
	}
	if f.output == "json" {
		err = render.JSON(s.Out, DoctorAnswer{bad, list})
	} else {
		err = writeFindings(s.Out, list)
	}
	if err == nil && bad > 0 {
		return &fault.Told{Code: fault.Failed}
	}
	return err
}

func writeFindings(w io.Writer, list []Finding) error {
	return screen.Tabulate(w, func(w io.Writer) {
		for _, x := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\n", x.Level, x.What, x.Text)
			if x.Remedy != "" {
				fmt.Fprintf(w, "\t\t→ %s\n", x.Remedy)
			}
		}
	})
}

func ofBuild() Finding {
	b := release.This()
	if b.Events {
		return finding(findOK, "this build", "risso "+b.Version+", "+b.Platform, "")
	}
	return finding(findNote, "this build", "built without a C compiler: what statements cost is not kept in the data folder", "build it with gcc and g++ installed, or keep statements in ClickHouse: --events-url")
}

// ofFolder looks at the folder of the data, or at the one in which it would be made.
func ofFolder(dir string) Finding {
	const what = "data folder"
	at := dir
	for {
		fi, err := os.Stat(at)
		if err == nil && !fi.IsDir() {
			return finding(FindBad, what, at+" is not a folder", "choose another with --data")
		}
		if err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return finding(FindBad, what, at+" cannot be written", "choose another with --data, or run risso as its owner")
	}
	if owner, ok := home.OtherOwner(at); ok {
		return finding(findNote, what, at+" belongs to "+owner+", which could not use files created by root", "run risso as that account")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return finding(findNote, what, fmt.Sprintf("%s: its room cannot be seen: %v", dir, err), "")
	}
	free := float64(st.Bavail) * float64(st.Bsize)
	f := finding(findOK, what, fmt.Sprintf("%s, %s free", dir, digits.Bytes(free)), "")
	if free < leastRoom {
		f.Level, f.Remedy = findNote, "a server takes about 5 GB a year (docs/operate.md); choose another with --data, or limit it with --retention"
	}
	return f
}

// leastRoom is the free space below which the doctor warns: some months of one server.
const leastRoom = 2 << 30

func ofAddress(ctx context.Context, address string) Finding {
	ln, err := serve.Listen(ctx, address)
	if err != nil {
		return finding(findNote, "address", err.Error(), "if that is another risso serve, all is well; otherwise choose another with --listen")
	}
	ln.Close()
	return finding(findOK, "address", address+" is free", "")
}

// ofHost looks at what the kernel tells.
func ofHost() (list []Finding) {
	h, err := host.New(host.Options{})
	if err != nil {
		return []Finding{finding(findNote, "this host", fmt.Sprintf("it cannot be watched: %v", err), "risso serve --no-host")}
	}
	h.Close()
	list = append(list, finding(findOK, "this host", h.Identity().OS, ""))
	if _, err := os.ReadFile("/proc/pressure/io"); err != nil {
		list = append(list, finding(findNote, "pressure", "the kernel does not show what waits for processors, memory and disks", "boot with psi=1 (Linux 4.20 and later)"))
	}
	return list
}

// ofPrograms looks for what other jobs than watching need on this machine.
func ofPrograms(ctx context.Context) (list []Finding) {
	found, _, err := sandbox.Servers(ctx)
	var names []string
	for _, s := range found {
		names = append(names, s.Name)
	}
	if err != nil || len(names) == 0 {
		list = append(list, finding(findNote, "drills, sandboxes", "no server is installed here to restore into", "install mariadb-server or mysql-server-core; it need not run"))
	} else {
		list = append(list, finding(findOK, "drills, sandboxes", strings.Join(names, ", "), ""))
	}
	var tools []string
	for _, t := range []string{"mariadb-backup", "xtrabackup"} {
		if _, err := exec.LookPath(t); err == nil {
			tools = append(tools, t)
		}
	}
	if len(tools) == 0 {
		return append(list, finding(findNote, "physical backups", "neither mariadb-backup nor xtrabackup is here; MySQL 8.0.17 and later have CLONE", "install mariadb-backup, on the server's machine"))
	}
	return append(list, finding(findOK, "physical backups", strings.Join(tools, ", "), ""))
}

// ofServer asks a server, and whether the account may do the jobs.
func ofServer(ctx context.Context, w config.Watched, schema string, jobs []mysql.Job) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	name := w.Instance.Name
	c, err := mysql.Connect(ctx, w.Target, nil)
	if err != nil {
		return []Finding{finding(FindBad, name, err.Error(), fleet.RemedyOf(err))}
	}
	defer c.Close()
	list := []Finding{finding(findOK, name, fmt.Sprintf("%s %s, as %s", c.Server.Flavour, c.Server.Version, c.Server.QuotedAccount()), "")}
	rights, err := c.Rights(ctx)
	if err != nil {
		return append(list, finding(findNote, name, err.Error(), ""))
	}
	for _, j := range jobs {
		lack := c.Server.Missing(rights, schema, j)
		if len(lack) == 0 {
			list = append(list, finding(findOK, name, "the account may "+string(j), ""))
			continue
		}
		list = append(list, finding(FindBad, name, "the account is missing privileges for "+string(j), strings.Join(lack, "; ")))
	}
	if most, err := c.UserLimit(ctx); err == nil && most > 0 && most < mysql.ServeConnections && slices.Contains(jobs, mysql.JobServe) {
		list = append(list, finding(findNote, name, fmt.Sprintf("the account may have %s at once: the numbers are read all the same, but of statements, sessions and the slow log not all are followed", digits.Counted(most, "connection")),
			mysql.MoreConnections(c.Server.QuotedAccount())))
	}
	if filter, err := c.LogFilter(ctx); err == nil && filter.String() != "" && slices.ContainsFunc(jobs, func(j mysql.Job) bool { return j == mysql.JobBackup || j == mysql.JobFollow }) {
		list = append(list, finding(FindBad, name, filter.String(), "remove the option and restart the server, or rely only on the backups for these schemas"))
	}
	list = append(list, ofMode(name, c.Server))
	if !c.Server.PerformanceSchema {
		list = append(list, finding(findNote, name, "performance_schema is off: no latencies, no traces; what sessions wait for is read from the process list, statements from the slow log if risso serve runs on its machine",
			"performance_schema = ON in the option file, and a restart"))
	}
	return list
}

// ofMode tells the sql_mode that sessions have, and what is read otherwise than it says.
func ofMode(name string, s mysql.Server) Finding {
	f := finding(findOK, name, "sql_mode is empty", "")
	if s.SQLMode != "" {
		f.Text = "sql_mode " + strings.ReplaceAll(s.SQLMode, ",", ", ")
	}
	if left := s.LeftOutModes(); len(left) > 0 {
		f.Text += "; Risso sends its own statements without " + strings.Join(left, ", ") + ", and explains those of others with them"
	}
	var otherwise []string
	if s.Dialect().ANSIQuotes {
		otherwise = append(otherwise, `"…" for a string, not a name`)
	}
	if s.Dialect().NoBackslash {
		otherwise = append(otherwise, `a backslash in a string for an escape`)
	}
	if len(otherwise) > 0 {
		f.Level = findNote
		f.Text += "; where statements are put into classes (risso digest, Queries) it takes " + strings.Join(otherwise, ", and ")
	}
	return f
}
