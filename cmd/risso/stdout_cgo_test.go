//go:build cgo

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain is the program itself where a test starts it.
func TestMain(m *testing.M) {
	if os.Getenv("RISSO_TEST_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestOutputClosed: an answer that is lost because standard output is closed is an error in every command; one that is thrown away on purpose is none.
func TestOutputClosed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		code int
	}{
		{"version >&-", 1}, {"gtid normalize 0-1-1 >&-", 1}, {"help >&-", 1}, {"version >/dev/null", 0}, {"gtid normalize 0-1-1 >/dev/null", 0}, {"version 1<>/dev/null", 0}, {"gtid subset 0-1-1 0-1-2 >&-", 0},
	} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `"$0" `+c.line, program)
		cmd.Env = append(os.Environ(), "RISSO_TEST_PROGRAM=1")
		said, err := cmd.CombinedOutput()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || code != 0 && !strings.Contains(string(said), "bad file descriptor") {
			t.Errorf("%s: got exit code %d, %s; want %d", c.line, code, said, c.code)
		}
	}
}
