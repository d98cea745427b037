package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// TestWrongUse: wrong use ends with 2, says what was meant, and leads to the help of the right command.
func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, say string }{
		{"nosuch", `risso has no command "nosuch" (risso --help)`},
		{"serv", "did you mean serve"},
		{"help nosuch", `risso has no command "nosuch"`},
		{"help backup prun", "did you mean prune?; see risso backup --help"},
		{"backup lst", "did you mean list?; see risso backup --help"},
		{"binlog serch", "did you mean search?"},
		{"sandbox dwn", "did you mean down?"},
		{"completion bashh", "did you mean bash?"},
		{"backup --thread 3", "did you mean --threads?; see risso backup --help"},
		{"backup --keep-last 3", "--keep-last belongs to risso backup prune"},
		{"digest --outptu json", "did you mean --output?"},
		{"top -o xml", "text, json (risso top --help)"},
		{"health --dsn root@tcp(127.0.0.1:1)/ --ask=", "--ask: write a question"},
		{"health --dsn root@tcp(127.0.0.1:1)/ --ask /replica?maxlag=5", `no option "maxlag"`},
		{"health --dsn root@tcp(127.0.0.1:1)/ --listen=", "write it as host:port"},
		{"health --dsn root@tcp(127.0.0.1:1)/ --listen 127.0.0.1:", "write it as host:port"},
		{"health --dsn root@tcp(127.0.0.1:1)/ --listen 127.0.0.1:99999", "write it as host:port"},
		{"health --dsn root@tcp(127.0.0.1:1)/ -p 99999", "write it as host:port"},
		{"route --group g", "--listen says where clients come"},
		{"route --listen :0", "--group says whose servers"},
		{"route --listen 3306 --group g", "write it as host:port"},
		{"route --listen :0,role=x --group g", `role "x": primary or replica`},
		{"route --listen :0,weight=1 --group g", `no option "weight"`},
		{"route --listen :0,max-lag=5 --group g", "max-lag: "},
		{"route --listen :0 --max-lag 5s --group g", "max-lag is for the role replica"},
		{"route --listen :0 --fallback none --group g", `fallback "none": primary, hold or refuse`},
		{"route --listen :0 --proxy-protocol v3 --group g", `proxy-protocol "v3": off, v1 or v2`},
		{"route --listen :0 --accept-proxy here --group g", "write it as 10.0.0.0/24"},
		{"route --listen :0 --url ftp://x --group g", "--url: write it as http://host:8306"},
		{"route status --status 8307", "write it as host:port"},
		{"digest --for 5", "write it as 90s, 1h30m, 7d, 2w or 1y"},
		{"backup --dsn root@tcp(127.0.0.1:1)/ --dry-run --max-rate NaN", `--max-rate "NaN"`},
		{"backup --dsn root@tcp(127.0.0.1:1)/ --dry-run --max-rate -1", `--max-rate "-1"`},
		{"backup --dsn root@tcp(127.0.0.1:1)/ --dry-run --max-threads-running -1", "must not be negative"},
		{"backup --physical --dsn root@tcp(127.0.0.1:1)/ --dry-run --replica db2", "--replica is for --max-lag"},
		{"backup --physical --dsn root@tcp(127.0.0.1:1)/ --dry-run --max-lag 1s --replica root@tcp(db2", "not a usable DSN"},
		{"backup --physical --dsn root@tcp(127.0.0.1:1)/ --dry-run --compress none", "--compress does not work with --physical"},
		{"backup --physical --dsn root@tcp(127.0.0.1:1)/ --dry-run --partial", "--partial does not work with --physical"},
		{"backup --physical --dsn root@tcp(127.0.0.1:1)/ --dry-run --accept-smaller", "--accept-smaller does not work with --physical"},
		{"backup --physical --dsn root@tcp(127.0.0.1:1)/ --dry-run --max-rate MB", `--max-rate "MB"`},
		{"explain -q", "unknown shorthand flag"},
		{"token create", "risso token create --help"},
		{"explain --file a --dsn b", "risso explain --help"},
		{"man", "no folder"},
	} {
		var out, said bytes.Buffer
		code := Main(t.Context(), strings.Fields(c.args), screen.Streams{Out: &out, Err: &said})
		if code != fault.Usage || out.Len() > 0 || !strings.Contains(said.String(), c.say) || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("risso %s: code %d, %q, %q; it should tell of %q; want code fault.Usage, out.Len() at most 0, %q in it, strings.Count(said.String(), \"\\n\") 1",
				c.args, code, out.String(), said.String(), c.say, c.say)
		}
	}
	for _, args := range []string{"help", "help backup prune", "help exit-codes", "bench", "backup prune --help", "completion fish", "version", "exit-codes", ""} {
		var out, said bytes.Buffer
		if code := Main(t.Context(), strings.Fields(args), screen.Streams{Out: &out, Err: &said}); code != fault.OK || out.Len() == 0 || said.Len() > 0 {
			t.Errorf("risso %s: code %d, %d bytes, %q; want code fault.OK, out.Len() not 0, said.Len() at most 0", args, code, out.Len(), said.String())
		}
	}
}

