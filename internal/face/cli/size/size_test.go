package size

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// command runs risso size.
func runSize(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b, e bytes.Buffer
	cmd := New(screen.Streams{In: strings.NewReader(""), Out: &b, Err: &e})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"--top", "0"}, {"--measure", "orders"}, {"--measure", "shop."}, {"--instance", "db1"}, {"--token-file", "x"}} {
		if _, err := runSize(t, append(args, "--dsn", "127.0.0.1:1")...); fault.Code(err) != fault.Usage {
			t.Errorf("%v: got %v; want wrong use", args, err)
		}
	}
}

// TestForms: each form tells of the same table, whatever its name.
func TestForms(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	c := sandboxtest.Connect(t, n)
	for _, s := range []string{"CREATE DATABASE `sh<o>p`", "CREATE TABLE `sh<o>p`.`or d``<b>ers` (id BIGINT PRIMARY KEY)", "INSERT INTO `sh<o>p`.`or d``<b>ers` VALUES (1)"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct {
		args []string
		want string
	}{
		{nil, "sh<o>p.or d`<b>ers"}, {[]string{"-o", "json"}, "\"name\": \"or d`\\u003cb\\u003eers\""}, {[]string{"-o", "html"}, "sh&lt;o&gt;p.or d`&lt;b&gt;ers"},
		{[]string{"--schema", "sh<o>p", "--widths", "--measure", "sh<o>p.or d`<b>ers"}, "measured on 1 of 1 row"},
	} {
		out, err := runSize(t, append(f.args, "--dsn", n.DSN, "--top", "100")...)
		if err != nil || !strings.Contains(out, f.want) {
			t.Errorf("%v: got %v and\n%s\nwant %q", f.args, err, out, f.want)
		}
		if strings.Contains(out, "<b>ers") && len(f.args) > 0 && f.args[1] == "html" {
			t.Error("a name is markup")
		}
	}
	if _, err := runSize(t, "--dsn", n.DSN, "--schema", "nope"); err == nil || !strings.Contains(err.Error(), "no such schema") {
		t.Errorf("a schema that is not there: got %v; want that", err)
	}
	if _, err := runSize(t, "--dsn", n.DSN, "--measure", "nope.t"); err == nil || !strings.Contains(err.Error(), "no table") {
		t.Errorf("a table that is not there: got %v; want that", err)
	}
}
