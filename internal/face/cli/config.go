package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// config is the file that --config names. Flags win over it.
type config struct {
	Listen     string         `yaml:"listen,omitempty"`
	Data       string         `yaml:"data,omitempty"`
	Retention  string         `yaml:"retention,omitempty"`  // such as 400d; empty keeps all
	Hosts      []string       `yaml:"hosts,omitempty"`      // names, besides local ones, under which the page may be reached
	EventsURL  string         `yaml:"events_url,omitempty"` // ClickHouse, instead of DuckDB in the data folder
	Redact     bool           `yaml:"redact,omitempty"`     // hide literals in samples and plans
	Statements string         `yaml:"statements,omitempty"` // where statements are read: auto, performance_schema, slow-log, off
	Limits     limitsConfig   `yaml:"limits,omitempty"`     // what questions over HTTP may cost
	Servers    []serverConfig `yaml:"servers,omitempty"`
}

// serverConfig is one server of the config file.
type serverConfig struct {
	Name         string `yaml:"name,omitempty"`
	DSN          string `yaml:"dsn,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	PasswordEnv  string `yaml:"password_env,omitempty"`
	DefaultsFile string `yaml:"defaults_file,omitempty"`
	Statements   string `yaml:"statements,omitempty"` // as above, for this server

	Protect *protectConfig `yaml:"protect,omitempty"` // how it is backed up and the like
}

// named gives the server of that name, if there is one.
func (c config) named(name string) []serverConfig {
	for _, s := range c.Servers {
		if name != "" && s.Name == name {
			return []serverConfig{s}
		}
	}
	return nil
}

func readConfig(path string) (config, error) {
	var c config
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, usageError("config file: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); errors.Is(err, io.EOF) {
		return c, nil // it is empty
	} else if err != nil {
		return c, usageError("config file %s: %s", path, yamlProblem(err, text))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return c, usageError("config file %s: there is something behind a line of ---: only what stands before it would be read", path)
	}
	return c, nil
}

// yamlLine is where an error of the YAML reader says that it is, yamlTab a line that begins with a tab.
var (
	yamlLine = pattern.Lazy(`^yaml: line (\d+): `)
	yamlTab  = pattern.Lazy(`(?m)^ *\t`)
)

// yamlProblem keeps the places of a YAML error and leaves out the values that it quotes: one may be a password.
func yamlProblem(err error, text []byte) string {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		m := yamlLine().FindStringSubmatch(err.Error())
		if m == nil {
			return "it is not YAML"
		}
		near, _ := strconv.Atoi(m[1]) // digits
		for _, tab := range yamlTab().FindAllIndex(text, -1) {
			if line := 1 + bytes.Count(text[:tab[0]], []byte("\n")); line >= near-1 && line <= near+1 { // elsewhere it may stand in a text
				return fmt.Sprintf("line %d: it begins with a tab; YAML wants blanks", line)
			}
		}
		return "near line " + m[1] + ": it is not YAML"
	}
	var out []string
	for _, e := range te.Errors {
		line, rest, _ := strings.Cut(e, ": ")
		if strings.HasPrefix(rest, "field ") {
			out = append(out, line+": unknown "+strings.Split(rest, " not found")[0])
		} else if _, before, again := strings.Cut(rest, " already defined at line "); again {
			out = append(out, line+": a key that stands at line "+before+" already")
		} else {
			out = append(out, line+": a value of the wrong kind")
		}
	}
	return strings.Join(out, "; ")
}

// watched is one server to watch: who it is to us, and how to reach it.
type watched struct {
	instance   fleet.Instance
	target     mysql.Target
	statements string      // where its statements are read; empty: as everywhere
	protect    *protection // nil: it is not
}

// instanceOf makes the identity of a server from its name, or else from its address.
func instanceOf(name string, t mysql.Target) fleet.Instance {
	if name == "" {
		name = t.Address()
	}
	return fleet.Instance{ID: fleet.Slug(name), Name: name, Kind: fleet.KindServer, Address: t.Address()}
}

// resolve finds the servers that flags, environment, config file and option file name, in this order; the
// first of them that names any decides.
func resolve(dsns []string, defaultsFile string, c config) ([]watched, error) {
	if defaultsFile == "" {
		defaultsFile = mysql.UserDefaultsFile()
	}
	defaults, err := mysql.ReadDefaults(defaultsFile)
	if err != nil {
		return nil, usageError("%w", err)
	}
	if len(dsns) == 0 && len(c.Servers) == 0 {
		dsns = strings.Fields(os.Getenv("RISSO_DSN"))
	}
	var list []watched
	for _, dsn := range dsns {
		name, rest := splitName(dsn)
		t, err := mysql.ParseTarget(rest)
		if err != nil {
			return nil, usageError("--dsn: %w", err)
		}
		t = t.WithFallback(defaults)
		list = append(list, watched{instance: instanceOf(name, t), target: t})
	}
	if len(dsns) == 0 {
		for i, s := range c.Servers {
			w, err := s.resolve(defaults)
			if err != nil {
				return nil, usageError("server %d of the config file: %w", i+1, err)
			}
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		if t, ok := defaults.Target(); ok {
			list = append(list, watched{instance: instanceOf("", t), target: t})
		}
	}
	return list, errors.Join(unique(list), onePlace(list))
}

// splitName takes a leading name= off a DSN: db1=user@tcp(host)/.
func splitName(dsn string) (name, rest string) {
	n, r, ok := strings.Cut(dsn, "=")
	if !ok || n == "" || strings.ContainsAny(n, ":@(/?") {
		return "", dsn
	}
	return n, r
}

func (s serverConfig) resolve(defaults mysql.Defaults) (watched, error) {
	if s.DefaultsFile != "" {
		d, err := mysql.ReadDefaults(s.DefaultsFile)
		if err != nil {
			return watched{}, err
		}
		defaults = d
	}
	var t mysql.Target
	if s.DSN == "" {
		found, ok := defaults.Target()
		if !ok {
			return watched{}, errors.New("it has no dsn")
		}
		t = found
	} else {
		parsed, err := mysql.ParseTarget(s.DSN)
		if err != nil {
			return watched{}, err
		}
		t = parsed
	}
	switch {
	case s.PasswordFile != "":
		b, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return watched{}, fmt.Errorf("password file: %w", err)
		}
		t = t.WithPassword(strings.TrimRight(string(b), "\r\n"))
	case s.PasswordEnv != "":
		p, ok := os.LookupEnv(s.PasswordEnv)
		if !ok {
			return watched{}, fmt.Errorf("the environment has no %s", s.PasswordEnv)
		}
		t = t.WithPassword(p)
	}
	w := watched{instance: instanceOf(s.Name, t), target: t.WithFallback(defaults), statements: s.Statements}
	if s.Protect != nil {
		p, err := s.Protect.check()
		if err != nil {
			return watched{}, fmt.Errorf("protect: %w", err)
		}
		w.protect = p
	}
	return w, checkMode(s.Statements)
}

func unique(list []watched) error {
	seen := map[string]bool{}
	for _, w := range list {
		if seen[w.instance.ID] {
			return usageError("two servers are called %q: give them names, as in --dsn 'db1=user@tcp(host)/'", w.instance.ID)
		}
		seen[w.instance.ID] = true
	}
	return nil
}

// defaultDataDir is where Risso keeps its data when nothing else is said: $XDG_STATE_HOME/risso/data or ~/.local/state/risso/data.
func defaultDataDir() string {
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "risso", "data")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "risso-data"
	}
	return filepath.Join(home, ".local", "state", "risso", "data")
}
