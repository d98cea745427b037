package physical

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// cloneOld is what has to be put back: the directory of the copy is removed, and the plug-in if it was not there before; where
// it was, its limit is as it was.
type cloneOld struct {
	Dir       string `json:"dir"`
	Uninstall bool   `json:"uninstall"`
	Limit     int64  `json:"limit,omitempty"` // that was set; 0: none was
	Was       int64  `json:"was,omitempty"`   // the limit before
}

// cloneDirPrefix begins the name of the directory in which the server writes its copy.
const cloneDirPrefix = "risso-clone-"

// The statements that change the server.
const (
	installClone   = "INSTALL PLUGIN clone SONAME 'mysql_clone.so'"
	uninstallClone = "UNINSTALL PLUGIN clone"
)

// planClone says what a backup by CLONE does.
func (j *job) planClone(ctx context.Context) error {
	state, err := read.PluginState(ctx, j.conn, "clone")
	if err != nil {
		return err
	}
	if j.WorkDir == "" {
		j.WorkDir, err = j.workDir(ctx)
		if err != nil {
			return err
		}
	}
	switch state {
	case "ACTIVE":
	case "":
		j.install = true
		if err := j.consent(); err != nil {
			return err
		}
		j.plan.Changes = append(j.plan.Changes, installClone, uninstallClone+" (at the end, or after a kill by the next run)")
		j.plan.Needs += "; GRANT INSERT, DELETE ON mysql.plugin TO " + j.server.QuotedAccount()
	default:
		return mended("take it out of the option file's plugin-load, or restart the server with clone=ON", "the plug-in clone is %s", state)
	}
	if j.Rate > 0 {
		j.plan.Changes = append(j.plan.Changes, limitStatement(cloneLimit(j.Rate))+", unless it is lower (put back at the end, or after a kill by the next run)")
		j.plan.Needs += "; GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO " + j.server.QuotedAccount()
	}
	j.plan.Steps = j.cloneSteps("", nil)
	other, err := j.otherEngines(ctx)
	if err != nil {
		return err
	}
	j.leftOut = other
	if len(other) > 0 {
		note := "CLONE copies InnoDB only: of these tables the copy has no rows" + unreadable(other) + ": " + strings.Join(other[:min(mostNamed, len(other))], ", ")
		if n := len(other) - mostNamed; n > 0 {
			note += fmt.Sprintf(" and %d more, which the manifest names", n)
		}
		j.plan.Notes = append(j.plan.Notes, note)
	}
	return room(j.WorkDir, j.plan.Bytes)
}

// consent refuses to install the plug-in unasked.
func (j *job) consent() error {
	if !j.install || j.Install {
		return nil
	}
	return mended("allow it with --install-clone (it is removed at the end), or install it yourself: "+installClone, "%w: the plug-in clone is not installed", ErrConsent)
}

// workDir is where the copy is written: next to the data directory, as that disk holds as much already, else in the
// server's directory for temporary files.
func (j *job) workDir(ctx context.Context) (string, error) {
	dir := filepath.Dir(strings.TrimRight(j.server.DataDir, "/"))
	if unix.Access(dir, unix.W_OK) == nil {
		return dir, nil
	}
	return j.conn.Text(ctx, "SELECT /* risso: where may the server write? */ @@tmpdir")
}

// room makes sure that the copy fits.
func room(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return mended("give another --work-dir", "look at %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < need+need/20 {
		return mended("give another --work-dir with more room, which the server may write to", "%w: %s has room for %s, but the copy needs %s", ErrNoRoom, dir, digits.Bytes(free), digits.Bytes(need))
	}
	return nil
}

// mostNamed is how many tables a note names; the manifest names mostLeftOut.
const (
	mostNamed   = 20
	mostLeftOut = 10_000
)

