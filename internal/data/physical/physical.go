// Package physical copies a server's files into a backup repository, and turns them into a data directory again. It
// runs mariadb-backup, xtrabackup or the server's CLONE plug-in, whichever suits the server and is installed; the repository
// gets one stream of files in any case.
package physical

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Gate is called before bytes are taken from the server; it waits while the server should be spared.
type Gate interface {
	Pass(ctx context.Context, bytes int64) error
}

// Options say what Take does.
type Options struct {
	Target  mysql.Target
	Repo    *repo.Repo
	Name    string         // of the server, as people call it; empty: its address
	Tool    mysql.CopyTool // empty: the best that is there
	Threads int            // that compress; 0: 2

	// Incremental builds on the newest physical backup of the same server: only pages that were changed since are stored.
	// If there is none, or the tool cannot, the backup is whole, and a note says why.
	Incremental bool

	LockWait        time.Duration // how long a lock request of the tool may keep others waiting; 0: 5 s
	KillLongQueries bool          // end the statements that it waits for, once LockWait is over

	Install    bool   // consent to INSTALL PLUGIN clone; it is taken out again
	WorkDir    string // where CLONE puts the temporary copy; empty: next to the data directory, or the server's tmpdir
	JournalDir string // where what has to be put back is kept

	Rate int64 // bytes a second that CLONE may copy, as Gate does not reach into the server; 0: as it is set there

	Gate     Gate              // nil: as fast as it goes
	Waiting  func(repo.Holder) // called when a prune is waited for; nil: silence
	Planned  func(Plan) error  // called before anything is changed; an error ends it; nil: as planned
	Progress func(Progress)    // may be called often, from several goroutines; nil: silence
}

// Progress is how far a backup or a restore is.
type Progress struct {
	Stage string // what is done, in words
	Done  int64  // bytes
	Total int64  // 0: unknown
}

// Errors that a caller may want to distinguish.
var (
	// ErrNoTool says that nothing on this machine can copy the server's files.
	ErrNoTool = errors.New("no tool for a physical backup")
	// ErrRemote says that the server's files lie on another machine.
	ErrRemote = errors.New("the server's files are not on this machine")
	// ErrConsent says that the server would have to be changed first.
	ErrConsent = errors.New("the server has to be changed for that")
	// ErrNoRoom says that a disk is too full.
	ErrNoRoom = errors.New("not enough room")
	// ErrNotEmpty says that there are files where a backup should go.
	ErrNotEmpty = errors.New("the directory is not empty")
)

func mended(remedy string, format string, args ...any) error {
	return fleet.WithRemedy(fmt.Errorf(format, args...), remedy)
}

