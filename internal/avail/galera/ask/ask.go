// Package ask learns what galera judges: it asks the members of a cluster, found from any one of them, and reads what nodes that are down left in
// their data directories. It changes nothing.
package ask

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// ErrNoCluster is the reason of Look when the server is in no cluster.
var ErrNoCluster = errors.New("the server is no member of a Galera cluster (wsrep_on, wsrep_provider)")

// How much of an error log is read: a conflict takes ten lines.
const (
	logLines = 50_000
	logBytes = 8 << 20
)

// Patience is how long one member may take to answer.
const Patience = 10 * time.Second

// Look asks a server, and the members that it knows by the same account, twice, with a pause between in which the counters move. A member that does
// not answer is told as not seen.
func Look(ctx context.Context, target mysql.Target, pause time.Duration) ([]galera.Reading, time.Duration, error) {
	first, err := open(ctx, target)
	if err != nil {
		return nil, 0, err
	}
	defer first.conn.Close()
	if !first.status.On {
		return nil, 0, fleet.WithRemedy(ErrNoCluster, "name a member of the cluster with --dsn")
	}
	list := []*member{first}
	list = append(list, others(ctx, target, first)...)
	for _, m := range list[1:] {
		if m.conn != nil {
			defer m.conn.Close()
		}
	}
	list = unique(list)
	began := time.Now()
	each(list, func(m *member) { m.before(ctx) })
	if err := delay.For(ctx, pause); err != nil {
		return nil, 0, err
	}
	looked := time.Since(began)
	each(list, func(m *member) { m.after(ctx) })
	each(list, func(m *member) { m.more(ctx) })
	out := make([]galera.Reading, len(list))
	for i, m := range list {
		out[i] = m.Reading
	}
	return out, looked, ctx.Err()
}

// member is a server that is asked.
type member struct {
	galera.Reading
	target mysql.Target
	conn   *mysql.Conn
	status *wsrep.Status
}

func each(list []*member, f func(*member)) {
	var wg sync.WaitGroup
	for _, m := range list {
		if m.conn != nil {
			wg.Go(func() { f(m) })
		}
	}
	wg.Wait()
}

// open connects and asks for the first time.
func open(ctx context.Context, target mysql.Target) (*member, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	conn, err := mysql.Connect(ctx, target.WithPatience(2*Patience), nil) // ctx ends before the driver's own limit, after which a server that hangs looks like one that broke off
	if err != nil {
		return nil, inTime(ctx, target, err)
	}
	s, err := wsrep.Read(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, inTime(ctx, target, fmt.Errorf("%s: %w", target, err))
	}
	m := &member{target: target, conn: conn, status: &s, Reading: galera.Reading{Address: target.Address(), Before: &s}}
	m.Unknown = s.ReadMore(ctx, conn)
	return m, nil
}

// inTime is an error as it is, unless patience ended: the driver then tells of a connection that broke.
func inTime(ctx context.Context, target mysql.Target, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &mysql.Error{Target: target.String(), Class: mysql.ClassTimeout, Err: err}
	}
	return err
}

// others connects to the members that one knows.
func others(ctx context.Context, target mysql.Target, first *member) []*member {
	addresses := peers(first.status, target)
	list := make([]*member, len(addresses))
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() {
			m, err := open(ctx, target.WithAddress(a))
			if err != nil {
				m = &member{Reading: galera.Reading{Address: a, Trouble: trouble(err)}}
			}
			list[i] = m
		})
	}
	wg.Wait()
	return slices.DeleteFunc(list, func(m *member) bool { // what the configuration names and nobody else knows may not be a server's address at all
		return m.conn == nil && !slices.Contains(first.status.Peers, m.Address) && !slices.ContainsFunc(first.status.Members, func(p wsrep.Peer) bool { return p.Address == m.Address })
	})
}

func trouble(err error) fleet.Trouble {
	t := fleet.Trouble{What: "cannot be asked", Why: err.Error(), Remedy: fleet.RemedyOf(err)}
	if e, ok := errors.AsType[*mysql.Error](err); ok {
		t.Why = e.Reason()
	}
	return t
}

// peers are the addresses of the others: those of the view, those of the last primary component, and the hosts of the configuration, at the port that
// the first one has.
func peers(s *wsrep.Status, target mysql.Target) (list []string) {
	own := s.Address
	add := func(a string) {
		if a == "" || strings.EqualFold(a, "AUTO") || a == own || slices.Contains(list, a) {
			return
		}
		list = append(list, a)
	}
	for _, a := range s.Peers {
		add(a)
	}
	for _, m := range s.Members {
		add(m.Address)
	}
	port := strconv.Itoa(max(target.Port(), 0))
	if port == "0" {
		if _, port, _ = net.SplitHostPort(s.Address); port == "" {
			port = "3306"
		}
	}
	var hosts []string
	for _, g := range s.GroupAddresses() {
		h, _, err := net.SplitHostPort(g)
		if err != nil {
			h = g
		}
		hosts = append(hosts, h)
	}
	for _, h := range hosts {
		if known := func(a string) bool { return a == h || strings.HasPrefix(a, h+":") }; !known(own) && !slices.ContainsFunc(list, known) {
			add(net.JoinHostPort(h, port))
		}
	}
	return list
}

