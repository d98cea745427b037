package lack

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestLack: what is missing is a reason to skip a test, and in script/test to fail.
func TestLack(t *testing.T) {
	if os.Getenv("RISSO_TEST_LACK") != "" {
		Server(t, "mysql-9.7")
		return
	}
	for need, want := range map[string]string{"": "--- SKIP", "1": "--- FAIL"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLack$", "-test.v")
		cmd.Env = append(os.Environ(), "RISSO_TEST_LACK=1", "RISSO_NEED_SERVERS="+need)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || !strings.Contains(string(out), "server mysql-9.7 is not installed: run script/setup") || (err != nil) != (need == "1") {
			t.Errorf("RISSO_NEED_SERVERS=%s: %v\n%s", need, err, out)
		}
	}
}
