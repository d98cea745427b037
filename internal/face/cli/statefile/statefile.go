// Package statefile holds the command risso state: backups of Risso's own state.
package statefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/group/keep"
	shards "github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
)

// New is risso state and all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Back up and restore Risso's own state: groups, tokens, silences, events, findings, the catalogue",
		Long: `The state is one file in the data folder. It has the hashes of tokens and the accounts by which the
servers of groups are reached: its backups are secrets, readable by their owner only, and can be
encrypted. Metrics, samples of statements and incidents are in other files, which no backup of the state
has.`,
		Example: `  risso state backup /backup/risso-state
  risso state backup /backup/risso-state --encrypt-to age1…
  risso state restore /backup/risso-state`,
	}
	cmd.AddCommand(newBackup(s), newRestore(s))
	return cmd
}

// Answer is a backup of the state.
type Answer struct {
	File string `json:"file"`
	state.BackupHead
	Moved []string `json:"moved,omitempty"` // where what was there before a restore is now
	Maps  []string `json:"maps,omitempty"`  // of shards: restored ones, which are to be confirmed
}

type command struct {
	screen.Streams
	data, output string
}

func (c *command) bind(cmd *cobra.Command, s screen.Streams) {
	c.Streams = s
	cmd.Flags().StringVar(&c.data, "data", home.Data(), "data folder")
	flags.OutputVar(cmd.Flags(), &c.output, "", "text", "json")
}

func (c *command) path() string { return filepath.Join(c.data, "state.db") }

type backup struct {
	command
	to []string
}

func newBackup(s screen.Streams) *cobra.Command {
	c := &backup{}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state as it is at one moment to a new file",
		Long: `risso serve may run, and goes on. The file has a checksum, and is there only if it is whole. Where
controllers share their state, the backup of any of them has all of it.

` + fault.Help,
		Example: `  risso state backup /backup/risso-state
  risso state backup /backup/risso-state --encrypt-to age1…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.bind(cmd, s)
	cmd.Flags().StringArrayVar(&c.to, "encrypt-to", nil, "encrypt to this age recipient (age1…), or to the recipients in a file; may be repeated")
	return cmd
}

func (c *backup) run(ctx context.Context, file string) error {
	var seal func(io.Writer) (io.WriteCloser, error)
	if len(c.to) > 0 {
		names, err := repo.ReadRecipients(c.to...)
		if err != nil {
			return fault.Usagef("--encrypt-to: %w", err)
		}
		list, err := age.ParseRecipients(strings.NewReader(strings.Join(names, "\n")))
		if err != nil {
			return fault.Usagef("--encrypt-to: %w", err)
		}
		seal = func(w io.Writer) (io.WriteCloser, error) { return age.Encrypt(w, list...) }
	}
	h, err := state.WriteBackup(ctx, c.path(), file, release.Version(), seal)
	switch {
	case errors.Is(err, os.ErrExist):
		return fault.New(fault.Failed, "name a file that is not there yet", err)
	case err != nil:
		return serve.FolderFailure(c.data, err)
	}
	if c.output == "json" {
		return render.JSON(c.Out, Answer{File: file, BackupHead: h})
	}
	secret := "it has the accounts of groups and the hashes of tokens: keep it secret"
	if h.Encrypted {
		secret = "it is encrypted"
	}
	_, err = fmt.Fprintf(c.Out, "%s, %s: %s\n", file, digits.Bytes(h.Bytes), secret)
	return err
}

type restore struct {
	command
	identity string
}

func newRestore(s screen.Streams) *cobra.Command {
	c := &restore{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the state what it was when a backup was written",
		Long: `risso serve must not run. The backup is checked first; what is there is moved aside, and stays. A state
that was shared is unshared then: to share it again, make a new cluster of it by "risso controller init",
and let the other controllers leave and join that. Rows of shards may have moved since: maps of shards are
told to clients, and rows moved, only after "risso shard confirm".

` + fault.Help,
		Example: `  risso state restore /backup/risso-state
  risso state restore /backup/risso-state --identity key.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.bind(cmd, s)
	cmd.Flags().StringVar(&c.identity, "identity", "", "file with the age identity that opens an encrypted backup")
	return cmd
}

