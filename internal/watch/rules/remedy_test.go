package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sqltext"
)

// verbs begin the statements of remedies.
var verbs = []string{"SELECT", "SHOW", "SET", "KILL", "START", "STOP", "XA", "CHANGE", "BEGIN", "COMMIT", "ALTER", "FLUSH", "GRANT"}

// tools are the commands of a host's remedies.
var tools = []string{"top", "pidstat", "ps", "sysctl", "dmesg", "iostat", "du", "df", "sort", "tail", "head", "grep", "rm", "mv"}

// runnable holds that a finding's remedy can be run as it is.
func runnable(t *testing.T, kind fleet.Kind, f fleet.Finding) {
	t.Helper()
	if f.Remedy == "" && strings.Contains(f.What, "the remedy") {
		t.Errorf("%s: got %q and no remedy; want none promised", f.ID, f.What)
	}
	if why := unrunnable(kind, f.Remedy); why != "" {
		t.Errorf("%s: got the remedy %q with %s, want what can be run as it is", f.ID, f.Remedy, why)
	}
}

// unrunnable says why a remedy cannot be run as it is: by a server, or in a shell if it is of a host. It is "" if it can.
func unrunnable(kind fleet.Kind, remedy string) string {
	if strings.ContainsAny(remedy, "\n…") {
		return "something to be filled in, or several lines"
	}
	if kind == fleet.KindHost && remedy != "" {
		for _, part := range strings.Split(strings.ReplaceAll(remedy, " && ", " | "), " | ") {
			if word, _, _ := strings.Cut(part, " "); !slices.Contains(tools, word) {
				return "the command " + word
			}
			if strings.ContainsAny(part, "#<>") {
				return "a comment, or something to be filled in"
			}
		}
		return ""
	}
	begins, end := true, 0
	for _, k := range sqltext.Tokens(remedy) {
		if between := strings.TrimSpace(remedy[end:k.Begin]); between != "" {
			return "the comment " + between
		}
		if begins && !slices.Contains(verbs, strings.ToUpper(k.Text)) {
			return "a statement that begins with " + k.Text
		}
		begins, end = k.Text == ";", k.End
	}
	return strings.TrimSpace(remedy[end:])
}

// valueless are the findings without a value: something is so, or it is not. That of a replica's delay is in seconds, in its sentence.
var valueless = []string{"server.down", "server.hung", "server.restarted", "observer.blind", "repl.stopped", "repl.lag", "repl.writable", "galera.non_primary", "galera.not_synced", "galera.flow_control", "disk.readonly"}

// valued holds that a finding says how bad it is.
func valued(t *testing.T, f fleet.Finding) {
	t.Helper()
	if has, want := f.Value > 0, !slices.Contains(valueless, f.ID); has != want {
		t.Errorf("%s: got value %v, want one: %v", f.ID, f.Value, want)
	}
}

// TestRunnable: what is no statement is found.
func TestRunnable(t *testing.T) {
	for _, c := range []struct {
		kind   fleet.Kind
		remedy string
		fine   bool
	}{
		{fleet.KindServer, "SET GLOBAL max_connections = 300", true},
		{fleet.KindServer, "STOP SLAVE SQL_THREAD; SET GLOBAL a = 4; START SLAVE SQL_THREAD", true},
		{fleet.KindServer, "SELECT '-- no comment'", true},
		{fleet.KindServer, "START SLAVE    -- once the cause is fixed", false},
		{fleet.KindServer, "START SLAVE; then look", false},
		{fleet.KindServer, "SHOW /* all */ STATUS", false},
		{fleet.KindServer, "innodb_log_file_size = 7", false},
		{fleet.KindServer, "raise max_connections", false},
		{fleet.KindServer, "CHANGE MASTER TO MASTER_PASSWORD='…'", false},
		{fleet.KindHost, "dmesg -T | tail -50", true},
		{fleet.KindHost, "systemctl set-property <unit>.service CPUQuota=225%", false},
		{fleet.KindHost, "pidstat -d 1 5    # who else writes", false},
		{fleet.KindHost, "look at the disk", false},
	} {
		if why := unrunnable(c.kind, c.remedy); (why == "") != c.fine {
			t.Errorf("%q: got %q, want that it can be run: %v", c.remedy, why, c.fine)
		}
	}
}
