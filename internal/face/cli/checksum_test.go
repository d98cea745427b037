package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// Wrong use is reported in one line, before any server is asked.
func TestChecksumUse(t *testing.T) {
	const dsn = "x@tcp(127.0.0.1:1)/"
	for want, args := range map[string][]string{
		"schema.table":    {"--dsn", dsn, "--replica", dsn, "--table", "orders"},
		"leave out":       {"--dsn", dsn, "--replica", dsn, "--against", dsn},
		"needs a replica": {"--dsn", dsn, "--against", dsn, "--mend"},
		"without --mend":  {"--dsn", dsn, "--replica", dsn, "--dry-run"},
		"--sum":           {"--dsn", dsn, "--replica", dsn, "--sum", "md5"},
		"--rounds":        {"--dsn", dsn, "--replica", dsn, "--rounds", "1"},
		"--max-rate":      {"--dsn", dsn, "--replica", dsn, "--max-rate", "fast"},
		"yaml":            {"--dsn", dsn, "--replica", dsn, "--output", "yaml"},
		"not a usable":    {"--dsn", dsn, "--replica", "secret@@(("},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), append([]string{"checksum"}, args...), screen.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != fault.Usage || out.Len() > 0 || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 || strings.Contains(errs.String(), "secret") {
			t.Errorf("%v: got %d, %q, %q; want code fault.Usage, out.Len() at most 0, %q in it, strings.Count(errs.String(), \"\\n\") 1, no \"secret\" in it",
				args, code, out.String(), errs.String(), want)
		}
	}
}
