package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/screen"
)

// printed is a command line as the documents or the help print it.
type printed struct{ where, line string }

var (
	ourCommand = regexp.MustCompile(`(^|[ |(])(\./)?risso `)
	notOurs    = regexp.MustCompile(`^\s*(#|systemctl|rm |ExecStart|servers:)`)
	remark     = regexp.MustCompile(`\s{2,}(# )?[^-'"\s|>&<].*$|\s+# .*$`) // a remark next to a command
)

// printedCommands finds the command lines in code blocks of README and docs and in the examples of help.
func printedCommands(t *testing.T) (list []printed) {
	t.Helper()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("got %d documents, %v; want at least 20", len(files), err)
	}
	for _, f := range append(files, "../../../README.md") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			} else if code && ourCommand.MatchString(line) && !notOurs.MatchString(line) {
				if _, told, ok := strings.Cut(line, ": risso "); ok { // what a command advises to run
					line = "risso " + told
				}
				list = append(list, printed{filepath.Base(f), line})
			}
		}
	}
	every(newRoot(screen.Streams{}), func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			if ourCommand.MatchString(line) {
				list = append(list, printed{cmd.CommandPath() + " --help", line})
			}
		}
	})
	return list
}

// shellLine is what a person would copy of a printed line: no prompt, no remark.
func (p printed) shellLine() string {
	line := strings.TrimPrefix(strings.TrimSpace(p.line), "$ ")
	at := ourCommand.FindStringIndex(line)
	if at == nil {
		return ""
	}
	// Blanks within a command align it with its neighbours: they come before a flag, a quote or a word of the command.
	head, rest := line[:at[1]], line[at[1]:]
	rest = regexp.MustCompile(`^([a-z]+)\s+`).ReplaceAllString(rest, "$1 ")
	if m := regexp.MustCompile(`^(bench|binlog|backup|sandbox|token|check|config) ([a-z]+)\s+`).FindString(rest); m != "" {
		rest = strings.Join(strings.Fields(m), " ") + " " + rest[len(m):]
	}
	return head + remark.ReplaceAllString(rest, "")
}

// TestPrintedCommandsParse: every command line that the documents and the help print is one that risso takes, down to its flags'
// values. tests/scenario runs them.
func TestPrintedCommandsParse(t *testing.T) {
	dir := t.TempDir()
	recorder := "#!/bin/bash\nprintf '%s\\0' \"$@\" END >>\"$RECORD\"\n"
	if err := os.WriteFile(filepath.Join(dir, "risso"), []byte(recorder), 0o755); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, p := range printedCommands(t) {
		line := strings.ReplaceAll(p.shellLine(), "./risso ", "risso ")
		home := t.TempDir()
		for _, d := range []string{".config/fish/completions"} {
			if err := os.MkdirAll(filepath.Join(home, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(home, "report.sql"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		record := filepath.Join(home, "args")
		sh := exec.CommandContext(t.Context(), "/bin/bash", "-c", line+"\nwait")
		// The last two as hooks have them.
		sh.Dir, sh.Env = home, []string{"PATH=" + dir, "RECORD=" + record, "HOME=" + home, "RISSO_GROUP=shop", "RISSO_EPOCH=7"}
		out, _ := sh.CombinedOutput() // other programs are not there
		if bytes.Contains(out, []byte("syntax error")) || bytes.Contains(out, []byte("unexpected EOF")) {
			t.Errorf("%s: %q is no command line: %s; want no []byte(\"syntax error\") in it, no []byte(\"unexpected EOF\") in it", p.where, line, out)
			continue
		}
		args, err := os.ReadFile(record)
		if err != nil {
			t.Errorf("%s: %q runs no risso: %s", p.where, line, out)
			continue
		}
		for _, one := range strings.Split(strings.TrimSuffix(string(args), "END\x00"), "END\x00") {
			count++
			given := strings.Split(strings.TrimSuffix(one, "\x00"), "\x00")
			if err := parses(given); err != nil {
				t.Errorf("%s: %q: %v", p.where, line, err)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d commands were found, want at least 200", count)
	}
}

// parses says whether risso takes these arguments, and does nothing.
func parses(args []string) error {
	root := newRoot(screen.Streams{})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
