package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/pattern"
)

// backupArgs are the arguments of mariadb-backup and xtrabackup for a streamed backup. Of xtrabackup they follow its manual
// (https://docs.percona.com/percona-xtrabackup/8.4/xtrabackup-option-reference.html) and were never run.
func backupArgs(tool mysql.CopyTool, server mysql.Server, parent *repo.Header, lockWait time.Duration, dir string, replica bool) []string {
	args := []string{"--defaults-file=" + optionFilePath, "--backup", "--stream=xbstream", "--target-dir=" + dir, "--datadir=" + server.DataDir}
	if parent != nil {
		args = append(args, "--incremental-lsn="+strconv.FormatUint(parent.Stream.ToLSN, 10))
	}
	if replica {
		args = append(args, "--slave-info")
	}
	if tool == mysql.ToolMariaDBBackup {
		// No --ftwrl-wait-timeout: with it the tool waits, and fails, until no statement runs at all. The lock requests that
		// keep others waiting (BACKUP STAGE FLUSH, BLOCK_DDL, BLOCK_COMMIT) have no limit of their own: the guard
		// watches them.
		return args
	}
	// The guard comes first; this is for what it cannot see.
	wait := strconv.Itoa(5 + int(2*lockWait.Seconds()))
	args = append(args, "--lock-ddl-timeout="+wait, "--ftwrl-wait-timeout="+wait)
	if server.Number >= 80400 {
		args = append(args, "--lock-ddl=REDUCED")
	}
	return args
}

// planStream says what a backup by a program does.
func (j *job) planStream(ctx context.Context) error {
	var err error
	if j.replica, err = read.IsReplica(ctx, j.conn); mysql.ClassOf(err) == mysql.ClassPrivilege {
		j.plan.Notes = append(j.plan.Notes, "it is unknown whether the server is a replica, so the backup does not record its position in its source: the account needs "+j.server.ReplicaPrivilege())
	} else if err != nil {
		return err
	}
	what := "copy all files"
	if j.parent != nil {
		what = fmt.Sprintf("copy pages changed since backup %s (LSN %d)", j.parent.ID, j.parent.Stream.ToLSN)
	}
	j.plan.Steps = append(j.plan.Steps,
		change.Step{What: "run " + j.plan.Path + " " + strings.Join(backupArgs(j.plan.Tool, j.server, j.parent, j.LockWait, "TMP", j.replica), " ")},
		change.Step{What: what + " while the server keeps running, and the redo log written in the meantime"},
		change.Step{What: fmt.Sprintf("then lock for a moment: tables without transactions are copied, the position in the binary log is read; a lock request that keeps others waiting for %s is withdrawn", j.LockWait)},
		change.Step{What: "store the stream in parts, compressed"})
	if j.plan.Untested {
		j.plan.Notes = append(j.plan.Notes, "xtrabackup was not available to the developers of Risso: its command line follows the manual and has never been run")
	}
	return nil
}

// runStream runs the tool into the repository.
func (j *job) runStream(ctx context.Context, parts *sink) error {
	dir, remove, err := privateDir()
	if err != nil {
		return err
	}
	defer remove()
	options, err := j.Target.OptionFile(j.plan.Tool)
	if err != nil {
		return err
	}
	g, err := newGuard(ctx, j)
	if err != nil {
		return err
	}
	defer g.close()
	log := &toolLog{say: func(s string) { j.Progress(Progress{Stage: s, Done: parts.taken(), Total: j.plan.Bytes}) }}
	p := program{path: j.plan.Path, args: backupArgs(j.plan.Tool, j.server, j.parent, j.LockWait, dir, j.replica), options: options, dir: dir, line: log.line}
	var kept map[string][]byte
	err = p.run(ctx, func(out io.Reader) (err error) {
		j.header.Stream.Files, kept, err = scan(io.TeeReader(&gated{ctx: ctx, r: out, gate: j.Gate, open: log.locked, moved: func(n int64) {
			j.Progress(Progress{Stage: log.stage(), Done: n, Total: j.plan.Bytes})
		}}, parts), toolFile)
		return err
	})
	if withdrawn := g.close(); withdrawn != nil && err != nil {
		return withdrawn
	}
	if err != nil {
		return j.explain(err)
	}
	if !log.completed() {
		return fmt.Errorf("%s ended without saying that the backup is complete", j.plan.Tool)
	}
	j.header.Snapshot, j.header.LockSeconds = log.snapshot(), log.lockSeconds()
	return j.readFiles(kept)
}

// explain names the GRANT that the account must have, if a tool failed for want of it.
func (j *job) explain(err error) error {
	if fleet.RemedyOf(err) == needsGrant {
		return fleet.WithRemedy(err, j.plan.Needs)
	}
	return err
}

// gated hands on what a tool writes at the pace that the gate allows; while the tool holds a lock, the gate is open.
type gated struct {
	ctx   context.Context
	r     io.Reader
	gate  Gate
	open  func() bool
	moved func(int64)
	ended func(int64) // may be nil
	n     int64
}

func (g *gated) Read(b []byte) (int, error) {
	n, err := g.r.Read(b)
	g.n += int64(n)
	g.moved(g.n)
	if errors.Is(err, io.EOF) && g.ended != nil {
		g.ended(g.n)
		g.ended = nil
	}
	if n > 0 && g.gate != nil && !g.open() {
		if gerr := g.gate.Pass(g.ctx, int64(n)); gerr != nil {
			return n, gerr
		}
	}
	return n, err
}

