// Package config reads what to watch and how: flags, environment, the config file and the option file of the mysql
// clients.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/series/mapped"
)

// File is the file that --config names. Flags win over it.
type File struct {
	Listen     string         `yaml:"listen,omitempty"`
	Data       string         `yaml:"data,omitempty"`
	Retention  string         `yaml:"retention,omitempty"`  // such as 400d; empty keeps all
	Hosts      []string       `yaml:"hosts,omitempty"`      // names, besides local ones, under which the page may be reached
	EventsURL  string         `yaml:"events_url,omitempty"` // ClickHouse, instead of DuckDB in the data folder
	Redact     bool           `yaml:"redact,omitempty"`     // hide literals in samples and plans
	Statements string         `yaml:"statements,omitempty"` // where statements are read: auto, performance_schema, slow-log, off
	Limits     limitsConfig   `yaml:"limits,omitempty"`     // what questions over HTTP may cost
	Alerts     alertsConfig   `yaml:"alerts,omitempty"`     // what rings, and who is told
	Advice     adviceConfig   `yaml:"advice,omitempty"`     // how often servers are looked at for advice
	Topology   topologyConfig `yaml:"topology,omitempty"`   // how often it is looked at who replicates from whom
	Health     string         `yaml:"health,omitempty"`     // off: nobody is told without a token whether servers may have clients
	Failover   string         `yaml:"failover,omitempty"`   // auto: groups that are marked so are failed over when their primary is dead; off
	Members    string         `yaml:"members,omitempty"`    // off: members of groups are failed over, and not read each second
	Publish    publishConfig  `yaml:"publish,omitempty"`    // who is told where the clients of groups go
	Prometheus promConfig     `yaml:"prometheus,omitempty"` // which labels PromQL sees
	Servers    []Server       `yaml:"servers,omitempty"`
}

