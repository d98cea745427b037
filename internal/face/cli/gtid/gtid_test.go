package gtid

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// TestArithmetic: what each command prints, and how it ends. A and B are UUIDs.
func TestArithmetic(t *testing.T) {
	file := filepath.Join(t.TempDir(), "set")
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
	names := strings.NewReplacer("A", a, "B", b)
	if err := os.WriteFile(file, []byte(names.Replace("A:1-3,\nB:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, in, want string // of an error, a part of it
		code           int
	}{
		{"subtract A:1-9 A:1-7", "", "A:8-9", 0}, {"subtract A:1-9 A:1-9", "", "", 0}, {"union A:1-3:5 A:4", "", "A:1-5", 0}, {"intersect A:1-5,B:3 A:4-9", "", "A:4-5", 0},
		{"subset A:3 A:1-5", "", "", 0}, {"subset A:3-7 A:1-5", "", "A:6-7", 1}, {"count A:1-5:8:t:1-2", "", "8", 0}, {"normalize FILE", "", "A:1-3,B:1", 0}, {"normalize -", "A:2,\n A:1\n", "A:1-2", 0}, {"normalize -", `A:2,\nB:1` + "\n", "A:2,B:1", 0}, {"count A:1-9223372036854775806", "", "9223372036854775806", 0}, {"normalize A:9223372036854775807", "", "not a GTID", 2},
		{"subtract FILE -", "A:2", "A:1:3,B:1", 0}, {"subtract - -", "", "only one", 2}, {"subset 0-1-5 A:1", "", "no transaction in common", 2}, {"normalize A:5-3", "", "not a GTID", 2}, {"count nothing", "", "not a GTID", 2},
		{"count 0-1-5", "", "do not tell", 1}, {"subset 0-1-5 0-1-7,1-1-1", "", "", 0}, {"subset 0-1-5 0-2-7", "", "", 0}, {"subset 0-1-9 0-1-7", "", "0-1-9", 1}, {"union 0-1-9,2-1-1 0-1-7", "", "0-1-9,2-1-1", 0}, {"intersect 0-1-9,2-1-1 0-1-7", "", "0-1-7", 0},
		{"subtract 0-1-5 0-2-5", "", "have diverged", 1}, {"subtract 0-1-5,0-2-7 0-1-5", "", "0-2-7", 0}, {"subset 0-1-5,0-2-3 0-1-5,0-2-7", "", "", 0}, {"union 0-1-5,0-2-7 0-1-6,0-3-1", "", "0-3-1,0-1-6,0-2-7", 0},
		// What the tests of MySQL's own functions, and orchestrator's of sets, have.
		{"subset A:1,B:3:2:1 B:1-3,A:1", "", "", 0}, {"subset B:1-3,A:1 A:1,B:3:2:1", "", "", 0}, {"subset A:1,B:3:2:1 B:1:3,A:1", "", "B:2", 1}, {"intersect A:2 B:2,A:1:3", "", "", 0}, {"intersect A:2 B:2,A:1-3", "", "A:2", 0}, {"intersect A:1-3 A:5-7", "", "", 0},
		{"intersect A:1-3:5-7 A:3-5", "", "A:3:5", 0}, {"intersect A:1-3 A:1:2:3", "", "A:1-3", 0}, {"intersect B:1-3 A:1-3", "", "", 0}, {"union A:1-3 A:1:3", "", "A:1-3", 0}, {"union A:1:3 A:2:4", "", "A:1-4", 0}, {"subtract A:1-3 A:3-5", "", "A:1-2", 0}, {"subtract A:3-5 A:1-3", "", "A:4-5", 0},
		{"count -", "", "standard input is empty", 2}, {"count -", "\n", "0", 0}, {"count A:1-3:4-5", "", "5", 0}, {"count A:1-3:5-5", "", "4", 0}, {"count A:1-3:5,B:1:3,", "", "6", 0}, {"count A:1-3:5-4", "", "not a GTID", 2}, {"normalize -", "   ,,, , , A:20-30,,,, B:7-8,,  ,,", "A:20-30,B:7-8", 0}, {"normalize -", "   ,,, , ,,  ,,", "", 0}, {"normalize A", "", "not a GTID", 2},
		{"intersect 0-1-5,0-2-7 0-1-6,0-3-1", "", "0-1-5", 0}, {"normalize 0-2-7,0-1-5", "", "0-1-5,0-2-7", 0}, {"normalize -", "\n", "", 0},
		{"subset - A:1", "", "standard input is empty", 2}, {"subset A:1 @/dev/null", "", "/dev/null is empty", 2}, {"normalize 0-0-0", "", "0-0-0", 0}, {"normalize 0-1-5,0-1-7", "", "0-1-5 and 0-1-7: neither", 2}, {"normalize 0-1-5,0-1-5", "", "twice", 2},
		{"normalize -", "\u00a0A:1", "not a GTID", 2}, {"normalize -", "A:1\u00a0", "not a GTID", 2}, {"normalize -", "0-1-5,\u00a01-1-5", "not a GTID", 2}, {"normalize -", "A\u00a0:1", "not a GTID", 2},
		{"subset 0-1-4,0-2-6 0-2-6", "", "0-1-4\nrisso: the first is a gtid_binlog_state", 1}, {"subset 0-1-4,0-2-7 0-1-4", "", "0-2-7", 1},
	} {
		var out bytes.Buffer
		cmd := New(screen.Streams{In: strings.NewReader(names.Replace(c.in)), Out: &out, Err: &out})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(strings.ReplaceAll(names.Replace(c.args), "FILE", "@"+file)))
		err := cmd.Execute()
		code, got := 0, strings.TrimSuffix(out.String(), "\n")
		if err != nil {
			code = fault.Code(err)
		}
		if told := (*fault.Told)(nil); err != nil && !errors.As(err, &told) {
			if code != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got exit code %d, %v; want %d, %q", c.args, code, err, c.code, c.want)
			}
			continue
		}
		if strings.HasSuffix(c.want, "a gtid_binlog_state") { // with more of the sentence
			got = got[:min(len(got), len(c.want))]
		}
		if got != names.Replace(c.want) || code != c.code {
			t.Errorf("%s: got %q, exit code %d; want %q, %d", c.args, got, code, names.Replace(c.want), c.code)
		}
	}
}