// TestDigestAsksNamedServer: without --dsn a server comes from RISSO_DSN or an option file if --for or the like says that one is meant, and
// flags that need a log are wrong then; else digest wants a log.
func TestDigestAsksNamedServer(t *testing.T) {
	t.Setenv("RISSO_DSN", "root@tcp(127.0.0.1:1)/")
	for _, c := range []struct {
		args, say string
		code      int
	}{
		{"digest --for 1s", "127.0.0.1:1: refuses connections", fault.Failed},
		{"digest --config " + os.DevNull, "127.0.0.1:1: refuses connections", fault.Failed},
		{"digest --for 1s --follow", "need single events", fault.Usage},
		{"digest", "no log to read", fault.Usage},
		{"digest --for 1s " + os.DevNull + "/no", "not a directory", fault.Failed},
	} {
		var out, said bytes.Buffer
		if code := Main(t.Context(), strings.Fields(c.args), screen.Streams{Out: &out, Err: &said}); code != c.code || !strings.Contains(said.String(), c.say) {
			t.Errorf("risso %s: code %d, want %d; %q, want %q in it", c.args, code, c.code, said.String(), c.say)
		}
	}
}

// TestOptionFileNamesNone: an option file that was named and leads to no server is reported with what is wrong in it.
func TestOptionFileNamesNone(t *testing.T) {
	t.Setenv("RISSO_DSN", "")
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, say string }{
		"port.cnf":  {"[client]\nhost=127.0.0.1\nport=abc\n", "port.cnf, line 3: port=abc is no port number"},
		"none.cnf":  {"[mysqld]\nsocket=/run/a.sock\n", "none.cnf names no server: no host or socket in its group [client]"},
		"gone.cnf":  {"", "gone.cnf: no such file"},
		"login.cnf": {"[client]\nuser=a\n", "login.cnf names no server"},
	} {
		path := filepath.Join(dir, name)
		if c.text != "" {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out, said bytes.Buffer
		if code := Main(t.Context(), []string{"doctor", "--defaults-file", path}, screen.Streams{Out: &out, Err: &said}); code != fault.Usage || !strings.Contains(said.String(), c.say) {
			t.Errorf("risso doctor --defaults-file %s: code %d, %q; want %d and %q", name, code, said.String(), fault.Usage, c.say)
		}
	}
}

// TestErrorsHideArguments: a DSN in the wrong place must not bring its password into a log.
func TestErrorsHideArguments(t *testing.T) {
	for _, args := range [][]string{
		{"backup", "root:s3cret@tcp(db1:3306)/"}, {"root:s3cret@tcp(db1:3306)/"}, {"help", "root:s3cret@tcp(db1)/"},
		{"digest", "--for", "root:s3cret@tcp(db1)/"}, {"verify", "root:s3cret@tcp(db1)/"}, {"digest", "root:s3cret@tcp(db1)/"},
		{"top", "--output=root:s3cret@tcp(db1)/"}, {"sandbox", "down", "root:s3cret@tcp(db1)/"}, {"bench", "run", "root:s3cret@tcp(db1)/"},
	} {
		var out, said bytes.Buffer
		if code := Main(t.Context(), args, screen.Streams{Out: &out, Err: &said}); code == fault.OK || strings.Contains(out.String()+said.String(), "s3cret") {
			t.Errorf("risso %s: code %d, %q; want code not fault.OK, no \"s3cret\" in out.String() + said.String()",
				strings.Join(args, " "), code, said.String())
		}
	}
}

// every calls f for each command below cmd, and cmd.
func every(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		every(c, f)
	}
}

