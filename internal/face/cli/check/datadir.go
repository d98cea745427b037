package check

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/datadir"
)

func newCheckDatadir(s screen.Streams) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "datadir DIR",
		Short: "Check that no server uses a data directory, before one is started on it",
		Long: `Says whether a server works on a data directory: by the locks on its files (ibdata1,
aria_log_control, undo and redo logs) and by who has them open for writing, never by pid files,
sockets or names of processes. A copy of a directory is free although it has the pid file of a
server that runs; a directory behind a symbolic link is in use. A server in another container or
PID namespace is recognized by its lock, and that its process cannot be seen is said. In a layer of a
container (overlay), and on NFS and other file systems of several machines, that nobody is found
proves nothing, which is said.

Exit codes: 0 OK, nobody uses it; 2 CRITICAL, it is in use; 3 UNKNOWN, that cannot be seen, or wrong
use. Run it as the user of the server, or as root: files that may not be read may hide a server.`,
		Example: `  risso check datadir /var/lib/mysql
  risso check datadir /var/lib/mysql -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return failed(s, "DATADIR", fault.Usagef("name one directory: risso check datadir DIR"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runCheckDatadir(s, args[0], output) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(s, "DATADIR", err) })
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func runCheckDatadir(s screen.Streams, dir, output string) error {
	l := datadir.At(dir)
	code := map[datadir.State]int{datadir.Free: OK, datadir.InUse: Critical, datadir.Unknown: Unknown}[l.State]
	if output == "json" {
		if err := render.JSON(s.Out, l); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Out, "DATADIR %s - %s\n", checkWords[code], plain(l.Words, mostLine))
		for _, n := range l.Notes {
			fmt.Fprintln(s.Out, plain(n, mostLine))
		}
	}
	if code == OK {
		return nil
	}
	return &fault.Told{Code: code}
}