func (o *Options) defaults() {
	if o.Threads <= 0 {
		o.Threads = 2
	}
	if o.LockWait <= 0 {
		o.LockWait = 5 * time.Second
	}
	if o.Name == "" {
		o.Name = o.Target.Address()
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
}

// Plan is what a physical backup would do.
type Plan struct {
	Tool     mysql.CopyTool `json:"tool"`
	Version  string         `json:"version"` // version of the tool
	Path     string         `json:"path,omitempty"`
	Server   string         `json:"server"`
	Parent   string         `json:"parent,omitempty"` // the backup that it builds on
	Bytes    int64          `json:"bytes"`            // size of the files, if known
	Steps    change.Plan    `json:"steps"`
	Changes  []string       `json:"changes"` // changes to the server, put back at the end
	Needs    string         `json:"needs"`   // the privileges that the account needs, as a GRANT
	Notes    []string       `json:"notes"`
	Untested bool           `json:"untested,omitempty"` // the tool is untested with this version of Risso
}

// job is a backup that is being prepared or taken.
type job struct {
	Options
	conn    *mysql.Conn
	server  mysql.Server
	plan    Plan
	parent  *repo.Header
	replica bool
	leftOut []string // tables that CLONE leaves empty
	install bool     // the plug-in has to be installed

	mu     sync.Mutex // guards header.Notes while the tool runs
	header repo.Header
}

// Prepare says what Take would do, and changes nothing.
func Prepare(ctx context.Context, o Options) (Plan, error) {
	j, err := newJob(ctx, o)
	if err != nil {
		return Plan{}, err
	}
	defer j.conn.Close()
	return j.plan, nil
}

// newJob looks at the server, chooses the tool and plans. The caller closes conn.
func newJob(ctx context.Context, o Options) (*job, error) {
	o.defaults()
	conn, err := mysql.Connect(ctx, o.Target, nil)
	if err != nil {
		return nil, err
	}
	j := &job{Options: o, conn: conn, server: conn.Server}
	if err := j.prepare(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return j, nil
}

func (j *job) prepare(ctx context.Context) error {
	j.plan = Plan{Server: j.server.String(), Changes: []string{}, Notes: []string{}}
	if err := j.sameDisk(ctx); err != nil {
		return err
	}
	if err := j.chooseTool(ctx); err != nil {
		return err
	}
	j.plan.Needs = j.server.CopyGrants(j.plan.Tool)
	j.plan.Bytes = sizeOf(j.server.DataDir)
	if err := j.chooseParent(ctx); err != nil {
		return err
	}
	if j.plan.Tool == mysql.ToolClone {
		return j.planClone(ctx)
	}
	return j.planStream(ctx)
}

// sameDisk makes sure that the server's files can be reached.
func (j *job) sameDisk(ctx context.Context) error {
	same, why, err := j.conn.SameMachine(ctx, j.Target)
	if err != nil {
		return err
	}
	if !same {
		return mended("run Risso on the server's own machine, or take a logical backup: leave out --physical", "%w: %s", ErrRemote, why)
	}
	return readable(j.server.DataDir)
}

// Take takes a physical backup and returns its header. Until the manifest is written at the end there is no backup; when it
// fails, or when ctx ends, what was stored of it is removed again.
func Take(ctx context.Context, o Options) (repo.Header, error) {
	began := time.Now().UTC()
	h := repo.Header{Format: repo.Format, ID: repo.NewID(began), Kind: repo.Physical, Began: began}
	h.Server.Name = cmp.Or(o.Name, o.Target.Address())
	// First, so that no session on the server is open while a prune is waited for, and so that what it builds on is not removed.
	if err := o.Repo.Begin(ctx, h, o.Waiting); err != nil {
		return repo.Header{}, err
	}
	taken, err := take(ctx, o, h)
	if err != nil {
		return repo.Header{}, errors.Join(err, abandon(ctx, o.Repo, h.ID))
	}
	return taken, nil
}

// take takes a backup that was begun.
func take(ctx context.Context, o Options, h repo.Header) (repo.Header, error) {
	j, err := newJob(ctx, o)
	if err != nil {
		return h, err
	}
	defer j.conn.Close()
	if o.Planned != nil {
		if err := o.Planned(j.plan); err != nil {
			return h, err
		}
	}
	j.header = h
	j.header.Tool, j.header.Notes = string(j.plan.Tool)+" "+j.plan.Version, j.plan.Notes
	if err := j.describe(ctx); err != nil {
		return h, err
	}
	switch note, err := j.Repo.SetBackNote(ctx, h.Began); {
	case err != nil:
		return h, err
	case note != "":
		j.header.Notes = append(j.header.Notes, note)
	}
	if err := j.Repo.Note(ctx, j.header); err != nil {
		return h, err
	}
	draft := repo.NewDraft()
	defer draft.Close()
	if err := j.store(ctx, draft); err != nil {
		return h, err
	}
	j.header.Ended = time.Now().UTC()
	return j.header, j.Repo.Finish(ctx, j.header, draft)
}

// abandon removes what was stored, also when the user has had enough.
func abandon(ctx context.Context, r *repo.Repo, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := r.RemoveParts(ctx, id); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if err := r.Abandon(ctx, id); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// store runs the tool and stores its stream.
func (j *job) store(ctx context.Context, draft *repo.Draft) error {
	parts, err := newSink(ctx, j.Repo, j.header.ID, j.Threads, func(p repo.Part) error { return draft.Add(repo.Line{Part: &p}) })
	if err != nil {
		return err
	}
	defer parts.Close()
	if j.plan.Tool == mysql.ToolClone {
		err = j.runClone(ctx, parts)
	} else {
		err = j.runStream(ctx, parts)
	}
	if cerr := parts.Close(); cerr != nil && (err == nil || errors.Is(err, cerr)) {
		return cerr // storing failed: the rest follows from it
	}
	if err != nil {
		return err
	}
	j.header.Bytes, j.header.Stored = parts.sizes()
	return nil
}
