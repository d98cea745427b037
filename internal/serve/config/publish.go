package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/avail/publish/names"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// Publish says who is told where the clients of groups go.
type Publish struct {
	MaxAge time.Duration   // of a view that is told; 0: the usual one
	NoHTTP bool            // nobody is answered over HTTP without a token
	DNS    *DNS            // nil: no questions over DNS are answered
	Consul *publish.Consul // nil: Consul is not told
	Hooks  []publish.Hook
}

// DNS says how questions over DNS are answered.
type DNS struct {
	Listen      string
	Zone        string
	Nameservers []string
}

// publishConfig is the block; docs/clients.md explains it.
type publishConfig struct {
	MaxAge string        `yaml:"max_age,omitempty"` // such as 5s
	HTTP   string        `yaml:"http,omitempty"`    // off
	DNS    *dnsConfig    `yaml:"dns,omitempty"`
	Consul *consulConfig `yaml:"consul,omitempty"`
	Hooks  []hookConfig  `yaml:"hooks,omitempty"`
}

type dnsConfig struct {
	Listen      string   `yaml:"listen"`
	Zone        string   `yaml:"zone"`
	Nameservers []string `yaml:"nameservers,omitempty"` // host names of the servers of the zone
}

type consulConfig struct {
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token_file,omitempty"`
	TokenEnv  string `yaml:"token_env,omitempty"`
	Prefix    string `yaml:"prefix,omitempty"`   // of keys
	Service   string `yaml:"service,omitempty"`  // what stands before a group's name in that of its service
	Services  string `yaml:"services,omitempty"` // off: only keys
}

type hookConfig struct {
	Name     string   `yaml:"name"`
	At       []string `yaml:"at"`
	Groups   []string `yaml:"groups,omitempty"`
	Run      []string `yaml:"run"`
	Timeout  string   `yaml:"timeout,omitempty"`
	Required *bool    `yaml:"required,omitempty"`
	Again    bool     `yaml:"again,omitempty"`
}

// onOff reads what is on unless it says off.
func onOff(name, text string) (off bool, err error) {
	switch text {
	case "", "on", "true":
		return false, nil
	case "off", "false":
		return true, nil
	}
	return false, fmt.Errorf("%s: %q: on or off", name, text)
}

// bounded reads a length of time within bounds; "" is the given one.
func bounded(name, text string, usual, least, most time.Duration) (time.Duration, error) {
	if text == "" {
		return usual, nil
	}
	d, err := digits.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%s: %q: write it as 10s, from %s to %s", name, text, digits.Duration(least), digits.Duration(most))
	}
	return d, nil
}

// check reads the block. Errors name the field.
func (c publishConfig) check() (p Publish, err error) {
	if p.MaxAge, err = bounded("max_age", c.MaxAge, 0, time.Second, time.Hour); err != nil {
		return p, err
	}
	if p.NoHTTP, err = onOff("http", c.HTTP); err != nil {
		return p, err
	}
	if c.DNS != nil {
		p.DNS = &DNS{c.DNS.Listen, c.DNS.Zone, c.DNS.Nameservers}
		if _, err := CheckListen(c.DNS.Listen); err != nil {
			return p, fmt.Errorf("dns: listen %q: write it as host:port", c.DNS.Listen)
		}
		if _, err := names.New(c.DNS.Zone, c.DNS.Nameservers, nil, 0); err != nil {
			return p, fmt.Errorf("dns: zone: %w", err)
		}
	}
	if c.Consul != nil {
		if p.Consul, err = c.Consul.check(); err != nil {
			return p, fmt.Errorf("consul: %w", err)
		}
	}
	p.Hooks, err = c.hooks()
	return p, err
}

// ReadHooks are the hooks of the config file, for commands that do what risso serve does else.
func (c File) ReadHooks() ([]publish.Hook, error) {
	list, err := c.Publish.hooks()
	if err != nil {
		return nil, fault.Usagef("publish of the config file: %w", err)
	}
	return list, nil
}

func (c publishConfig) hooks() (list []publish.Hook, err error) {
	for i, h := range c.Hooks {
		hook, err := h.check()
		if err != nil {
			return nil, fmt.Errorf("hook %d: %w", i+1, err)
		}
		if slices.ContainsFunc(list, func(o publish.Hook) bool { return o.Name == hook.Name }) {
			return nil, fmt.Errorf("hook %d: there are two of the name %q", i+1, hook.Name)
		}
		list = append(list, hook)
	}
	return list, nil
}

func (c consulConfig) check() (*publish.Consul, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("url: write it as http://127.0.0.1:8500; a token goes into token_file or token_env")
	}
	out := &publish.Consul{URL: c.URL, Prefix: strings.Trim(c.Prefix, "/"), Service: c.Service}
	if out.NoServices, err = onOff("services", c.Services); err != nil {
		return nil, err
	}
	switch {
	case c.TokenFile != "" && c.TokenEnv != "":
		return nil, errors.New("either token_file or token_env")
	case c.TokenFile != "":
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
		out.Token = strings.TrimSpace(string(text))
	case c.TokenEnv != "":
		if out.Token = os.Getenv(c.TokenEnv); out.Token == "" {
			return nil, fmt.Errorf("the environment has no %s", c.TokenEnv)
		}
	}
	return out, nil
}

func (c hookConfig) check() (h publish.Hook, err error) {
	h = publish.Hook{Name: c.Name, Groups: c.Groups, Command: c.Run, Again: c.Again}
	if err := checkHookName(c.Name); err != nil {
		return h, err
	}
	if len(c.Run) == 0 || c.Run[0] == "" {
		return h, errors.New("it needs run: [program, argument, …]")
	}
	if len(c.At) == 0 {
		return h, fmt.Errorf("it needs at: [%s, …]", publish.AfterFailover)
	}
	for _, at := range c.At {
		m := publish.Moment(at)
		if !slices.Contains(publish.Moments(), m) {
			return h, fmt.Errorf("at: there is no %q; there are %v", at, publish.Moments())
		}
		h.At = append(h.At, m)
		h.Required = h.Required || m == publish.BeforeFailover || m == publish.BeforeSwitchover || m == publish.Fence
	}
	if c.Required != nil {
		h.Required = *c.Required
	}
	h.Timeout, err = bounded("timeout", c.Timeout, publish.DefaultHookTimeout, 100*time.Millisecond, 10*time.Minute)
	return h, err
}

// checkHookName refuses a name that the journal's keys would not take.
func checkHookName(name string) error {
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return fmt.Errorf("name: %q: it needs one of up to 64 letters, digits and signs, without blanks and slashes", name)
	}
	return nil
}
