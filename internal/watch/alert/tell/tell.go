// Package tell brings messages about alerts to those who are to hear of them: one receiver is one channel to one place.
package tell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/watch/alert"
)

// Config is one receiver of the config file. It has exactly one channel.
type Config struct {
	Name    string   `yaml:"name"`
	Webhook *Webhook `yaml:"webhook,omitempty"`
	Command *Command `yaml:"command,omitempty"`

	Email        *Email        `yaml:"email,omitempty"`
	Slack        *Slack        `yaml:"slack,omitempty"`
	Teams        *Teams        `yaml:"teams,omitempty"`
	PagerDuty    *PagerDuty    `yaml:"pagerduty,omitempty"`
	Opsgenie     *Opsgenie     `yaml:"opsgenie,omitempty"`
	Telegram     *Telegram     `yaml:"telegram,omitempty"`
	Alertmanager *Alertmanager `yaml:"alertmanager,omitempty"`
	NSCA         *NSCA         `yaml:"nsca,omitempty"`
}

// Receiver brings a message to one place. What an error says holds no secret; IsPermanent says whether trying again would help, and
// WaitOf for how long the receiver asked to wait.
type Receiver interface {
	Send(ctx context.Context, m *alert.Message) error
}

// channel is how one kind of receiver is configured.
type channel interface {
	check() error
	open() Receiver
}

func (c Config) channels() (list []channel) {
	if c.Webhook != nil {
		list = append(list, c.Webhook)
	}
	if c.Command != nil {
		list = append(list, c.Command)
	}
	if c.Email != nil {
		list = append(list, c.Email)
	}
	if c.Slack != nil {
		list = append(list, c.Slack)
	}
	if c.Teams != nil {
		list = append(list, c.Teams)
	}
	if c.PagerDuty != nil {
		list = append(list, c.PagerDuty)
	}
	if c.Opsgenie != nil {
		list = append(list, c.Opsgenie)
	}
	if c.Telegram != nil {
		list = append(list, c.Telegram)
	}
	if c.Alertmanager != nil {
		list = append(list, c.Alertmanager)
	}
	if c.NSCA != nil {
		list = append(list, c.NSCA)
	}
	return list
}

// Check says what is wrong with a receiver's configuration. It does not use the network.
func (c Config) Check() error {
	list := c.channels()
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case strings.ContainsAny(c.Name, "/ \t\n"):
		return fmt.Errorf("name %q: it must have no blanks and no slash", c.Name)
	case len(list) != 1:
		return fmt.Errorf("%s: it needs exactly one channel: webhook, email, slack, teams, pagerduty, opsgenie, telegram, alertmanager, nsca or command", c.Name)
	}
	if err := list[0].check(); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// Open makes the receiver that is configured. It does not use the network.
func Open(c Config) (Receiver, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c.channels()[0].open(), nil
}

// refusal is a failure about which more is known.
type refusal struct {
	error
	permanent bool
	partly    bool
	wait      time.Duration
}

func (r *refusal) Unwrap() error { return r.error }

// IsPermanent says that sending the same message again would fail again.
func IsPermanent(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.permanent
}

// IsPartly says that the message was delivered, but not to all who should have it: sending it again would double it.
func IsPartly(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.partly
}

// WaitOf is how long a receiver asked to be left alone; 0: it did not.
func WaitOf(err error) time.Duration {
	var r *refusal
	if errors.As(err, &r) {
		return r.wait
	}
	return 0
}

// secret is a value that stands in the config file, in a file of its own, or in the environment. It is read anew each time, so that it can
// be changed while Risso runs.
func secret(plain, file, env string) (string, error) {
	switch {
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	case env != "":
		v, ok := os.LookupEnv(env)
		if !ok {
			return "", fmt.Errorf("read the secret: the environment has no %s", env)
		}
		return v, nil
	}
	return plain, nil
}
