// Package postgres starts throw-away PostgreSQL servers on this machine, for benchmarks that compare MySQL with it. Unless
// a setting says otherwise, a server listens only on a Unix socket, in a folder that only its account may enter. PostgreSQL
// refuses to run as root: for root it runs as the account postgres.
package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox"
)

// Account is the server's superuser, which needs no password on the socket; for root it is also the account that runs the server.
const Account = "postgres"

// Options say which server to start.
type Options struct {
	Spec     string   // postgres, or postgres-15 for a major version; "": postgres, the newest
	Name     string   // by which Remove finds it; "": any
	Settings []string // name=value, written into postgresql.conf
}

// Server is one that Up started.
type Server struct {
	Dir     string // of the socket, the data and the log; it goes with Down
	Data    string // data directory
	Log     string // file
	Bin     string // folder of PostgreSQL's programs
	Version string // such as 15.14
}

var (
	specForm    = pattern.Lazy(`^postgres(?:-([0-9]+))?$`)
	nameForm    = pattern.Lazy(`^[a-z0-9-]{1,40}$`)
	settingForm = pattern.Lazy(`^([a-z_][a-z0-9_.]*)=([^\n\r\x00]*)$`)
	versionForm = pattern.Lazy(`[0-9]+\.[0-9]+`)
)

// Find returns the folder of the programs that a spec names, the newest if it leaves the version open. Its error wraps
// sandbox.ErrNoServer when there are none.
func Find(spec string) (bin string, err error) {
	m := specForm().FindStringSubmatch(cmp.Or(spec, "postgres"))
	if m == nil {
		return "", fmt.Errorf("%w: %q: write postgres, or postgres-15 for a major version", sandbox.ErrNoServer, spec)
	}
	var found []string
	// Where Debian and Red Hat put them.
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		dirs, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, d := range dirs {
			if _, err := os.Stat(filepath.Join(d, "initdb")); err == nil && (m[1] == "" || major(d) == number(m[1])) {
				found = append(found, d)
			}
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%w: %s (looked in /usr/lib/postgresql/*/bin and /usr/pgsql-*/bin)", sandbox.ErrNoServer, cmp.Or(spec, "postgres"))
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(major(a), major(b)) }), nil
}

// major is the version in the path of a folder of programs.
func major(bin string) int {
	return number(strings.TrimPrefix(filepath.Base(filepath.Dir(bin)), "pgsql-"))
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // 0 is older than any
	return n
}

// CheckSettings says which setting cannot be written into an option file.
func CheckSettings(settings []string) error {
	for _, s := range settings {
		if !settingForm().MatchString(s) {
			return fmt.Errorf("setting %q: write it as name=value, such as shared_buffers=256MB", s)
		}
	}
	return nil
}