func (c *restore) run(ctx context.Context, file string) error {
	h, err := state.ReadBackup(file)
	if err != nil {
		return err
	}
	var unseal func(io.Reader) (io.Reader, error)
	if h.Encrypted {
		if c.identity == "" {
			return fault.Usagef("%s is encrypted: give --identity FILE", file)
		}
		list, err := repo.ReadIdentities(c.identity)
		if err != nil {
			return fault.Usagef("--identity: %w", err)
		}
		unseal = func(r io.Reader) (io.Reader, error) { return age.Decrypt(r, list...) }
	}
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return serve.FolderFailure(c.data, fmt.Errorf("data folder: %w", err))
	}
	home.WarnOfOwner(c.Err, c.data)
	release, err := series.Hold(filepath.Join(c.data, "series"))
	if errors.Is(err, series.ErrLocked) {
		return fault.New(fault.InUse, "stop it first, and start it again then", fmt.Errorf("a risso serve uses %s", c.data))
	}
	if err != nil {
		return serve.FolderFailure(c.data, err)
	}
	moved, maps, err := c.replace(ctx, file, unseal)
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	if c.output == "json" {
		return render.JSON(c.Out, Answer{file, h, moved, maps})
	}
	text := "the state is that of " + screen.Clock(h.Made)
	if len(moved) > 0 {
		text += "; what was there is now in " + strings.Join(moved, ", ")
	}
	for _, name := range maps {
		text += "\nmap " + name + " of shards may be an older one: clients are not told it, and no rows move, until it is confirmed (risso shard confirm " + name + ")"
	}
	_, err = fmt.Fprintln(c.Out, text)
	return err
}

// resume lets the epochs of groups and of maps go on beyond those that clients may know. It returns the maps, which are to be confirmed.
func resume(ctx context.Context, path string) (maps []string, err error) {
	st, err := state.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	now, who := time.Now(), home.Person()
	if err = (&keep.Room{Docs: st, Who: who}).Resume(ctx, now); err == nil {
		maps, err = (&shards.Room{Docs: st, Who: who}).Restored(ctx, now)
	}
	return maps, errors.Join(err, st.Close())
}

// replace restores beside what is there, and then moves that aside.
func (c *restore) replace(ctx context.Context, file string, unseal func(io.Reader) (io.Reader, error)) (moved, maps []string, err error) {
	fresh := c.path() + ".restored"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that was killed
		return nil, nil, serve.FolderFailure(c.data, err)
	}
	if err := state.RestoreBackup(ctx, file, fresh, unseal); err != nil {
		return nil, nil, serve.FolderFailure(c.data, err)
	}
	if maps, err = resume(ctx, fresh); err != nil {
		return nil, nil, errors.Join(err, os.Remove(fresh))
	}
	before := ".before-" + time.Now().UTC().Format("20060102T150405Z")
	for _, path := range []string{filepath.Join(c.data, agree.FolderName), c.path() + "-wal", c.path() + "-shm", c.path()} {
		to := path + before
		if suffix, ok := strings.CutPrefix(path, c.path()); ok && suffix != "" { // a WAL is found by its file's name
			to = c.path() + before + suffix
		}
		switch err := os.Rename(path, to); {
		case err == nil && !strings.HasSuffix(path, "-wal") && !strings.HasSuffix(path, "-shm"):
			moved = append(moved, to)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return moved, maps, serve.FolderFailure(c.data, fmt.Errorf("move what is there aside: %w", err))
		}
	}
	if err := os.Rename(fresh, c.path()); err != nil {
		return moved, maps, serve.FolderFailure(c.data, err)
	}
	return moved, maps, home.SyncDir(c.data)
}
