package cli

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// sysbenchOption is one of sysbench's options as Risso takes it.
type sysbenchOption struct {
	to      string                           // Risso's flag
	value   func(string) (string, error)     // its value; nil: the same
	several func(value string) []string      // or several flags
	address func(c *driver.Config, v string) // or a part of the address
	refused string                           // or why it is not taken
}

// sysbenchOptions are those that are called otherwise, or take other values. Source: sysbench 1.0.20, --help of the program and
// of its oltp scripts.
func sysbenchOptions() map[string]sysbenchOption {
	rename := func(to string) sysbenchOption { return sysbenchOption{to: to} }
	drawn := func(name string) sysbenchOption {
		return sysbenchOption{to: "distribution-param", value: func(v string) (string, error) { return name + "=" + v, nil }}
	}
	address := func(set func(c *driver.Config, v string)) sysbenchOption { return sysbenchOption{address: set} }
	refuse := func(why string) sysbenchOption { return sysbenchOption{refused: why} }
	return map[string]sysbenchOption{
		"mysql-host":           address(func(c *driver.Config, v string) { c.Addr = net.JoinHostPort(v, portOf(c.Addr)) }),
		"mysql-port":           address(func(c *driver.Config, v string) { c.Addr = net.JoinHostPort(hostOf(c.Addr), v) }),
		"mysql-socket":         address(func(c *driver.Config, v string) { c.Net, c.Addr = "unix", v }),
		"mysql-user":           address(func(c *driver.Config, v string) { c.User = v }),
		"mysql-password":       address(func(c *driver.Config, v string) { c.Passwd = v }),
		"mysql-db":             address(func(c *driver.Config, v string) { c.DBName = v }),
		"mysql-storage-engine": rename("engine"),
		"mysql-table-options":  rename("table-options"),
		"mysql-ssl":            refuse("write ?tls=… at the end of --dsn"),
		"mysql-ssl-cipher":     refuse("write ?tls=… at the end of --dsn"),
		"mysql-compression":    refuse("Risso does not compress"),
		"mysql-ignore-errors":  refuse("every error that a server gives is counted, and the run continues"),
		"mysql-debug":          refuse("there is none"),
		"mysql-dry-run":        refuse("there is none"),
		"db-driver":            {value: func(v string) (string, error) { return "", oneOf(v, "mysql") }},
		"db-ps-mode":           {to: "unprepared", value: named(map[string]string{"auto": "false", "disable": "true"})},
		"rand-type":            rename("distribution"),
		"rand-seed":            rename("seed"),
		"rand-spec-iter":       drawn("spec-iter"),
		"rand-spec-pct":        drawn("spec-pct"),
		"rand-spec-res":        drawn("spec-res"),
		"rand-pareto-h":        drawn("pareto-h"),
		"rand-zipfian-exp":     drawn("zipfian-exp"),
		"number-of-ranges":     rename("random-ranges"),
		"skip-trx":             {to: "skip-trx", value: switched(false)},
		"secondary":            {to: "secondary", value: switched(false)},
		"range-selects":        {to: "no-range-selects", value: switched(true)},
		"auto-inc":             {to: "no-auto-inc", value: switched(true)},
		"create-secondary":     {to: "no-index", value: switched(true)},
		"time":                 {to: "for", value: inSeconds},
		"warmup-time":          {to: "warmup", value: inSeconds},
		"report-interval":      {to: "report-interval", value: inSeconds},
		"events":               {value: func(v string) (string, error) { return "", oneOf(v, "0") }},
		"percentile":           {several: func(v string) []string { return map[bool][]string{false: {"--percentile=" + v}}[v == "0"] }},
		"histogram":            refuse("--output json holds it"),
		"forced-shutdown":      refuse("transactions under way get 5 s at the end"),
		"thread-init-timeout":  refuse("Ctrl-C ends it"),
		"thread-stack-size":    refuse("there is none"),
		"report-checkpoints":   refuse("--output json holds every second"),
		"validate":             refuse("risso bench check looks at the tables of tpcc and ontime"),
		"debug":                refuse("there is none"),
		"verbosity":            refuse("there is none"),
		"config-file":          refuse("name the workload"),
		"luajit-cmd":           refuse("there is no Lua"),
		"reconnect":            refuse("a lost session is opened again, others stay"),
		"pgsql-host":           refuse("write --dsn postgres://user:password@host:port/database"),
		"pgsql-port":           refuse("write --dsn postgres://user:password@host:port/database"),
		"pgsql-user":           refuse("write --dsn postgres://user:password@host:port/database"),
		"pgsql-password":       refuse("write --dsn postgres://user:password@host:port/database"),
		"pgsql-db":             refuse("write --dsn postgres://user:password@host:port/database"),
	}
}

