// Package lack is what tests do if something that script/setup installs is missing.
package lack

import (
	"os"
	"runtime"
	"testing"
)

// Of skips a test because something is missing; reason says what is missing and how to fix that. In script/test, which runs
// script/setup first and sets RISSO_NEED_SERVERS=1, it fails the test: what is silently not tested there is tested nowhere.
func Of(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("RISSO_NEED_SERVERS") == "1" {
		t.Fatal("needed here: " + reason)
	}
	t.Skip(reason)
}

// Server is Of for the database server that `risso sandbox --servers spec` means.
func Server(t testing.TB, spec string) {
	t.Helper()
	if runtime.GOARCH != "amd64" && (spec == "mysql-8.0" || spec == "mysql-5.7") {
		t.Skipf("server %s is published for amd64 only", spec)
	}
	Of(t, "server "+spec+" is not installed: run script/setup")
}
