package read

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// logLines is how many of the last lines of an error log are read, and logBytes how much of a file for that.
const (
	logLines = 200
	logBytes = 64 << 10
)

// ErrorLog returns the last lines of the server's error log, as MySQL tells them from 8.0.22 on; none elsewhere.
func ErrorLog(ctx context.Context, c *mysql.Conn) (lines []string, err error) {
	if !c.Server.AtLeast(80022, fleet.Never) || !c.Server.PerformanceSchema {
		return nil, nil
	}
	err = c.Query(ctx, fmt.Sprintf("SELECT /* risso: the last lines of the error log */ LOGGED, PRIO, DATA FROM performance_schema.error_log ORDER BY LOGGED DESC LIMIT %d", logLines), func(row []sqldriver.Value) error {
		lines = append(lines, mysql.Text(row[0])+" ["+mysql.Text(row[1])+"] "+mysql.Text(row[2]))
		return nil
	})
	slices.Reverse(lines)
	return lines, err
}

// ErrorLogFile is where a server with these variables writes its error log; "" if that is no file.
func ErrorLogFile(variables map[string]string) string {
	name := variables["log_error"]
	if name == "" || name == "stderr" {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(variables["datadir"], name)
	}
	return name
}

// loggedStatement is a statement in an error log: what a thread ran when the server crashed, or could not be applied.
var loggedStatement = regexp.MustCompile(`(?i)((?:\bQuery(?: \([^)]*\))?|\bstatement): ).*`)

// LogWithoutStatement is a line of an error log without the statement that it quotes.
func LogWithoutStatement(line string) string { return loggedStatement.ReplaceAllString(line, "$1…") }

// TailErrorLog returns the last lines of an error log on this machine.
func TailErrorLog(name string) ([]string, error) { return TailLog(name, logLines, logBytes) }

// TailLog returns the last lines of an error log on this machine: at most so many, within its last bytes.
func TailLog(name string, most int, within int64) ([]string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer must not hold it up
	if err != nil {
		return nil, fmt.Errorf("read the server's error log: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the server's error log: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read the server's error log: %s is no file", name)
	}
	from := max(st.Size()-within, 0)
	b := make([]byte, st.Size()-from)
	n, err := f.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the server's error log: %w", err)
	}
	b = b[:n]
	if i := bytes.IndexByte(b, '\n'); from > 0 && i >= 0 {
		b = b[i+1:]
	}
	var lines []string
	for _, line := range strings.Split(string(b), "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(len(lines)-most, 0):], nil
}

// Crashed begins the cause of a server's end if that was its own fault.
const Crashed = "it crashed"

// What servers of all versions write when they begin and end.
var (
	logStarts   = regexp.MustCompile(`starting as process|Starting MariaDB|as process [0-9]+$`)
	logSignal   = regexp.MustCompile(`got (?:signal|exception) ([0-9a-fx]+)`)
	logShutdown = regexp.MustCompile(`Received SHUTDOWN from user (.+?)\. Shutting|\(initiated by: (.+?)\): Normal shutdown`)
	logEnds     = regexp.MustCompile(`Normal shutdown|Shutdown complete|Giving [0-9]+ client threads a chance|Received SHUTDOWN`)
)

// StopCause says from the lines of an error log why the run of the server before the newest one had ended, as words that may follow a
// colon; "" if there are no lines to say it.
func StopCause(lines []string) string {
	start := -1
	for i, l := range lines {
		if logStarts.MatchString(l) {
			start = i
		}
	}
	if start <= 0 {
		return ""
	}
	ended, from := false, 0
	for i := start - 1; i >= from; i-- {
		l := lines[i]
		if m := logSignal.FindStringSubmatch(l); m != nil {
			return Crashed + " (signal " + m[1] + ")"
		}
		if m := logShutdown.FindStringSubmatch(l); m != nil {
			return "it was shut down by " + strings.TrimSpace(m[1]+m[2])
		}
		ended = ended || logEnds.MatchString(l)
		if logStarts.MatchString(l) {
			break
		}
	}
	if ended {
		return "it was shut down"
	}
	return "it did not shut down: it was killed, or its machine stopped"
}