// Up starts a server. When it fails, it has left nothing.
func Up(ctx context.Context, o Options) (_ *Server, err error) {
	bin, err := Find(o.Spec)
	if err != nil {
		return nil, err
	}
	if err := CheckSettings(o.Settings); err != nil {
		return nil, err
	}
	s := &Server{Bin: bin}
	if s.Dir, err = makeFolder(o.Name); err != nil {
		return nil, err
	}
	s.fill()
	if err := s.make(ctx, o.Settings); err != nil {
		return nil, errors.Join(err, s.Down(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// fill derives the paths from the folder.
func (s *Server) fill() { s.Data, s.Log = filepath.Join(s.Dir, "data"), filepath.Join(s.Dir, "log") }

// folder is where the server of a name lies. It is not among the sandboxes: the account postgres may not enter root's home.
func folder(name string) string { return filepath.Join(os.TempDir(), "risso-postgres-"+name) }

func makeFolder(name string) (dir string, err error) {
	switch {
	case name == "":
		dir, err = os.MkdirTemp("", "risso-pg-")
	case !nameForm().MatchString(name):
		return "", fmt.Errorf("%q is not a name for a server", name)
	default:
		dir = folder(name)
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("create a folder for PostgreSQL: %w", err)
	}
	id, err := account()
	if err == nil && id != nil {
		err = os.Chown(dir, int(id.Uid), int(id.Gid))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("create a folder for PostgreSQL: %w", err), os.Remove(dir))
	}
	return dir, nil
}

// make makes the data directory and starts the server.
func (s *Server) make(ctx context.Context, settings []string) error {
	out, err := s.run(ctx, "postgres", "--version")
	if err != nil {
		return err
	}
	s.Version = versionForm().FindString(out)
	if _, err := s.run(ctx, "initdb", "-D", s.Data, "-A", "trust", "-U", Account, "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(s.Data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	var b bytes.Buffer
	for _, line := range append([]string{"listen_addresses=", "unix_socket_directories=" + s.Dir}, settings...) {
		m := settingForm().FindStringSubmatch(line)
		fmt.Fprintf(&b, "%s = '%s'\n", m[1], strings.ReplaceAll(m[2], "'", "''"))
	}
	_, err = conf.Write(b.Bytes())
	if err = errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	return s.Start(ctx)
}

// account is the account that runs the server; nil: that of this program.
func account() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(Account)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no account for it: %w", err)
	}
	return &syscall.Credential{Uid: uint32(number(u.Uid)), Gid: uint32(number(u.Gid))}, nil
}

// run runs one of PostgreSQL's programs as the server's account, out of reach of the terminal's Ctrl-C.
func (s *Server) run(ctx context.Context, name string, args ...string) (string, error) {
	id, err := account()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.Bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.Dir, &syscall.SysProcAttr{Setpgid: true, Credential: id}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("%s of PostgreSQL: %w: %s", name, err, s.reason(out))
	}
	return string(out), nil
}

// reason is what the log says last that is an error, or else what the program said last.
func (s *Server) reason(said []byte) string {
	wanted := []string{"FATAL:", "ERROR:"}
	log, err := os.ReadFile(s.Log)
	if err == nil {
		for _, line := range slices.Backward(strings.Split(string(log), "\n")) {
			for _, level := range wanted {
				_, text, ok := strings.Cut(line, level)
				if ok && strings.HasSuffix(text, "contains errors") {
					wanted = []string{"LOG:"} // which error comes first
				} else if ok {
					return strings.TrimSpace(text)
				}
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return lines[len(lines)-1]
}

// URL is the address of a database; "": the database postgres.
func (s *Server) URL(database string) string {
	return "postgres:///" + url.PathEscape(cmp.Or(database, "postgres")) + "?user=" + Account + "&host=" + url.QueryEscape(s.Dir)
}

// Start starts the server, and waits until it answers.
func (s *Server) Start(ctx context.Context) error {
	_, err := s.run(ctx, "pg_ctl", "-D", s.Data, "-w", "-t", "120", "-l", s.Log, "start")
	return err
}

// Stop ends the server in order; its data stay.
func (s *Server) Stop(ctx context.Context) error { return s.end(ctx, "fast") }

// Kill ends the server without a checkpoint, as a crash does; its data stay.
func (s *Server) Kill(ctx context.Context) error { return s.end(ctx, "immediate") }

// end does nothing where none runs.
func (s *Server) end(ctx context.Context, how string) error {
	if _, err := os.Stat(filepath.Join(s.Data, "postmaster.pid")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := s.run(ctx, "pg_ctl", "-D", s.Data, "-w", "-t", "120", "-m", how, "stop")
	return err
}

// Down ends the server and removes all of it.
func (s *Server) Down(ctx context.Context) error {
	if err := s.Kill(ctx); err != nil && s.lives() {
		return err
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("remove a PostgreSQL server: %w", err)
	}
	return nil
}

// lives reports whether the process in the pid file is there; one that a crash left names none.
func (s *Server) lives() bool {
	b, err := os.ReadFile(filepath.Join(s.Data, "postmaster.pid"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid := number(strings.TrimSpace(first))
	return pid > 1 && syscall.Kill(pid, 0) == nil
}

// Remove removes what a killed process left under a name; if there is nothing that is no error.
func Remove(ctx context.Context, name string) error {
	if !nameForm().MatchString(name) {
		return fmt.Errorf("%q is not a name for a server", name)
	}
	s := &Server{Dir: folder(name)}
	st, err := os.Lstat(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove a PostgreSQL server: %w", err)
	}
	id, err := account()
	if err != nil {
		return err
	}
	ours := uint32(os.Getuid())
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || !st.IsDir() || sys.Uid != ours && (id == nil || sys.Uid != id.Uid) {
		return fmt.Errorf("%s belongs to somebody else", s.Dir)
	}
	s.fill()
	// Any version of pg_ctl ends a server: it sends a signal.
	if s.Bin, err = Find(""); err != nil {
		return err
	}
	return s.Down(ctx)
}