// toolFile recognizes the small files in which a tool says what it did.
// mariadb-backup calls them xtrabackup_… up to 10.11 and mariadb_backup_… from 11.1.
func toolFile(path string) bool {
	name, ok := strings.CutPrefix(path, "xtrabackup_")
	if !ok {
		name, ok = strings.CutPrefix(path, "mariadb_backup_")
	}
	switch name {
	case "info", "checkpoints", "binlog_info", "slave_info", "galera_info":
		return ok
	}
	return false
}

// readFiles takes position and LSNs out of the tool's files.
func (j *job) readFiles(kept map[string][]byte) error {
	byName := map[string]string{}
	for path, b := range kept {
		path = strings.TrimPrefix(strings.TrimPrefix(path, "xtrabackup_"), "mariadb_backup_")
		byName[path] = string(b)
	}
	points := keyValues(byName["checkpoints"])
	var err error
	if j.header.Stream.ToLSN, err = strconv.ParseUint(points["to_lsn"], 10, 64); err != nil || j.header.Stream.ToLSN == 0 {
		return fmt.Errorf("%s left no checkpoint in its files: %q", j.plan.Tool, byName["checkpoints"])
	}
	j.header.Stream.FromLSN, _ = strconv.ParseUint(points["from_lsn"], 10, 64) // 0: whole
	if j.parent != nil && j.header.Stream.FromLSN != j.parent.Stream.ToLSN {
		return fmt.Errorf("%s began at LSN %d, the backup before ended at %d", j.plan.Tool, j.header.Stream.FromLSN, j.parent.Stream.ToLSN)
	}
	if j.header.Position, err = position(byName["binlog_info"]); err != nil {
		return fmt.Errorf("%s: %w", j.plan.Tool, err)
	}
	if j.header.Position.File == "" {
		j.header.Notes = append(j.header.Notes, "the server writes no binary log: this backup cannot be rolled forward")
	}
	if c, ok := sourceOf(byName["slave_info"]); ok {
		j.header.Position.Sources = append(j.header.Position.Sources, c)
	}
	return nil
}

func keyValues(text string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if k, v, ok := strings.Cut(line, "="); ok {
			m[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return m
}

// position reads file, offset and GTID set, parted by tabs. The GTID set of MySQL may go over several lines.
func position(text string) (p repo.Position, err error) {
	f := strings.SplitN(strings.TrimSpace(text), "\t", 3)
	if len(f) < 2 {
		return p, nil
	}
	p.File = f[0]
	if p.Offset, err = strconv.ParseInt(strings.TrimSpace(f[1]), 10, 64); err != nil {
		return p, fmt.Errorf("the position in its files is %q", text)
	}
	if len(f) == 3 {
		p.GTIDSet = strings.Join(strings.Fields(f[2]), "")
	}
	return p, nil
}

var (
	sourceFile = pattern.Lazy(`(?:MASTER|SOURCE)_LOG_FILE='([^']*)'`)
	sourcePos  = pattern.Lazy(`(?:MASTER|SOURCE)_LOG_POS=(\d+)`)
	sourceGTID = pattern.Lazy(`SET GLOBAL (?:gtid_slave_pos|gtid_purged) *= *'([^']*)'`)
)

// sourceOf reads how far a replica had applied its source, from the statements that the tool left.
func sourceOf(text string) (c repo.Channel, ok bool) {
	if m := sourceFile().FindStringSubmatch(text); m != nil {
		c.File, ok = m[1], true
	}
	if m := sourcePos().FindStringSubmatch(text); m != nil {
		c.Offset, _ = strconv.ParseInt(m[1], 10, 64) // digits only
	}
	if m := sourceGTID().FindStringSubmatch(text); m != nil {
		c.GTIDSet, ok = strings.Join(strings.Fields(m[1]), ""), true
	}
	return c, ok
}

// toolLog follows what a tool says of itself.
type toolLog struct {
	say func(string)

	mu       sync.Mutex
	now      string
	lockedAt time.Time
	freedAt  time.Time
	done     bool
}

// line reads one line of the tool's log.
func (l *toolLog) line(s string) {
	low := strings.ToLower(s)
	l.mu.Lock()
	stage := ""
	switch {
	case strings.Contains(low, "completed ok!"):
		l.done = true
	case strings.Contains(low, "backup stage block_commit"), strings.Contains(low, "executing lock instance for backup"), strings.Contains(low, "executing flush tables with read lock"):
		if l.lockedAt.IsZero() {
			l.lockedAt = time.Now()
		}
		stage = "locked"
	case strings.Contains(low, "all tables unlocked"), strings.Contains(low, "backup stage end"), strings.Contains(low, "executing unlock"):
		if !l.lockedAt.IsZero() && l.freedAt.IsZero() {
			l.freedAt = time.Now()
		}
		stage = "unlocked"
	}
	if stage != "" {
		l.now = stage
	}
	l.mu.Unlock()
	if stage != "" {
		l.say(stage)
	}
}

func (l *toolLog) stage() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == "" {
		return "copying"
	}
	return l.now
}

func (l *toolLog) locked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lockedAt.IsZero() && l.freedAt.IsZero()
}

func (l *toolLog) completed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// snapshot is the moment that the data is of: when commits were blocked.
func (l *toolLog) snapshot() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lockedAt.IsZero() {
		return time.Now().UTC()
	}
	return l.lockedAt.UTC()
}

func (l *toolLog) lockSeconds() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lockedAt.IsZero() || l.freedAt.IsZero() {
		return 0
	}
	return l.freedAt.Sub(l.lockedAt).Seconds()
}
