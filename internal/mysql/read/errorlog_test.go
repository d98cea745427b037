package read

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStopCause: why a server had ended, from lines as servers write them.
func TestStopCause(t *testing.T) {
	const start = "2026-11-24 10:00:00 0 [Note] Starting MariaDB 10.11.9 source revision abc server_uid x as process 7"
	const mysql = "2026-11-24T10:00:00.1Z 0 [System] [MY-010116] [Server] /usr/sbin/mysqld (mysqld 9.7.0) starting as process 7"
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, ""},
		{[]string{start}, ""}, // nothing is known of the run before
		{[]string{start, "InnoDB: ready", start}, "it did not shut down: it was killed, or its machine stopped"},
		{[]string{start, "2026-11-24 10:05:00 0 [Note] mariadbd (initiated by: root[root] @ localhost []): Normal shutdown", "Shutdown complete", start}, "it was shut down by root[root] @ localhost []"},
		{[]string{mysql, "[System] [MY-013172] [Server] Received SHUTDOWN from user <via user signal>. Shutting down mysqld (Version: 9.7.0).", mysql}, "it was shut down by <via user signal>"},
		{[]string{mysql, "[Note] Giving 2 client threads a chance to die gracefully", mysql}, "it was shut down"},
		{[]string{mysql, "10:05:00 UTC - mysqld got signal 11 ;", "stack", mysql}, "it crashed (signal 11)"},
		{[]string{mysql, "10:05:00 UTC - mysqld got signal 11 ;", mysql, "running", mysql}, "it did not shut down: it was killed, or its machine stopped"}, // the newest run counts
	} {
		if got := StopCause(c.lines); got != c.want {
			t.Errorf("%q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

// TestTailErrorLog: the end of a log that is longer than what is read, in whole lines; a folder is none.
func TestTailErrorLog(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "error.log")
	if err := os.WriteFile(name, []byte("first\n"+strings.Repeat(strings.Repeat("x", 999)+"\n\n", 100)+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := TailErrorLog(name)
	if err != nil || len(got) < 2 || got[len(got)-1] != "last" || len(got[0]) != 999 {
		t.Errorf("got %d lines, %v; want whole ones up to the last", len(got), err)
	}
	for _, other := range []string{dir, filepath.Join(dir, "none")} {
		if lines, err := TailErrorLog(other); err == nil {
			t.Errorf("%s: got %q, want an error", other, lines)
		}
	}
	if got := ErrorLogFile(map[string]string{"log_error": "./x.err", "datadir": "/data/"}); got != "/data/x.err" {
		t.Errorf("got %q, want /data/x.err", got)
	}
	if got := ErrorLogFile(map[string]string{"log_error": "stderr"}); got != "" {
		t.Errorf("got %q, want none", got)
	}
}
