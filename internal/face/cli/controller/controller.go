// Package controller holds the command risso controller: several risso serve that share their state, of which one acts.
package controller

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
)

// command is what all below risso controller have.
type command struct {
	screen.Streams
	data, output string
	call         func() string // the command, by which actions are known
}

// New is risso controller and all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Let several risso serve share their state, so that none is a single point of failure",
		Long: `One risso serve needs none of this. Three that share their state survive the loss of one: groups and
the journals of failovers, tokens, silences, thresholds, decisions, the inventory and the catalogue of
backups are on all of them, and the one that leads acts: it fails over, runs jobs and sends messages.
A change counts when more than half of them have it. What each one sees of servers stays with it.

The first is made by "controller init", the others by "controller join" with the file that
"controller invite" writes. Commands that change shared state, such as "risso token create", need the
risso serve of their data folder to run then. They work on any controller.`,
		Example: `  risso controller init --name c1 --address 10.0.0.1:8307     # risso serve is stopped; start it then
  risso controller invite c2.invitation                       # on c1
  risso controller join c2.invitation --name c2 --address 10.0.0.2:8307
  risso controller list`,
	}
	cmd.AddCommand(newInit(s), newInvite(s), newJoin(s), newList(s), newLead(s), newRemove(s), newLeave(s))
	return cmd
}

// bind adds the flags that all have.
func (c *command) bind(cmd *cobra.Command, s screen.Streams) *cobra.Command {
	c.Streams, c.call = s, cmd.CommandPath
	cmd.Flags().StringVar(&c.data, "data", home.Data(), "data folder")
	flags.OutputVar(cmd.Flags(), &c.output, "", "text", "json")
	return cmd
}

func (c *command) stateFile() string { return filepath.Join(c.data, "state.db") }

// stopped does something while no risso serve uses the data folder.
func (c *command) stopped(do func() error) error {
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
	return errors.Join(do(), release())
}

// ask asks the risso serve of the data folder.
func (c *command) ask(ctx context.Context, path string, in, out any) error {
	if !agree.Exists(c.data) {
		return fault.New(fault.Failed, "risso controller init makes the first one, risso controller join another", fmt.Errorf("the state in %s is not shared", c.data))
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask risso serve: %w", err)
	}
	text, err := state.DialDoor(filepath.Join(c.data, state.Door)).Ask(ctx, http.MethodPost, path, body)
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if errors.Is(err, state.ErrShut) {
		return fault.New(fault.Failed, "start it", fmt.Errorf("no risso serve runs on %s", c.data))
	}
	return err
}

// did writes down what was done to a controller, or failed, and who gave the command. It returns err, or else why it could not be written down.
func (c *command) did(ctx context.Context, name, what string, err error) error {
	st, opened := state.Open(ctx, c.stateFile())
	if opened != nil {
		if err == nil {
			err = fmt.Errorf("it was done, and could not be written down: %w", serve.FolderFailure(c.data, opened))
		}
		return err
	}
	defer st.Close()
	return flags.Noted(ctx, st, c.call(), "controller "+name, what, err)
}

// done tells what was done.
func (c *command) done(a Answer, text string) error {
	if c.output == "json" {
		return render.JSON(c.Out, a)
	}
	_, err := fmt.Fprintln(c.Out, text)
	return err
}

// Answer is a controller that was made, invited, handed the lead, removed or taken out.
type Answer struct {
	Cluster string `json:"cluster"`           // of the controllers that share their state
	Name    string `json:"name"`              // of the controller
	Address string `json:"address,omitempty"` // at which the others reach it
	File    string `json:"file,omitempty"`    // that was written, or to which the folder was moved
}

// who says who a controller is to be.
type who struct {
	name, address, listen, url string
}

func (w *who) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&w.name, "name", "", "name of this controller (default: the host's name)")
	fl.StringVar(&w.address, "address", "", "host:port at which the other controllers reach this one")
	fl.StringVar(&w.listen, "listen", "", "host:port at which to listen for them (default: --address)")
	fl.StringVar(&w.url, "url", "", "of this controller's page, for users of the others (default: as risso serve listens)")
}