func portOf(addr string) string {
	if _, port, err := net.SplitHostPort(addr); err == nil {
		return port
	}
	return "3306"
}

func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return "localhost"
}

// inSeconds adds to a plain number the unit that sysbench means.
func inSeconds(v string) (string, error) {
	if _, err := strconv.ParseFloat(v, 64); err == nil {
		return v + "s", nil
	}
	return v, nil
}

func oneOf(v string, known ...string) error {
	if slices.Contains(known, v) {
		return nil
	}
	return fmt.Errorf("only %s is accepted", strings.Join(known, ", "))
}

func named(values map[string]string) func(string) (string, error) {
	return func(v string) (string, error) {
		to, ok := values[v]
		if !ok {
			return "", fmt.Errorf("%q is not accepted", v)
		}
		return to, nil
	}
}

// switched reads on and off; turned: Risso's flag says the opposite.
func switched(turned bool) func(string) (string, error) {
	return func(v string) (string, error) {
		on := slices.Contains([]string{"on", "1", "true", "yes"}, v)
		if !on && !slices.Contains([]string{"off", "0", "false", "no"}, v) {
			return "", fmt.Errorf("%q: on or off", v)
		}
		return strconv.FormatBool(on != turned), nil
	}
}

// fromSysbench turns the options of a benchmark's command line that sysbench has and Risso calls otherwise into Risso's: people
// have their lines. What has no meaning here is refused by its name.
func fromSysbench(args []string) ([]string, error) {
	if len(args) < 3 || args[0] != "bench" || !slices.Contains([]string{"run", "prepare", "cleanup", "check", "compare", "scale"}, args[1]) {
		return args, nil
	}
	own, _, err := newRoot(screen.Streams{}).Find(args[:2])
	if err != nil {
		return args, nil // the parser says what is wrong
	}
	options := sysbenchOptions()
	server := driver.NewConfig()
	server.User, server.Net, server.Addr, server.DBName = "sbtest", "tcp", "localhost:3306", "sbtest"
	var out []string
	addressed, dsn := "", false
	for _, arg := range args {
		name, value, valued := strings.Cut(arg, "=")
		flag, ok := strings.CutPrefix(name, "--")
		if !ok {
			out = append(out, arg)
			continue
		}
		flag = strings.ReplaceAll(flag, "_", "-")
		dsn = dsn || strings.HasPrefix(flag, "dsn")
		arg = "--" + flag + map[bool]string{true: "=" + value}[valued]
		o, known := options[flag]
		switch {
		case !known || !valued && own.Flags().Lookup(flag) != nil: // with a blank before its value it is Risso's
			out = append(out, arg)
		case o.refused != "":
			return nil, fault.Usagef("--%s of sysbench is not accepted: %s", flag, o.refused)
		case !valued:
			return nil, fault.Usagef("--%s of sysbench: write it as --%s=value", flag, flag)
		case o.address != nil:
			o.address(server, value)
			addressed = flag
		case o.several != nil:
			out = append(out, o.several(value)...)
		default:
			if o.value != nil {
				to, err := o.value(value)
				if err != nil {
					return nil, fault.Usagef("--%s of sysbench: %w", flag, err)
				}
				value = to
			}
			if o.to != "" {
				out = append(out, "--"+o.to+"="+value)
			}
		}
	}
	if addressed == "" {
		return out, nil
	}
	if dsn {
		return nil, fault.Usagef("--%s besides --dsn: name the server once", addressed)
	}
	return append(out, "--dsn="+server.FormatDSN()), nil
}
