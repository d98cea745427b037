package binlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/store/blob"
)

type followFlags struct {
	flags.Server
	flags.Encrypt
	to, dir, keep, output string
	semiSync, once, plain bool
}

func newBinlogFollow(s screen.Streams) *cobra.Command {
	var f followFlags
	cmd := &cobra.Command{
		Use:   "follow --dsn DSN --to PLACE",
		Short: "Mirror binary logs as they are written",
		Long: `Mirrors a server's binary logs as they are written, by the replication protocol, until Ctrl-C.
If the server goes away it waits; if the server cannot be reached at the start it fails.
The bytes are exactly the server's. Nothing already mirrored is ever rewritten: after an
interruption it continues where it stopped, and a failover or RESET begins a new series. A log that
the server has finished is verified, compressed and stored in the place, with an index. Mirrored
logs are signed by this account, even while they grow; anything others put there is not rolled
forward. The account needs REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR).

With --semi-sync the server relies on the mirror: a transaction is acknowledged once it is on disk
here (rpl_semi_sync_source_enabled or rpl_semi_sync_master_enabled must be on).

In an encrypted repository the logs are encrypted, even while they are being written. This host
keeps the key of the unfinished log until the log is stored, so that it can continue after a
kill; stored logs can be read only with an identity.

` + fault.Help,
		Example: `  risso binlog follow --dsn 'risso:secret@tcp(db1:3306)/' --to /backups/db1
  risso binlog follow --dsn 'repl@tcp(db1)/' --to 's3://backups/db1?region=eu-central-1' --dir /var/lib/risso/db1
  risso binlog follow --dsn 'repl@tcp(db1)/' --to /backups/db1 --encrypt-to age1… --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBinlogFollow(cmd.Context(), s, f) },
	}
	f.Server.Bind(cmd, "the server to mirror")
	f.Encrypt.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", "", "where to: "+blob.Forms)
	fl.StringVar(&f.dir, "dir", "", "folder for the log that is being written (default: the place if it is a folder, otherwise one under ~/.local/state/risso)")
	fl.BoolVar(&f.semiSync, "semi-sync", false, "acknowledge transactions when they are on disk here")
	fl.BoolVar(&f.once, "once", false, "stop once everything the server has now is mirrored")
	fl.BoolVar(&f.plain, "plain", false, "leave finished logs uncompressed in --dir")
	fl.StringVar(&f.keep, "keep", "", "remove finished logs whose last event is older than this: 14d, 36h (default: never)")
	flags.OutputVar(fl, &f.output, "text or json: one line per event; json also has the progress every second", "text", "json")
	return cmd
}

// place opens the place, and makes a repository there if it should be encrypted.
func (f followFlags) place(ctx context.Context) (mirror.Place, func(), error) {
	if len(f.To) == 0 {
		return places.OpenLogs(ctx, f.to, f.Encrypt.Identity)
	}
	keys, err := f.Keys()
	if err != nil {
		return mirror.Place{}, nil, err
	}
	_, closeRepo, err := places.Make(ctx, f.to, keys)
	if err != nil {
		return mirror.Place{}, nil, err
	}
	closeRepo()
	return places.OpenLogs(ctx, f.to, f.Encrypt.Identity)
}

func runBinlogFollow(ctx context.Context, s screen.Streams, f followFlags) error {
	if f.to == "" {
		return fault.New(fault.Usage, "give --to "+blob.Forms, errors.New("no place for the mirror"))
	}
	o := mirror.Options{SemiSync: f.semiSync, Once: f.once, Plain: f.plain, Dir: places.MirrorDir(f.dir, f.to)}
	var err error
	if o.Keep, err = digits.ParseAge(f.keep); err != nil {
		return fault.Usagef("--keep: %w", err)
	}
	if o.Target, err = f.Target(); err != nil {
		return err
	}
	var closeIt func()
	if o.Place, closeIt, err = f.place(ctx); err != nil {
		return err
	}
	defer closeIt()
	if err := places.SignLogs(&o.Place, f.to); err != nil {
		return err
	}
	p := screen.NewProgress(s.Err)
	defer p.End()
	o.Note = func(n mirror.Note) {
		if f.output == "json" {
			_ = render.JSONLine(s.Out, n) // the reader may go away: the mirror stays
			return
		}
		p.Clear()
		if n.Warning {
			fmt.Fprintf(s.Err, "%s WARNING: %s\n", screen.Clock(n.Time), n.Text)
			return
		}
		fmt.Fprintf(s.Out, "%s %s\n", screen.Clock(n.Time), n.Text)
	}
	var told time.Time
	o.Status = func(st mirror.Status) {
		if f.output == "json" {
			if time.Since(told) >= time.Second {
				told = time.Now()
				_ = render.JSONLine(s.Out, st)
			}
			return
		}
		p.Show(func(float64) string {
			lag := "everything is here"
			if st.Lag > 0 {
				lag = digits.Seconds(st.Lag.Seconds()) + " behind"
			}
			return fmt.Sprintf("%s:%d, %s received, %s/s, %s", st.File, st.Pos, digits.Bytes(st.Received), digits.Bytes(st.Rate), lag)
		})
	}
	err = mirror.Follow(ctx, o)
	p.End()
	if errors.Is(err, mirror.ErrInUse) {
		return fault.New(fault.InUse, "", err)
	}
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		if c, cerr := mysql.Connect(ctx, o.Target, nil); cerr == nil { // else the remedy does without the account
			c.Close()
			return fault.New(fault.Failed, c.Server.FollowGrants(), err)
		}
	}
	return flags.LogFailure(err)
}