// TestFlagsAgree: a flag is the same thing in every command, and the usual ones are everywhere.
func TestFlagsAgree(t *testing.T) {
	root := newRoot(screen.Streams{})
	// A list is the same as one where several make sense.
	same := func(a, b string) bool {
		one := func(s string) string {
			return map[string]string{"stringArray": "string", "stringSlice": "string", "intSlice": "int"}[s]
		}
		return a == b || one(a) == b || one(b) == a
	}
	differ := []string{
		"all",    // lists more, or takes all sandboxes
		"limit",  // digest also takes a share of the load
		"warmup", // bench run also takes auto
		"connection",
		"for", // how long; of grants and doctor, what for
	}
	type use struct {
		flag *pflag.Flag
		path string
	}
	seen, shorthands := map[string]use{}, map[string]use{}
	noOutput := []string{"risso serve", "risso help", "risso man", "risso sandbox exec", "risso sandbox load", "risso sandbox config", "risso check backup", "risso check accounts", "risso accounts policy",
		"risso token revoke", "risso token create", "risso token list"}
	every(root, func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
			return
		}
		cmd.InheritedFlags() // makes those of the parents known
		if !cmd.HasSubCommands() && cmd.Runnable() && cmd.Flags().Lookup("output") == nil && !slices.Contains(noOutput, cmd.CommandPath()) {
			t.Errorf("%s has no --output", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if was, ok := seen[f.Name]; ok && !slices.Contains(differ, f.Name) && (!same(was.flag.Value.Type(), f.Value.Type()) || was.flag.Shorthand != f.Shorthand) {
				t.Errorf("--%s is a %s (-%s) in %s and a %s (-%s) in %s", f.Name, was.flag.Value.Type(), was.flag.Shorthand, was.path, f.Value.Type(), f.Shorthand, cmd.CommandPath())
			}
			seen[f.Name] = use{f, cmd.CommandPath()}
			if f.Shorthand != "" {
				if was, ok := shorthands[f.Shorthand]; ok && was.flag.Name != f.Name {
					t.Errorf("-%s is --%s in %s and --%s in %s", f.Shorthand, was.flag.Name, was.path, f.Name, cmd.CommandPath())
				}
				shorthands[f.Shorthand] = use{f, cmd.CommandPath()}
			}
		})
	})
}

// TestHelpIsWhole: every command has a line that describes it, and an example.
func TestHelpIsWhole(t *testing.T) {
	every(newRoot(screen.Streams{}), func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
			return
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it is for, want cmd.Short not \"\"", cmd.CommandPath())
		}
		if cmd.Example == "" && cmd.Runnable() && !cmd.HasSubCommands() {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	})
}

// TestCompletion: the shell is offered what there is.
func TestCompletion(t *testing.T) {
	t.Setenv("RISSO_SANDBOX_DIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "risso.yaml")
	if err := os.WriteFile(file, []byte("servers:\n  - {name: shop, dsn: risso@tcp(db1)/}\n  - {name: crm, dsn: risso@tcp(db2)/}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, offers string }{
		{"backup --config " + file + " --dsn", "shop\ncrm\n"},
		{"explain -o", "text\njson\nsvg\ndot\n"},
		{"grants --for", "serve\ndigest\n"},
		{"help backup", "prune"},
		{"sandbox down", ":4"}, // none are there, and no files are offered
	} {
		var out, said bytes.Buffer
		code := Main(t.Context(), append(append([]string{"__complete"}, strings.Fields(c.args)...), ""), screen.Streams{Out: &out, Err: &said})
		if code != fault.OK || !strings.Contains(out.String(), c.offers) {
			t.Errorf("%s: got %d %q %q; want code fault.OK, %q in it", c.args, code, out.String(), said.String(), c.offers)
		}
	}
}

// TestWhatChangesServers: docs/security.md names every command that asks before it does something, or shows a plan, unless that is about no existing server; and each that it
// names is there and has --dry-run, but for those that it excepts.
func TestWhatChangesServers(t *testing.T) {
	b, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(b), "- **What changes a server**")
	list, except, ok := strings.Cut(list, "Without one are:")
	except, _, _ = strings.Cut(except, "- **What `risso serve` changes by itself:**")
	if !ok {
		t.Fatal("docs/security.md does not say what changes a server")
	}
	elsewhere := []string{"backup", "backup copy", "backup prune", "bench matrix", "binlog purge", "controller join", "shard confirm"} // files, backups, throw-away servers, Risso's state
	named := map[string]bool{}
	root := newRoot(screen.Streams{})
	find := func(part string) (cmds []*cobra.Command) {
		for _, m := range regexp.MustCompile("`([a-z][a-z -]*)`").FindAllStringSubmatch(part, -1) {
			words := strings.Fields(m[1])
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == root || len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
				continue // a flag, or a word of the text
			}
			named[strings.TrimPrefix(cmd.CommandPath(), "risso ")] = true
			cmds = append(cmds, cmd)
		}
		return cmds
	}
	for _, cmd := range find(list) {
		if cmd.Flags().Lookup("dry-run") == nil {
			t.Errorf("%s changes a server, and has no --dry-run", cmd.CommandPath())
		}
	}
	find(except)
	every(root, func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "risso ")
		changes := cmd.Flags().Lookup("dry-run") != nil || cmd.Flags().Lookup("yes") != nil
		if changes && !named[name] && !slices.Contains(elsewhere, name) {
			t.Errorf("docs/security.md does not say that risso %s changes a server", name)
		}
	})
	if len(named) < 40 {
		t.Errorf("only %d commands are named", len(named))
	}
}