// settings are who the controller is to be.
func (w *who) settings(heartbeat time.Duration) (agree.Settings, error) {
	s := agree.Settings{Name: w.name, Address: w.address, Listen: w.listen, URL: w.url, Heartbeat: int(heartbeat.Milliseconds())}
	if s.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return s, fault.Usagef("--name: %w", err)
		}
		s.Name, _, _ = strings.Cut(host, ".")
	}
	if err := s.Check(); err != nil {
		return s, fault.Usagef("--%w", err)
	}
	return s, nil
}

// alreadyOne refuses to make a controller again.
func (c *command) alreadyOne() error {
	f, there, err := agree.OpenFolder(c.data)
	if err != nil || !there {
		return err
	}
	return fault.New(fault.Failed, "risso controller leave undoes it", fmt.Errorf("the risso serve of %s is controller %s already", c.data, f.Name))
}

type initial struct {
	command
	who
	heartbeat time.Duration
}

func newInit(s screen.Streams) *cobra.Command {
	c := &initial{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the risso serve of this data folder the first of several controllers",
		Long: `Makes keys for the controllers and marks the state as shared. What is in the state is what the others
get. risso serve must not run; started again, it is the only controller, and acts as before.

--heartbeat is how long the one that leads may be silent before the others elect another one; all
controllers use that of the first. Longer ones suit networks with long delays.

` + fault.Help,
		Example: "  risso controller init --name c1 --address 10.0.0.1:8307",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.command.bind(cmd, s)
	c.who.bind(cmd)
	flags.DurationVar(cmd.Flags(), &c.heartbeat, "heartbeat", agree.DefaultHeartbeat, "how long the leader may be silent")
	return cmd
}

func (c *initial) run(ctx context.Context) error {
	settings, err := c.settings(c.heartbeat)
	if err != nil {
		return err
	}
	settings.Cluster = strings.ToLower(rand.Text()[:12])
	if err := c.alreadyOne(); err != nil {
		return err
	}
	return c.stopped(func() error {
		f, err := agree.MakeFolder(c.data, settings)
		if err == nil {
			err = agree.Found(ctx, c.stateFile(), f)
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(f.Path), c.unshare(ctx))
		}
		if err := c.did(ctx, settings.Name, "the making of the first controller, "+settings.Name, nil); err != nil {
			return err
		}
		return c.done(Answer{settings.Cluster, settings.Name, settings.Address, ""}, fmt.Sprintf("controller %s is made; start risso serve, then invite others: risso controller invite FILE", settings.Name))
	})
}

// unshare makes the state this data folder's own again.
func (c *command) unshare(ctx context.Context) error {
	st, err := state.Open(ctx, c.stateFile())
	if err != nil {
		return serve.FolderFailure(c.data, err)
	}
	return errors.Join(st.EndSharing(ctx), st.Close())
}

type leave struct{ command }

func newLeave(s screen.Streams) *cobra.Command {
	c := &leave{}
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Make the state of this data folder unshared again",
		Long: `The state stays as it is here, and belongs to this risso serve alone; the controller's folder with its
keys is moved aside. risso serve must not run. Remove this controller from the others as well, by
"risso controller remove" on one of them. If more than half of the controllers are lost for good, this
is how one that is left begins anew: leave, then init, and the others join.

` + fault.Help,
		Example: "  risso controller leave",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	return c.bind(cmd, s)
}

func (c *leave) run(ctx context.Context) error {
	return c.stopped(func() error {
		if _, err := os.Stat(c.stateFile()); err != nil {
			return serve.FolderFailure(c.data, fmt.Errorf("the state: %w", err))
		}
		f, there, err := agree.OpenFolder(c.data)
		if err != nil {
			return err
		}
		if err := c.unshare(ctx); err != nil {
			return err
		}
		moved := ""
		if there {
			moved = f.Path + ".left-" + time.Now().UTC().Format("20060102T150405Z")
			if err := os.Rename(f.Path, moved); err != nil {
				return fmt.Errorf("move the controller's folder aside: %w", err)
			}
		}
		if err := c.did(ctx, f.Name, strings.TrimSpace("the end of sharing the state, by controller "+f.Name), nil); err != nil {
			return err
		}
		return c.done(Answer{f.Cluster, f.Name, f.Address, moved}, "the state belongs to this risso serve alone")
	})
}
