// Package drill proves backups: it restores one into a throw-away server, rolls it forward, checks it, measures how long
// that takes, and removes the server.
package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// Rolled is how far the server was rolled forward.
type Rolled struct {
	Transactions int64     `json:"transactions"`
	GTIDSet      string    `json:"gtid_set,omitempty"` // what the server has now
	Time         time.Time `json:"time"`               // time of the last transaction; the zero time if there was none
}

// Options say what Run does.
type Options struct {
	Repo   *repo.Repo
	Backup string // empty: the newest whole one
	Server string // as sandbox.Find understands it; empty: the one on this machine that is nearest to the backup's
	Logs   *Logs  // to roll forward with; nil: the snapshot only

	Checks    []Check  // of the user's own
	SkipCheck bool     // no CHECK TABLE, which reads everything
	Threads   int      // 0: 2
	Settings  []string // key=value for the server
	UseMemory int64    // for applying the redo log of a physical backup, in bytes
	Dir       string   // where sandboxes are; empty: the default

	Progress func(Progress) // may be called often, from several goroutines; nil: silence
}

// Progress is how far a drill is.
type Progress struct {
	Stage string // in words
	Done  int64  // bytes, or tables while they are checked
	Total int64  // 0: unknown
	Unit  string // bytes, tables
}

// unknownError is why nothing is known of the backup.
type unknownError struct{ error }

func (e *unknownError) Unwrap() error { return e.error }

func unknown(err error, remedy string) error { return &unknownError{fleet.WithRemedy(err, remedy)} }

// run is one drill.
type run struct {
	Options
	header repo.Header
	proof  Proof
	began  time.Time // of the present stage
	node   *sandbox.Node
	target mysql.Target

	filling filling
}

// Run makes a drill. Its proof says whether the backup is good; it is stored in the repository either way. An error
// means that nothing is known about the backup: there is none, no server for it is installed, or ctx ended. Whatever happens, what
// was restored is thrown away; what a killed drill left is removed by the next one.
func Run(ctx context.Context, o Options) (Proof, error) {
	r := &run{Options: o}
	if r.Threads <= 0 {
		r.Threads = 2
	}
	if r.Progress == nil {
		r.Progress = func(Progress) {}
	}
	if err := Sweep(ctx, o.Dir); err != nil {
		return Proof{}, fmt.Errorf("clean up after a killed drill: %w", err)
	}
	server, err := r.choose(ctx)
	if err != nil {
		return Proof{}, err
	}
	r.proof.Began = time.Now().UTC()
	r.began = r.proof.Began
	err = r.restore(ctx, server)
	if ctx.Err() != nil {
		return Proof{}, context.Cause(ctx)
	}
	if u := usage(err); u != nil {
		return Proof{}, u
	}
	if err != nil {
		r.proof.fail("%v", err)
	}
	return r.conclude(ctx)
}

// usage is an error that says nothing of the backup.
func usage(err error) error {
	var known *unknownError
	switch {
	case fault.Code(err) == fault.Usage, errors.As(err, &known), errors.Is(err, physical.ErrNoTool), errors.Is(err, physical.ErrNoRoom), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, repo.ErrNoKey), repo.Untrusted(err):
		return err
	}
	return nil
}

