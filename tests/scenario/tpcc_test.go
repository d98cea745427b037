package scenario_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTPCCFromTheCommandLine loads, checks, runs, damages, checks and cleans up as a user does.
func TestTPCCFromTheCommandLine(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	execSQL(t, n, "CREATE DATABASE tpcc")
	dsn := "root@unix(" + n.Socket + ")/tpcc"
	expect := func(want int, stdout, stderr string, args ...string) string {
		t.Helper()
		out, said, code := runRisso(t, nil, append([]string{"bench"}, append(args, "--dsn", dsn)...)...)
		if code != want || !strings.Contains(out, stdout) || !strings.Contains(said, stderr) {
			t.Errorf("%v: exit %d, %s%s; want code %d, %q in it, %q in it", args, code, out, said, want, stdout, stderr)
		}
		return out
	}
	expect(1, "", "0 of 9 tables exist", "check", "tpcc")
	expect(1, "", "run risso bench prepare tpcc", "run", "tpcc", "--time", "1s")
	expect(2, "", "point_select has nothing to check", "check", "point_select")
	expect(2, "", "there are text, json", "check", "tpcc", "--output", "xml")
	expect(2, "", "-1 warehouses", "prepare", "tpcc", "--warehouses", "-1")

	prepared := time.Now()
	expect(0, "rows written", "", "prepare", "tpcc", "--threads", "2")
	t.Logf("loaded in %v", time.Since(prepared))
	expect(1, "", "risso bench cleanup tpcc", "prepare", "tpcc")
	expect(2, "", "--warehouses 2, but 1 are loaded", "run", "tpcc", "--warehouses", "2", "--time", "1s")
	out := expect(0, "warehouses: 1\n", "", "run", "tpcc", "--threads", "2", "--time", "2s")
	if !regexp.MustCompile(`(?m)^\d+\.\d{3} TpmC$`).MatchString(out) {
		t.Errorf("no TpmC in %s", out)
	}
	expect(0, "ok      3.3.2.12", "", "check", "tpcc")

	execSQL(t, n, "UPDATE tpcc.district SET d_ytd = d_ytd + 1 WHERE d_id = 4")
	expect(1, "BROKEN  3.3.2.9 d_ytd is the sum of h_amount: warehouse 1, district 4", "2 of 12 checks found something wrong", "check", "tpcc")
	var r struct {
		OK     bool
		Checks []struct {
			Name, Detail string
			OK           bool
		}
	}
	if err := json.Unmarshal([]byte(expect(1, "", "", "check", "tpcc", "--output", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.OK || len(r.Checks) != 12 || r.Checks[0].OK || !r.Checks[1].OK || r.Checks[8].Detail == "" {
		t.Errorf("got %+v; want OK false, len(Checks) 12, Checks[0].OK false, Checks[1].OK true, Checks[8].Detail not \"\"", r)
	}
	expect(0, "9 tables dropped", "", "cleanup", "tpcc")
	expect(0, "nothing to drop", "", "cleanup", "tpcc")
}
