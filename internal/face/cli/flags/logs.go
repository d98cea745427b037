package flags

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/store/blob"
)

// Logs say which binary logs are read: files, a mirror, or a live server's.
type Logs struct {
	Server
	From, Dir, Series, Identity string
	LogTrust                    places.LogTrust // whose mirrored logs are read; without a policy: all
}

// Bind adds the flags to a command that reads logs.
func (f *Logs) Bind(cmd *cobra.Command) {
	f.Server.Bind(cmd, "the server whose logs are read")
	fl := cmd.Flags()
	fl.StringVar(&f.From, "from", "", "a place with mirrored logs: "+blob.Forms)
	f.BindDir(fl, "dir")
	fl.StringVar(&f.Identity, "identity", "", "with --from: file with the age identity that opens an encrypted repository")
	f.bindSeries(fl, "with --from: ")
}

// BindMirror adds the flags to a command that reads logs of a server that it knows, from a mirror or, as arguments, files.
func (f *Logs) BindMirror(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.From, "from", "", "a place with mirrored logs: "+blob.Forms)
	f.BindDir(fl, "dir")
	fl.StringVar(&f.Identity, "identity", "", "with --from: file with the age identity that opens an encrypted repository")
	f.bindSeries(fl, "with --from: ")
}

// BindBeside adds the flags to a command whose --from and --dsn are of something else.
func (f *Logs) BindBeside(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.From, "logs", "", "where the mirrored binary logs are (default: the place of --from)")
	fl.StringVar(&f.Dsn, "logs-dsn", "", "read the binary logs from this server instead; a DSN as for --into")
	f.BindDir(fl, "logs-dir")
	f.bindSeries(fl, "")
	cmd.MarkFlagsMutuallyExclusive("logs", "logs-dsn")
}

// BindDir adds, under a name, the flag for the folder of the log that is not finished.
func (f *Logs) BindDir(fl *pflag.FlagSet, name string) {
	fl.StringVar(&f.Dir, name, "", "where the mirror writes its unfinished log (default: the place if it is a folder)")
}

func (f *Logs) bindSeries(fl *pflag.FlagSet, when string) {
	fl.StringVar(&f.Series, "series", "", when+"which series of mirrored logs, by the name that risso binlog list shows or a prefix of it")
}

// LogSource is where logs are read from. Place and Series are of mirrored logs.
type LogSource struct {
	Files  []binlog.File
	Place  mirror.Place
	Series mirror.Series
	Live   bool // the logs are those of the server
	Close  func()
}

// Source finds the logs.
func (f Logs) Source(ctx context.Context, args []string) (src LogSource, err error) {
	src.Close = func() {}
	switch {
	case len(args) > 0 && f.From != "":
		return src, fault.Usagef("files and --from contradict each other")
	case len(args) > 0:
		if err := onceEach(args); err != nil {
			return src, err
		}
		src.Files, err = binlog.FromPaths(args)
		return src, err
	case f.From != "":
		place, list, closePlace, err := f.Mirrored(ctx)
		if err != nil {
			return src, err
		}
		series, err := f.pick(list)
		if err != nil {
			closePlace()
			return src, err
		}
		return LogSource{Files: series.Files(f.LogTrust.Of(place), f.LocalDir()), Place: place, Series: series, Close: closePlace}, nil
	case f.Dsn == "":
		return src, fault.New(fault.Usage, "name files, --from a place with mirrored logs, or --dsn of a live server", errors.New("no binary logs to read"))
	}
	t, err := f.Target()
	if err != nil {
		return src, err
	}
	src.Live = true
	src.Files, err = binlog.FromServer(ctx, t)
	return src, LogFailure(err)
}

// onceEach refuses a file that is named twice, by whatever path: all in it would count twice.
func onceEach(paths []string) error {
	var seen []os.FileInfo
	for i, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		if j := slices.IndexFunc(seen, func(s os.FileInfo) bool { return os.SameFile(s, st) }); j >= 0 {
			return fault.Usagef("%s and %s are the same file: name it once", paths[j], paths[i])
		}
		seen = append(seen, st)
	}
	return nil
}

// Mirrored opens the place with mirrored logs, and lists them. The caller closes it.
func (f Logs) Mirrored(ctx context.Context) (place mirror.Place, list []mirror.Series, closeIt func(), err error) {
	if place, closeIt, err = places.OpenLogs(ctx, f.From, f.Identity); err != nil {
		return place, nil, nil, err
	}
	if list, err = mirror.List(ctx, place, f.LocalDir()); err != nil {
		closeIt()
	}
	return place, list, closeIt, err
}

// pick finds the series that is meant.
func (f Logs) pick(list []mirror.Series) (mirror.Series, error) {
	var fit []mirror.Series
	var keys []string
	for _, s := range list {
		keys = append(keys, s.Key)
		if s.Key == f.Series {
			return s, nil
		}
		if strings.HasPrefix(s.Key, f.Series) {
			fit = append(fit, s)
		}
	}
	switch {
	case len(list) == 0:
		return mirror.Series{}, fmt.Errorf("no mirrored logs in %s", places.Words(f.From))
	case len(fit) == 1:
		return fit[0], nil
	}
	return mirror.Series{}, fault.New(fault.Usage, "say which one with --series", fmt.Errorf("%d series of logs fit: %s", len(fit), strings.Join(keys, ", ")))
}

// LocalDir is where the log is that is not finished.
func (f Logs) LocalDir() string { return places.MirrorDir(f.Dir, f.From) }

// LogFailure returns an error of binary logs, or of the server that has them, with its remedy.
func LogFailure(err error) error {
	switch {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		return fault.New(fault.Failed, "the account needs REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR)", err)
	case errors.Is(err, binlog.ErrNoUndo):
		return fault.New(fault.Failed, "bring the table back as it was before: risso restore --from PLACE --table SCHEMA.TABLE --before GTID", err)
	case errors.Is(err, binlogevent.ErrNotBinlog):
		return fault.New(fault.Failed, "name the files as in SHOW BINARY LOGS, without the .index file and the .idx files of MariaDB", err)
	}
	return err
}