// otherEngines are the tables of users that CLONE leaves empty.
func (j *job) otherEngines(ctx context.Context) (list []string, err error) {
	// information_schema shows an account what it may read.
	sees, err := j.conn.SeesAllTables(ctx)
	if err != nil {
		return nil, err
	}
	if !sees {
		j.plan.Notes = append(j.plan.Notes, "the account may not SELECT everywhere, so tables with engines other than InnoDB, which CLONE leaves empty, could not be found")
	}
	rows, err := j.conn.Maps(ctx, `SELECT /* risso: what CLONE leaves out */ TABLE_SCHEMA AS s, TABLE_NAME AS t, ENGINE AS e FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')
		ORDER BY 1, 2 LIMIT `+strconv.Itoa(mostLeftOut))
	if err != nil {
		return nil, fmt.Errorf("look for tables without InnoDB: %w", err)
	}
	for _, r := range rows {
		list = append(list, LeftOut(r["s"], r["t"], r["e"]))
	}
	return list, nil
}

// unreadable says of which of them the copy has no empty table either.
func unreadable(left []string) string {
	broken := func(text string) bool {
		return strings.HasSuffix(text, " (ARCHIVE)") || strings.HasSuffix(text, " (MRG_MYISAM)")
	}
	if !slices.ContainsFunc(left, broken) {
		return ""
	}
	return ", and those of ARCHIVE and MERGE cannot be read there (after DROP TABLE IF EXISTS they can be created again)"
}

// LeftOut is how a manifest names a table that its tool did not copy.
func LeftOut(schema, table, engine string) string {
	return fmt.Sprintf("%s.%s (%s)", schema, table, engine)
}

// runClone lets the server copy itself and stores the copy. What it changes is always put back.
func (j *job) runClone(ctx context.Context, parts *sink) (err error) {
	if err := j.recoverClone(ctx); err != nil {
		return err
	}
	if err := j.consent(); err != nil {
		return err
	}
	started, err := read.Started(ctx, j.conn)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(j.WorkDir, cloneDirPrefix+"*")
	if err != nil {
		return mended("give another --work-dir, which the server and Risso may write to", "create a directory for the copy: %w", err)
	}
	old := cloneOld{Dir: dir, Uninstall: j.install}
	if err := j.limitOf(ctx, &old); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	loan, err := j.lent().Borrow(j.JournalDir, j.Target, j.server, started, old)
	if err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	defer func() {
		// On a separate connection: that of the backup may be broken.
		c, rerr := loan.Return(ctx, nil)
		if c != nil {
			c.Close()
		} else if rerr != nil {
			rerr = mended("the next backup will do it", "put the server back as it was: %w", rerr)
		}
		if rerr != nil {
			err = errors.Join(err, rerr)
		}
	}()
	if err := giveTo(dir, j.server.DataDir); err != nil {
		return err
	}
	if j.install {
		if err := j.conn.Exec(ctx, installClone); err != nil {
			return fmt.Errorf("%s: %w", installClone, err)
		}
	}
	if err := j.limit(ctx, old); err != nil {
		return err
	}
	_, err = change.Execute(ctx, j.cloneSteps(dir, parts), change.Log{})
	return err
}

// cloneSteps are what is done between what is changed and what is put back. The directory is made when the plan is carried out.
func (j *job) cloneSteps(dir string, parts *sink) change.Plan {
	copied := filepath.Join(dir, "data")
	return change.Plan{
		{What: fmt.Sprintf("CLONE LOCAL DATA DIRECTORY below %s: the server writes a copy of its InnoDB files there, about %s, while it keeps running", j.WorkDir, digits.Bytes(j.plan.Bytes)),
			Do: func(ctx context.Context) error { return j.clone(ctx, copied) }},
		{What: "start a second server on the copy for a moment, without network and without a binary log: it applies the redo log and says which position the copy is of",
			Do: func(ctx context.Context) error { return j.settle(ctx, dir, copied) }},
		{What: "store the files in parts, compressed, and remove the copy",
			Do: func(ctx context.Context) error { return j.send(ctx, copied, parts) }},
	}
}

// errCopying says that another process copies the server.
var errCopying = errors.New("another risso copies this server")

// lent is what a backup by CLONE changes on a server for its time. All of it except the limit outlives a restart.
func (j *job) lent() change.Kind[cloneOld] {
	return change.Kind[cloneOld]{
		Name: "clone", Busy: errCopying, Within: time.Minute, Stays: true, Back: j.putBack,
		Final: func(error) bool { return true }, // the next backup does it
	}
}