// Server is one server of the config file.
type Server struct {
	Name         string `yaml:"name,omitempty"`
	DSN          string `yaml:"dsn,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	PasswordEnv  string `yaml:"password_env,omitempty"`
	DefaultsFile string `yaml:"defaults_file,omitempty"`
	Statements   string `yaml:"statements,omitempty"` // as above, for this server
	Group        string `yaml:"group,omitempty"`      // by which alerts pick servers

	Labels map[string]string `yaml:"labels,omitempty"` // that PromQL sees, in addition to those of the block prometheus

	Protect *Protect `yaml:"protect,omitempty"` // how it is backed up and the like
}

// Named returns the server of that name, if there is one.
func (c File) Named(name string) []Server {
	for _, s := range c.Servers {
		if name != "" && s.Name == name {
			return []Server{s}
		}
	}
	return nil
}

// Read reads a config file; "" gives an empty one. Errors in it are wrong use: fault.Usage.
func Read(path string) (File, error) {
	var c File
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fault.Usagef("config file: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); errors.Is(err, io.EOF) {
		return c, nil // it is empty
	} else if err != nil {
		return c, fault.Usagef("config file %s: %s", path, yamlProblem(err, text))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return c, fault.Usagef("config file %s: there is content after a line of ---, which would not be read", path)
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
			if line := 1 + bytes.Count(text[:tab[0]], []byte("\n")); line >= near-1 && line <= near+1 { // elsewhere it may be in a text
				return fmt.Sprintf("line %d: it begins with a tab; YAML requires blanks", line)
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
			out = append(out, line+": "+wrongKind(rest, line, text))
		}
	}
	return strings.Join(out, "; ")
}

// yamlKey is the key that a line of YAML begins with, yamlInto the Go type that a value did not fit.
var (
	yamlKey  = pattern.Lazy(`^[\s-]*([A-Za-z_]+):`)
	yamlInto = pattern.Lazy(` into ([^ ]+)$`)
)

// wrongKind says which key has a value of the wrong kind, and of which kind it should be; not the value, which may be a password.
func wrongKind(problem, line string, text []byte) string {
	words := "a value of the wrong kind"
	n, _ := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "line ")) // 0: not known
	if lines := strings.Split(string(text), "\n"); n > 0 && n <= len(lines) {
		if m := yamlKey().FindStringSubmatch(lines[n-1]); m != nil {
			words = m[1] + ": " + words
		}
	}
	m := yamlInto().FindStringSubmatch(problem)
	if m == nil {
		return words
	}
	switch kind := m[1]; {
	case kind == "string":
		return words + "; it takes a text"
	case kind == "bool":
		return words + "; it takes true or false"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return words + "; it takes a whole number"
	case strings.HasPrefix(kind, "float"):
		return words + "; it takes a number"
	case strings.HasPrefix(kind, "[]"):
		return words + "; it takes a list"
	}
	return words + "; it takes keys with values"
}

// Watched is one server to watch: who it is to us, and how to reach it.
type Watched struct {
	Instance   fleet.Instance
	Target     mysql.Target
	Statements string            // where its statements are read; empty: as everywhere
	Labels     map[string]string // of its series in PromQL
	Protect    *Protection       // nil: it is not
	Joined     bool              // it is watched as a member of a group, and as long as it is one
}

// WatchedAs is the server that is watched under an instance's ID; false: there is none.
func WatchedAs(list []Watched, id string) (Watched, bool) {
	i := slices.IndexFunc(list, func(w Watched) bool { return w.Instance.ID == id })
	if i < 0 {
		return Watched{}, false
	}
	return list[i], true
}

// instanceOf makes the identity of a server from its name, or else from its address.
func instanceOf(name string, t mysql.Target) fleet.Instance {
	if name == "" {
		name = t.Address()
	}
	return fleet.Instance{ID: fleet.Slug(name), Name: name, Kind: fleet.KindServer, Address: t.Address()}
}

// Resolve finds the servers that flags, environment, config file and option file name, in this order; the
// first of them that names any decides.
func Resolve(dsns []string, defaultsFile string, c File) ([]Watched, error) {
	given := defaultsFile != ""
	if !given {
		defaultsFile = mysql.UserDefaultsFile()
	}
	defaults, err := mysql.ReadDefaults(defaultsFile)
	if err != nil {
		return nil, fault.Usagef("%w", err)
	}
	if len(dsns) == 0 && len(c.Servers) == 0 {
		dsns = strings.Fields(os.Getenv("RISSO_DSN"))
	}
	var list []Watched
	for _, dsn := range dsns {
		name, rest := splitName(dsn)
		t, err := mysql.ParseTarget(rest)
		if err != nil {
			return nil, fault.Usagef("--dsn: %w", err)
		}
		t = t.WithFallback(defaults)
		list = append(list, Watched{Instance: instanceOf(name, t), Target: t})
	}
	if len(dsns) == 0 {
		for i, s := range c.Servers {
			w, err := s.resolve(defaults)
			if err != nil {
				return nil, fault.Usagef("server %d of the config file: %w", i+1, err)
			}
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		if t, ok := defaults.Target(); ok {
			list = append(list, Watched{Instance: instanceOf("", t), Target: t})
		} else if given {
			return nil, namesNone(defaultsFile)
		}
	}
	return list, errors.Join(Unique(list), OnePlace(list))
}

// namesNone says why an option file that was named gives no server.
func namesNone(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fault.Usagef("--defaults-file: %w", err)
	}
	return fault.New(fault.Usage, "write it below a line [client], or give --dsn", fmt.Errorf("option file %s names no server: no host or socket in its group [client]", path))
}

// splitName takes a leading name= off a DSN: db1=user@tcp(host)/.
func splitName(dsn string) (name, rest string) {
	n, r, ok := strings.Cut(dsn, "=")
	if !ok || n == "" || strings.ContainsAny(n, ":@(/?") {
		return "", dsn
	}
	return n, r
}

func (s Server) resolve(defaults mysql.Defaults) (Watched, error) {
	if s.DefaultsFile != "" {
		d, err := mysql.ReadDefaults(s.DefaultsFile)
		if err != nil {
			return Watched{}, err
		}
		defaults = d
	}
	var t mysql.Target
	if s.DSN == "" {
		found, ok := defaults.Target()
		if !ok {
			return Watched{}, errors.New("it has no dsn")
		}
		t = found
	} else {
		parsed, err := mysql.ParseTarget(s.DSN)
		if err != nil {
			return Watched{}, err
		}
		t = parsed
	}
	switch {
	case s.PasswordFile != "":
		b, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return Watched{}, fmt.Errorf("password file: %w", err)
		}
		t = t.WithPassword(strings.TrimRight(string(b), "\r\n"))
	case s.PasswordEnv != "":
		p, ok := os.LookupEnv(s.PasswordEnv)
		if !ok {
			return Watched{}, fmt.Errorf("the environment has no %s", s.PasswordEnv)
		}
		t = t.WithPassword(p)
	}
	w := Watched{Instance: instanceOf(s.Name, t), Target: t.WithFallback(defaults), Statements: s.Statements, Labels: s.Labels}
	if err := mapped.Check(s.Labels); err != nil {
		return Watched{}, fmt.Errorf("labels: %w", err)
	}
	w.Instance.Group = s.Group
	if s.Protect != nil {
		p, err := s.Protect.Check()
		if err != nil {
			return Watched{}, fmt.Errorf("protect: %w", err)
		}
		w.Protect = p
	}
	return w, checkMode(s.Statements)
}

// Unique holds that no two servers are called the same.
func Unique(list []Watched) error {
	seen := map[string]bool{}
	for _, w := range list {
		if seen[w.Instance.ID] {
			return fault.Usagef("two servers are called %q: give them names, as in --dsn 'db1=user@tcp(host)/'", w.Instance.ID)
		}
		seen[w.Instance.ID] = true
	}
	return nil
}