// choose finds the backup and the server for it.
func (r *run) choose(ctx context.Context) (sandbox.Server, error) {
	m, err := r.Repo.Manifest(ctx, r.Backup)
	if err != nil {
		return sandbox.Server{}, err
	}
	r.header = m.Header
	if err := m.Close(); err != nil {
		return sandbox.Server{}, err
	}
	server, notes, err := nearest(ctx, r.Server, r.header)
	if err != nil {
		return server, err
	}
	notes = append(notes, r.header.Notes...)
	if r.Backup == "" {
		note, err := r.Repo.AheadNote(ctx, r.header.ID, time.Now())
		if err != nil {
			return server, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	host, _ := os.Hostname() // for the eye only
	r.proof = Proof{Format: ProofFormat, Backup: r.header.ID, Kind: string(r.header.Kind), Server: r.header.Server.Name, Taken: r.header.Snapshot, Host: host,
		On: string(server.Family) + " " + server.Version, Of: r.header.Server.String(),
		Failures: []string{}, Notes: notes, LeftOut: slices.Clone(leftOut(r.header)), Stages: []Stage{}, Queries: []Query{}, Compare: Compare{Different: []string{}}, Check: Checked{Problems: []string{}}}
	return server, nil
}

// leftOut are the tables that the backup does not hold, as its tool could not.
func leftOut(h repo.Header) []string {
	if h.Stream == nil {
		return nil
	}
	return h.Stream.LeftOut
}

// stage ends a stage of the work.
func (r *run) stage(name string) {
	now := time.Now()
	r.proof.Stages = append(r.proof.Stages, Stage{Name: name, Seconds: now.Sub(r.began).Seconds()})
	r.began = now
}

// checked ends a stage that checks whether all is well: a server in trouble would answer in the meantime.
func (r *run) checked(name string) {
	r.stage(name)
	r.proof.Stages[len(r.proof.Stages)-1].Check = true
}

// restore makes a server of the backup, looks at it, and throws it away.
func (r *run) restore(ctx context.Context, server sandbox.Server) (err error) {
	if err := r.room(); err != nil {
		return err
	}
	name, release, err := sandbox.Claim(r.Dir, purpose)
	if err != nil {
		return err
	}
	defer release()
	o := sandbox.Options{Name: name, Dir: r.Dir, Servers: []string{server.Binary}, Settings: r.settings(server), StartTimeout: 10 * time.Minute}
	if r.header.Kind == repo.Physical {
		o.Data = r.files
	}
	s, err := sandbox.Up(ctx, o)
	if err != nil {
		return r.unstarted(ctx, o, fmt.Errorf("start a server: %w", err))
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if derr := s.Down(clean); derr != nil {
			err = errors.Join(err, fmt.Errorf("remove the server: %w", derr))
		}
	}()
	r.node = s.Primary()
	r.stage("start")
	if r.target, err = mysql.ParseTarget(r.node.DSN); err != nil {
		return err
	}
	return r.whileAlive(ctx, r.prove)
}

// unstarted says of whom it speaks that no server started: of the backup only where its files were not made, or where an empty server starts
// and one with them does not.
func (r *run) unstarted(ctx context.Context, o sandbox.Options, err error) error {
	switch {
	case errors.Is(err, sandbox.ErrKilled):
		return killed(sandbox.ErrKilled)
	case killedTool(err):
		return killed(fmt.Errorf("the tool was killed by something else: %w", err))
	case r.filling == begun && unreachable(err):
		return unknown(err, "repeat the drill when the place can be read; nothing is recorded about the backup")
	case r.filling == begun && (len(r.Settings) == 0 || errors.Is(err, repo.ErrDamaged)):
		return err // of its files
	case len(r.Settings) > 0:
		return unknown(err, "try it without --option")
	case r.filling == filled:
		o.Data = nil
		if s, empty := sandbox.Up(ctx, o); empty == nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return errors.Join(fmt.Errorf("%w; an empty one starts", err), s.Down(clean))
		}
	}
	return unknown(err, "risso sandbox up shows whether a server starts on this machine; nothing is recorded about the backup")
}

// unreachable reports whether an error is that the network did not return what the place holds, or that this machine had not enough of
// something: then nothing is known of the backup.
func unreachable(err error) bool {
	_, op := errors.AsType[*net.OpError](err)
	_, request := errors.AsType[*url.Error](err)
	for _, is := range []error{fs.ErrPermission, os.ErrDeadlineExceeded, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		op = op || errors.Is(err, is)
	}
	return op || request
}

// How far the data directory of a physical backup is.
type filling int

const (
	untouched filling = iota
	begun
	filled
)

// prove puts rows into the server if they are not there yet, rolls forward, and checks the result.
func (r *run) prove(ctx context.Context) error {
	if r.header.Kind == repo.Logical {
		if err := r.load(ctx); err != nil {
			return err
		}
	}
	if err := r.count(ctx); err != nil {
		return err
	}
	if err := r.roll(ctx); err != nil {
		return err
	}
	for _, s := range r.proof.Stages {
		if !s.Check {
			r.proof.Recovery += s.Seconds
		}
	}
	return r.check(ctx)
}

// settings are those of the throw-away server: nothing that is restored may act by itself.
func (r *run) settings(server sandbox.Server) []string {
	list := []string{"event_scheduler=OFF"}
	if r.header.Kind == repo.Logical {
		list = append(list, "local_infile=ON") // rows are loaded by LOAD DATA LOCAL
		// Names of tables are compared as the source compares them, and pages are as large; later on neither can be changed.
		for _, name := range []string{"lower_case_table_names", "innodb_page_size"} {
			if v := r.header.Server.Variables[name]; v != "" {
				list = append(list, name+"="+v)
			}
		}
	}
	return append(list, r.Settings...)
}

// files fills the data directory from a physical backup.
func (r *run) files(ctx context.Context, dir string) ([]string, error) {
	r.filling = begun
	got, err := physical.Restore(ctx, physical.RestoreOptions{Repo: r.Repo, Backup: r.header.ID, Datadir: dir, Threads: r.Threads, UseMemory: r.UseMemory,
		Progress: func(p physical.Progress) {
			r.Progress(Progress{Stage: p.Stage, Done: p.Done, Total: p.Total, Unit: "bytes"})
		}})
	if err != nil {
		return nil, err
	}
	r.proof.Bytes = got.Bytes
	r.proof.Stages = append(r.proof.Stages, Stage{Name: "fetch", Seconds: got.Fetch.Seconds()}, Stage{Name: "prepare", Seconds: got.Prepare.Seconds()})
	r.began = time.Now()
	r.filling = filled
	return got.Settings, nil
}

func (r *run) bytes(stage string, done, total int64) {
	r.Progress(Progress{Stage: stage, Done: done, Total: total, Unit: "bytes"})
}

// unlogged looks for schemas of the restored server whose changes the mirrored logs do not have: they stay as in the snapshot.
func (r *run) unlogged(ctx context.Context) error {
	list, err := r.tables(ctx, false)
	if err != nil {
		return err
	}
	var schemas []string
	for _, t := range list {
		schemas = append(schemas, t.schema)
	}
	slices.Sort(schemas)
	if lost := r.header.Server.Unlogged(slices.Compact(schemas)); len(lost) > 0 {
		r.proof.fail("rolling forward does not cover %s: the server's binary logs leave out changes there (binlog_do_db, binlog_ignore_db)", strings.Join(lost, ", "))
	}
	return nil
}

// conclude says what came of it, and stores that.
func (r *run) conclude(ctx context.Context) (Proof, error) {
	hollow, err := r.Repo.Hollow(ctx)
	if err != nil {
		return r.proof, err
	}
	if why := hollow[r.proof.Backup]; why != "" {
		r.proof.fail("%s: that it can be restored proves nothing (if it is right that it holds so little: risso backup accept)", why)
	}
	r.proof.Ended = time.Now().UTC()
	r.proof.Passed = len(r.proof.Failures) == 0
	b, err := json.Marshal(r.proof)
	if err != nil {
		return r.proof, err
	}
	if err := r.Repo.AddProof(ctx, repo.Proof{Backup: r.proof.Backup, Time: r.proof.Began, JSON: b}); err != nil {
		return r.proof, err
	}
	return r.proof, nil
}

// Proofs reads what drills of a backup found, or of all (""), the oldest first. Of one whose Doubt says why it counts for nothing
// only backup and time are known, and they are no more than claimed.
func Proofs(ctx context.Context, r *repo.Repo, backup string) ([]Proof, error) {
	list := []Proof{}
	err := r.Proofs(ctx, backup, func(p repo.Proof) error {
		proof := Proof{Backup: p.Backup, Began: p.Time, Ended: p.Time, Passed: p.Passed()}
		switch {
		case p.Doubt != nil:
			proof.Passed, proof.Doubt = false, p.Doubt.Error()
		case p.JSON == nil: // encrypted: what was signed says nothing else
			proof.sealed = true
			if !proof.Passed {
				proof.Failures = []string{"what was wrong cannot be read without an identity"}
			}
		default:
			var read Proof
			if err := json.Unmarshal(p.JSON, &read); err != nil || read.Backup != p.Backup {
				proof.Passed, proof.Doubt = false, fmt.Errorf("it is not a valid proof: %w", repo.ErrDamaged).Error()
			} else {
				proof = read
			}
		}
		list = append(list, proof)
		return nil
	})
	slices.SortStableFunc(list, func(a, b Proof) int { return a.Began.Compare(b.Began) })
	return list, err
}