// recoverClone puts back what a killed backup left.
func (j *job) recoverClone(ctx context.Context) error {
	left, err := j.lent().Restore(ctx, j.Target, j.JournalDir, false)
	if errors.Is(err, errCopying) {
		return mended("wait for it to end", "%w", err)
	}
	if err != nil || left == nil {
		return err
	}
	// The plan was made of what the killed one left.
	state, err := read.PluginState(ctx, j.conn, "clone")
	j.install = state == ""
	return err
}

// putBack removes the copy and the plug-in.
func (j *job) putBack(ctx context.Context, conn *mysql.Conn, old cloneOld) error {
	if err := j.endClones(ctx, conn, old.Dir); err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Base(old.Dir), cloneDirPrefix) {
		if err := os.RemoveAll(old.Dir); err != nil {
			return fmt.Errorf("remove the copy: %w", err)
		}
	}
	return putBackPlugin(ctx, conn, old)
}

// putBackPlugin removes the plug-in again, or restores the limit that it had.
func putBackPlugin(ctx context.Context, conn *mysql.Conn, old cloneOld) error {
	if !old.Uninstall && old.Limit == 0 {
		return nil
	}
	state, err := read.PluginState(ctx, conn, "clone")
	switch {
	case err != nil:
		return mended("the next backup will do it", "put the server's plug-in back as it was: %w", err)
	case state == "":
		return nil
	case old.Uninstall:
		if err := takeOut(ctx, conn); err != nil {
			return mended("the next backup will do it, or run "+uninstallClone+" yourself", "remove the plug-in: %w", err)
		}
		return nil
	}
	now, err := readLimit(ctx, conn)
	if err == nil && now == old.Limit { // else somebody has changed it since
		err = conn.Exec(ctx, limitStatement(old.Was))
	}
	if err != nil {
		return mended("the next backup will do it, or run "+limitStatement(old.Was)+" yourself", "put the limit of CLONE back: %w", err)
	}
	return nil
}

// endTime is how long a server may take to let go of a copy that was ended.
const endTime = 30 * time.Second