// unique leaves out servers that were reached by two addresses.
func unique(list []*member) (out []*member) {
	for _, m := range list {
		if m.status == nil || m.status.ID == "" || !slices.ContainsFunc(out, func(o *member) bool { return o.status != nil && o.status.ID == m.status.ID }) {
			out = append(out, m)
		}
	}
	return out
}

func (m *member) again(ctx context.Context) (*wsrep.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	s, err := wsrep.Read(ctx, m.conn)
	if err != nil {
		return nil, inTime(ctx, m.target, err)
	}
	s.Members, s.Tables = m.status.Members, m.status.Tables
	return &s, nil
}

// before reads the counters at the begin of the look; a member that does not answer any more is not seen.
func (m *member) before(ctx context.Context) {
	if s, err := m.again(ctx); err == nil {
		m.Before = s
	} else {
		m.Before, m.Trouble = nil, trouble(err)
	}
}

// after reads them at its end.
func (m *member) after(ctx context.Context) {
	if m.Before == nil {
		return
	}
	if s, err := m.again(ctx); err == nil {
		m.After = s
	} else {
		m.Before, m.Trouble = nil, trouble(err)
	}
}

// more reads the error log: the server's own words about it, or its file if that is on this machine.
func (m *member) more(ctx context.Context) {
	if m.Before == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if lines, err := read.ErrorLog(ctx, m.conn); err == nil && len(lines) > 0 {
		m.Log, m.Logged = lines, true
		return
	}
	here, why, err := m.conn.SameMachine(ctx, m.target)
	switch {
	case err != nil:
		m.NoLog = err.Error()
	case !here:
		m.NoLog = why
	default:
		name := read.ErrorLogFile(map[string]string{"log_error": m.status.ErrorLog, "datadir": m.status.Datadir})
		if name == "" {
			m.NoLog = "its error log is no file"
			return
		}
		if m.Log, err = read.TailLog(name, logLines, logBytes); err != nil {
			m.NoLog = err.Error()
			return
		}
		m.Logged = true
	}
}

// Datadir reads what a node that is down left in its data directory, or in a folder with copies of it: grastate.dat, gvwstate.dat and error logs, which
// are files there that end in .err or .log; more are named. With a name of its own, the argument is NAME=DIR.
func Datadir(argument string, logs []string) (galera.Node, error) {
	name, dir, named := strings.Cut(argument, "=")
	if !named || strings.Contains(name, "/") {
		name, dir = "", argument
	}
	info, err := os.Stat(dir)
	if err != nil {
		return galera.Node{}, err
	}
	if !info.IsDir() {
		return galera.Node{}, fmt.Errorf("%s is no folder", dir)
	}
	text := func(file string) (string, error) {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
		return string(b), err
	}
	grastate, err := text("grastate.dat")
	if err != nil {
		return galera.Node{}, err
	}
	gvwstate, err := text("gvwstate.dat")
	if err != nil {
		return galera.Node{}, err
	}
	before, lines, err := logsOf(dir, logs)
	if err != nil {
		return galera.Node{}, err
	}
	if grastate == "" && gvwstate == "" && len(before)+len(lines) == 0 {
		return galera.Node{}, fleet.WithRemedy(fmt.Errorf("%s has no grastate.dat, gvwstate.dat or error log", dir), "name the data directory of a node of the cluster, or a copy of these files")
	}
	n := galera.Down(name, dir, grastate, gvwstate, before, lines)
	if _, err := os.Stat(filepath.Join(dir, sstInProgress)); err == nil && n.Blank != "" {
		n.Blank = galera.BlankCopy
	}
	return n, nil
}

// sstInProgress is a file that the scripts of MariaDB and Percona keep while they copy another node's data into a data directory.
const sstInProgress = "sst_in_progress"

// logsOf are the lines of a node's error logs: before, of those that were last written to before its last view was, which is when it last took part.
func logsOf(dir string, logs []string) (before, lines []string, err error) {
	var joined time.Time
	if info, err := os.Stat(filepath.Join(dir, "gvwstate.dat")); err == nil {
		joined = info.ModTime()
	}
	for _, file := range byTime(append(slices.Clone(logs), logsIn(dir)...)) {
		more, err := read.TailLog(file, logLines, logBytes)
		if err != nil {
			return nil, nil, err
		}
		if info, err := os.Stat(file); err == nil && info.ModTime().Before(joined) {
			before = append(before, more...)
		} else {
			lines = append(lines, more...)
		}
	}
	return before, lines, nil
}

// logsIn are the error logs in a folder.
func logsIn(dir string) (list []string) {
	for _, form := range []string{"*.err", "*.log"} {
		found, _ := filepath.Glob(filepath.Join(dir, form)) // the form is good
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				list = append(list, f)
			}
		}
	}
	return list
}

// byTime sorts files by when they were last written to, so that what is told last is read last.
func byTime(files []string) []string {
	times := map[string]time.Time{}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			times[f] = info.ModTime()
		}
	}
	slices.SortStableFunc(files, func(a, b string) int { return times[a].Compare(times[b]) })
	return files
}
