package tell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/alert"
)

// Command runs a program for each message, which it finds as JSON on its standard input. The program must end with 0; its environment
// is PATH, HOME, LANG and TZ of Risso's, and RISSO_TITLE, the message in one line.
type Command struct {
	Run []string `yaml:"run"` // the program and its arguments
}

func (c *Command) check() error {
	if len(c.Run) == 0 || c.Run[0] == "" {
		return errors.New("command: it needs run: [program, argument, …]")
	}
	return nil
}

func (c *Command) open() Receiver { return &command{*c} }

type command struct{ Command }

// Send runs the program.
func (c *command) Send(ctx context.Context, m *alert.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return &refusal{error: fmt.Errorf("command: %w", err), permanent: true}
	}
	var said bytes.Buffer
	run := exec.CommandContext(ctx, c.Run[0], c.Run[1:]...)
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(body), &said, &said
	run.Env = []string{"RISSO_TITLE=" + m.Title(200)}
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			run.Env = append(run.Env, name+"="+v)
		}
	}
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) } // with all that it started
	run.WaitDelay = time.Second
	if err := run.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%s: %w: %s", c.Run[0], err, oneline.Cut(oneline.Of(said.String()), 200))
	}
	return nil
}