// takeOut uninstalls the plug-in as soon as the server lets it go.
func takeOut(ctx context.Context, conn *mysql.Conn) error {
	for deadline := time.Now().Add(endTime); ; {
		err := conn.Exec(ctx, uninstallClone)
		if mysql.ErrorNumber(err) != errno.PluginInUse || time.Now().After(deadline) || delay.For(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// endClones ends what a killed Risso left running, and waits until it is gone: the server goes on copying when its client is
// gone.
func (j *job) endClones(ctx context.Context, conn *mysql.Conn, dir string) error {
	for deadline := time.Now().Add(endTime); ; {
		left, err := j.killClones(ctx, conn, dir)
		if err != nil || left == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a copy of the server into %s was ended %s ago and is still running", dir, endTime)
		}
		if delay.For(ctx, 100*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// killClones kills the sessions that copy into dir and says how many there were.
func (j *job) killClones(ctx context.Context, conn *mysql.Conn, dir string) (left int, err error) {
	rows, err := conn.Maps(ctx, j.server.SessionList())
	if err != nil {
		return 0, fmt.Errorf("look for a copy that is still running: %w", err)
	}
	for _, r := range rows {
		if !strings.HasPrefix(r["INFO"], cloneStatement) || !strings.Contains(r["INFO"], dir) {
			continue
		}
		id, err := strconv.ParseInt(r["ID"], 10, 64)
		if err != nil {
			return left, err
		}
		left++
		if err := mysql.Kill(ctx, j.Target, id); err != nil {
			return left, fmt.Errorf("end a copy that is still running: %w", err)
		}
	}
	return left, nil
}

// cloneStatement begins the statement that copies.
const cloneStatement = "CLONE /* risso: backup */ LOCAL DATA DIRECTORY = "

// giveTo lets the server write into a directory that Risso made: where Risso is root, the server is somebody else.
func giveTo(dir, datadir string) error {
	var st unix.Stat_t
	if err := unix.Stat(datadir, &st); err != nil {
		return fmt.Errorf("the server's files: %w", err)
	}
	if os.Geteuid() == int(st.Uid) {
		return nil
	}
	if err := os.Chown(dir, int(st.Uid), int(st.Gid)); err != nil {
		return mended("run Risso as the user that the server runs as, or as root", "let the server write the copy: %w", err)
	}
	return nil
}

// clone runs CLONE in a separate session. When ctx ends, the statement is ended too.
func (j *job) clone(ctx context.Context, dir string) error {
	conn, err := mysql.Connect(ctx, j.Target.WithPatience(0), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	watch, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		j.watchClone(watch)
	}()
	err = conn.Exec(ctx, cloneStatement+"'"+strings.ReplaceAll(strings.ReplaceAll(dir, `\`, `\\`), "'", "''")+"'")
	stop()
	<-done
	j.header.Snapshot = time.Now().UTC()
	if ctx.Err() != nil {
		// The driver has closed its end; the server goes on copying until it is told to stop.
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(context.Cause(ctx), mysql.Kill(kctx, j.Target, conn.Server.ConnectionID))
	}
	if err == nil {
		return nil
	}
	remedy := ""
	switch text := err.Error(); {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		remedy = j.plan.Needs
	case strings.Contains(text, "errno: 13"), strings.Contains(text, "Permission denied"):
		remedy = "the server may not write there (also AppArmor and SELinux forbid it): give a --work-dir that it may write to"
	}
	return mended(remedy, "CLONE: %w", err)
}

// watchClone reports how far CLONE is, for display only. A query that is running when ctx ends breaks its connection,
// so it has a separate one.
func (j *job) watchClone(ctx context.Context) {
	conn, err := mysql.Connect(ctx, j.Target, j.conn.Traffic())
	if err != nil {
		return
	}
	defer conn.Close()
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		rows, err := conn.Maps(ctx, "SELECT /* risso: how far is CLONE? */ COALESCE(SUM(ESTIMATE), 0) AS e, COALESCE(SUM(DATA), 0) AS d FROM performance_schema.clone_progress")
		if err != nil || len(rows) == 0 {
			return
		}
		total, _ := strconv.ParseInt(rows[0]["e"], 10, 64)
		done, _ := strconv.ParseInt(rows[0]["d"], 10, 64)
		j.Progress(Progress{Stage: "cloning", Done: done, Total: total})
	}
}

// recoveryFile is where a server notes, after its first start on a clone, which position the clone is of: the times of
// beginning and end in microseconds, file, offset, and from the fifth line on the GTID set (sql/clone_handler.cc calls it
// CLONE_RECOVERY_FILE).
const recoveryFile = "#clone/#status_recovery"

// settle lets a second server recover the copy, and reads the position from what it notes.
func (j *job) settle(ctx context.Context, dir, copied string) error {
	argv, err := serverCommand(j.server.PidFile, j.server.DataDir)
	if err != nil {
		j.note("the position in the binary log is not known, so nothing can be rolled forward: " + err.Error())
		return nil
	}
	j.Progress(Progress{Stage: "recovering the copy"})
	args, err := j.secondServer(ctx, dir, copied)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	text := ""
	go func() { // ends with ctx, at the latest with this function
		for ctx.Err() == nil {
			b, err := os.ReadFile(filepath.Join(copied, recoveryFile))
			// The socket is created after it: from then on the server can be shut down cleanly.
			if _, serr := os.Stat(filepath.Join(dir, "s")); err == nil && serr == nil {
				text = string(b)
				cancel(errSettled)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	p := program{path: argv[0], args: append(argv[1:], args...), dir: dir, soft: true}
	err = p.run(ctx, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out)
		return err
	})
	if !errors.Is(err, errSettled) {
		return fmt.Errorf("recover the copy: %w", err)
	}
	if j.header.Position, err = recoveredPosition(text); err != nil {
		return err
	}
	return nil
}

// errSettled ends the second server when it has said what it was started for.
var errSettled = errors.New("recovered")

// recoveredPosition reads a recoveryFile.
func recoveredPosition(text string) (p repo.Position, err error) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) < 4 {
		return p, fmt.Errorf("the recovered copy has no position: %q", text)
	}
	p.File = filepath.Base(lines[2])
	if p.Offset, err = strconv.ParseInt(lines[3], 10, 64); err != nil {
		return p, fmt.Errorf("the recovered copy has no position: %q", text)
	}
	if lines[2] == "" {
		p.File = ""
	}
	p.GTIDSet = strings.Join(lines[4:], "")
	return p, nil
}

// serverCommand is the command that runs the server's own program: all of its arguments up to the program's path, because a
// loader may come first.
func serverCommand(pidFile, datadir string) ([]string, error) {
	if !filepath.IsAbs(pidFile) {
		pidFile = filepath.Join(datadir, pidFile)
	}
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return nil, fmt.Errorf("find the server's program: %w", err)
	}
	pid := strings.TrimSpace(string(b))
	cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil {
		return nil, fmt.Errorf("find the server's program: %w", err)
	}
	var argv []string
	for _, a := range bytes.Split(bytes.TrimRight(cmdline, "\x00"), []byte{0}) {
		argv = append(argv, string(a))
		if base := filepath.Base(string(a)); base == "mysqld" || base == "mysqld-debug" {
			if len(argv) == 1 { // a bare name, such as mysqld: the kernel knows the path
				if argv[0], err = os.Readlink("/proc/" + pid + "/exe"); err != nil {
					return nil, fmt.Errorf("find the server's program: %w", err)
				}
			}
			return argv, nil
		}
	}
	return nil, fmt.Errorf("process %s of %s is not mysqld", pid, pidFile)
}

// secondServer are the arguments of a server that runs on the copy for a moment: it opens no port, writes no binary log,
// does not replicate, runs no events, and is reachable only through a socket in a private directory.
func (j *job) secondServer(ctx context.Context, dir, copied string) ([]string, error) {
	vars, err := read.Variables(ctx, j.conn, []string{"basedir", "plugin_dir", "lc_messages_dir", "character_sets_dir", "gtid_mode", "enforce_gtid_consistency", "lower_case_table_names",
		"innodb_page_size", "innodb_data_file_path", "innodb_checksum_algorithm"})
	if err != nil {
		return nil, err
	}
	args := []string{"--no-defaults", "--datadir=" + copied, "--socket=" + filepath.Join(dir, "s"), "--pid-file=" + filepath.Join(dir, "pid"), "--tmpdir=" + dir,
		"--skip-networking", "--skip-log-bin", "--event-scheduler=OFF", "--secure-file-priv=NULL", "--innodb-buffer-pool-size=64M", "--innodb-use-native-aio=OFF", "--loose-mysqlx=OFF",
		"--loose-skip-replica-start", "--loose-skip-slave-start", "--loose-persisted-globals-load=OFF", "--loose-auto-generate-certs=OFF",
		"--loose-caching-sha2-password-auto-generate-rsa-keys=OFF", "--loose-sha256-password-auto-generate-rsa-keys=OFF", "--loose-group-replication-start-on-boot=OFF"}
	for name, value := range vars {
		if value != "" {
			args = append(args, "--"+strings.ReplaceAll(name, "_", "-")+"="+value)
		}
	}
	if os.Geteuid() == 0 {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return nil, err
		}
		args = append(args, "--user="+userName(st.Uid))
	}
	return args, nil
}

// cloneLeft says what does not belong in a backup: what belongs to one running server, or what any server recreates.
func cloneLeft(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return top == "#innodb_temp" || top == "auto.cnf" || top == "mysql_upgrade_history" || strings.HasSuffix(top, ".pem") || strings.HasSuffix(top, ".dblwr") || strings.HasPrefix(top, "ibtmp")
}

// send streams the copied files into the repository.
func (j *job) send(ctx context.Context, dir string, parts *sink) error {
	w := newStreamWriter(parts)
	var moved int64
	var empty strings.Builder
	settled := j.header.Position.File != "" || j.header.Position.GTIDSet != ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		if cloneLeft(rel) || settled && strings.HasPrefix(rel, "#clone") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			entries, err := os.ReadDir(path)
			if len(entries) == 0 {
				empty.WriteString(rel + "\n")
			}
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		j.header.Stream.Files++
		return w.file(rel, &gated{ctx: ctx, r: f, gate: j.Gate, open: func() bool { return false }, moved: func(n int64) {
			j.Progress(Progress{Stage: "storing", Done: moved + n, Total: j.plan.Bytes})
		}, ended: func(n int64) { moved += n }})
	})
	if err == nil && empty.Len() > 0 {
		err = w.file(directoriesFile, strings.NewReader(empty.String()))
	}
	return err
}
