// Package dump takes a logical backup: the definitions and the rows of a server, as they were at one moment, into a
// repository. Several sessions read; each chunk of rows is hashed, and stored if the repository does not have it yet.
package dump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
)

// Options are what is dumped, and how.
type Options struct {
	Target mysql.Target
	Name   string // of the server, as people call it
	Tool   string // what takes the backup, with its version
	Select Selection

	Threads  int // sessions that read
	Snapshot snapshot.Options
	Gate     Gate  // nil: no limits
	ChunkAim int64 // bytes of rows that a chunk should have; 0: by the number of threads

	// Partial takes what the account may see if it may not see all that is asked for; the backup is marked as partial.
	Partial bool

	// Smaller says that the backup may hold much less than the one before it: see repo.Hollow.
	Smaller bool

	NoAccounts bool
	NoRows     bool // definitions only
	NoHistory  bool // of tables WITH SYSTEM VERSIONING only the rows of now

	NoCompression bool // for places that are faster than the processor; large rows are compressed nevertheless

	Progress func(Progress)    // may be nil; called from several goroutines
	Waiting  func(repo.Holder) // called when a prune is waited for; nil: silence
}

// Gate admits work while the server can take it.
type Gate interface {
	// Pass waits until n more bytes may be read.
	Pass(ctx context.Context, n int64) error
}

// Progress is how far a backup is.
type Progress struct {
	Phase            string // what is done now, in words
	Bytes, Estimated int64  // of rows
	Rows             int64
	Tables, Of       int64
	Stored           int64 // what the place got
}

// Result is what a backup did.
type Result struct {
	Header      repo.Header   `json:"backup"`
	Method      string        `json:"method"` // how the consistent view was taken
	Tries       int           `json:"tries"`
	Threads     int           `json:"threads"`
	DDLBlocked  bool          `json:"schema_changes_blocked"`
	Chunks      int64         `json:"chunks"`
	NewChunks   int64         `json:"new_chunks"`
	Seconds     float64       `json:"seconds"`
	ListSeconds float64       `json:"list_seconds"` // of these, until the snapshot was taken
	Held        time.Duration `json:"-"`
	Hollow      string        `json:"hollow,omitempty"` // why it proves nothing and replaces no other backup; "": it counts
}

// aims: memory is some five times the aim for each thread.
const (
	largeAim = 8 << 20
	smallAim = 4 << 20
	smallFor = 4 // more threads than this take the small one
)

// ErrNothing says that the server has nothing of what was asked for.
var ErrNothing = errors.New("nothing on the server matches")

// ErrChanged says that a schema was changed in a way that the snapshot does not survive.
var ErrChanged = errors.New("changed while the backup ran")

// job is a backup that runs.
type job struct {
	Options
	repo  *repo.Repo
	draft *repo.Draft
	snap  *snapshot.Snapshot
	list  *listing
	old   parent
	queue *queue
	group *errgroup.Group // who works on it
	slots chan struct{}   // of small chunks on their way to the place

	head  repo.Header
	begun repo.Header // as it was at first

	mu       sync.Mutex
	progress Progress
	chunks   int64
	fresh    int64
	notes    []string
	types    map[string]int64 // values in JSON documents whose types their text does not show, by type
	hollow   string
}

// Run takes a backup. When it fails the repository is as before, except for chunks that the next backup finds.
func Run(ctx context.Context, r *repo.Repo, o Options) (Result, error) {
	began := time.Now()
	o.Threads = max(1, o.Threads)
	if o.ChunkAim <= 0 {
		o.ChunkAim = largeAim
		if o.Threads > smallFor {
			o.ChunkAim = smallAim
		}
	}
	j := &job{Options: o, repo: r, draft: repo.NewDraft()}
	defer j.draft.Close()
	j.head = repo.Header{Format: repo.Format, ID: repo.NewID(began), Kind: repo.Logical, Began: began.UTC(), Tool: o.Tool, Partial: o.Select.Words(), Smaller: o.Smaller}
	if o.NoRows {
		j.head.Partial = append(j.head.Partial, "definitions only")
	}
	j.head.Server.Name = o.Name
	// First, so that no session on the server is open while a prune is waited for.
	if err := r.Begin(ctx, j.head, j.waiting); err != nil {
		return Result{}, fmt.Errorf("begin a backup: %w", err)
	}
	listed, err := j.take(ctx, began)
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return Result{}, errors.Join(err, r.Abandon(clean, j.head.ID))
	}
	return Result{Header: j.head, Method: string(j.snap.Method), Tries: j.snap.Tries, Threads: o.Threads, DDLBlocked: j.snap.DDLBlocked, Chunks: j.chunks, NewChunks: j.fresh,
		Seconds: time.Since(began).Seconds(), ListSeconds: listed.Seconds(), Hollow: j.hollow}, nil
}

// waiting says that the backup waits for a prune.
func (j *job) waiting(h repo.Holder) {
	j.report(func(p *Progress) { p.Phase = "waiting for " + h.String() })
	if j.Waiting != nil {
		j.Waiting(h)
	}
}

// take takes the backup that was begun, and says how long it took until there was a snapshot.
func (j *job) take(ctx context.Context, began time.Time) (listed time.Duration, err error) {
	j.report(func(p *Progress) { p.Phase = "listing tables" })
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if err := j.takeSnapshot(ctx, giveUp); err != nil {
		return 0, err
	}
	defer j.snap.Close()
	listed = time.Since(began)
	switch note, err := j.repo.SetBackNote(ctx, began); {
	case err != nil:
		return listed, err
	case note != "":
		j.notes = append(j.notes, note)
	}
	j.begun = j.head
	j.repo.Tell(j.head.ID, j.soFar)
	if err := j.work(ctx); err != nil {
		return listed, err
	}
	return listed, j.finish(ctx)
}

// takeSnapshot lists what is there and gets sessions that see one moment.
func (j *job) takeSnapshot(ctx context.Context, giveUp func(error)) (err error) {
	o := j.Options.Snapshot
	o.Sessions, o.Stalled = j.Threads, giveUp
	o.List = func(ctx context.Context, server mysql.Server, sessions []*mysql.Stream) (snapshot.Lists, error) {
		j.list, err = list(ctx, sessions, server, j.Options)
		if err != nil {
			return snapshot.Lists{}, err
		}
		locks := j.list.locks()
		j.queue = newQueue(j.list)
		return locks, nil
	}
	if j.snap, err = snapshot.Take(ctx, j.Target, o); err != nil {
		return err
	}
	s := j.snap
	j.head.Server = repo.Server{Identity: s.Server.ID, Name: j.Name, Server: s.Server.Server}
	j.head.Server.Variables, err = s.Variables(ctx)
	var filter mysql.LogFilter
	if err == nil {
		filter, err = s.LogFilter(ctx)
	}
	if err != nil {
		s.Close()
		return err
	}
	j.head.Server.LogDo, j.head.Server.LogIgnore = filter.Do, filter.Ignore
	if why := filter.String(); why != "" {
		j.notes = append(j.notes, "The server writes only some of its changes to the binary log: "+why+".")
	}
	j.head.Snapshot, j.head.LockSeconds = s.At, s.LockTime.Seconds()
	j.head.Position = repo.Position{File: s.Position.File, Offset: s.Position.Offset, GTIDSet: s.Position.GTIDSet, State: s.Position.State}
	for _, c := range s.Sources {
		j.head.Position.Sources = append(j.head.Position.Sources, repo.Channel{Name: c.Name, Host: c.Host, Port: c.Port, File: c.File, Offset: c.Offset, GTIDSet: c.GTIDSet})
	}
	if b := j.list.blind; b != nil {
		j.blind()
		j.notes = append(j.notes, "Partial: "+b.Error())
	}
	if len(j.list.unread) > 0 {
		j.blind()
	}
	j.notes = append(j.notes, s.Notes...)
	j.notes = append(j.notes, j.list.notes()...)
	return nil
}

// blind marks the backup as a part: there is more than the account may see.
func (j *job) blind() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if what := "what " + j.snap.Server.QuotedAccount() + " may see"; !slices.Contains(j.head.Partial, what) {
		j.head.Partial = append(j.head.Partial, what)
	}
}

// work reads everything.
func (j *job) work(ctx context.Context) (err error) {
	if j.old, err = findParent(ctx, j.repo, j.head.Server); err != nil {
		return err
	}
	j.head.Parent = j.old.id
	j.report(func(p *Progress) { p.Phase, p.Of, p.Estimated = "reading", int64(len(j.list.tables)), j.list.bytes })
	g, ctx := errgroup.WithContext(ctx)
	j.group, j.slots = g, make(chan struct{}, putsAtOnce)
	stop := context.AfterFunc(ctx, j.queue.wake)
	defer stop()
	if j.snap.Locked != nil {
		g.Go(func() error { return j.plainTables(ctx) })
	}
	g.Go(func() error { return (&worker{job: j, st: j.snap.Control()}).definitions(ctx) })
	if j.snap.Reserve() != nil {
		g.Go(func() error { return j.reserve(ctx) })
	}
	var readers sync.WaitGroup
	for _, st := range j.snap.Sessions {
		readers.Add(1)
		g.Go(func() error {
			defer readers.Done()
			w, err := newWorker(j, st)
			if err != nil {
				return err
			}
			defer w.close()
			return w.run(ctx)
		})
	}
	readers.Wait()
	j.snap.Over()
	if err := g.Wait(); err != nil {
		return err
	}
	return j.queue.unfinished()
}

// putsAtOnce is how many small chunks wait for the place's disk at a time: it makes many safe in about the time of one.
const putsAtOnce = 32

// later stores a small chunk while its worker goes on: the backup has it when all work is done. A worker of the job calls it.
func (j *job) later(ctx context.Context, put func(context.Context) error) error {
	select {
	case j.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	j.group.Go(func() error {
		defer func() { <-j.slots }()
		return put(ctx)
	})
	return nil
}

// plainTables reads the tables without transactions, which stay locked until then.
func (j *job) plainTables(ctx context.Context) error {
	w, err := newWorker(j, j.snap.Locked)
	if err != nil {
		return err
	}
	defer w.close()
	for _, t := range j.list.plain {
		if err := w.table(ctx, t); err != nil {
			return err
		}
	}
	return j.snap.Locked.Exec(ctx, "UNLOCK /* risso: backup */ TABLES")
}

// finish writes the manifest.
func (j *job) finish(ctx context.Context) error {
	changes, err := j.snap.SchemaChanges(ctx)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		if !j.snap.Held() {
			if err := j.altered(ctx, changes); err != nil {
				return err
			}
		}
		var words []string
		for what, n := range changes {
			words = append(words, what+" "+digits.Counted(n, "time"))
		}
		slices.Sort(words)
		j.notes = append(j.notes, fmt.Sprintf("Schemas were changed during the backup (%s). No table that was read is affected; views and programs may be newer than the rows.", strings.Join(words, ", ")))
	}
	j.noteTypes()
	j.head.Rows, j.head.Bytes, j.head.Stored, j.head.Tables, j.head.Schemas = j.progress.Rows, j.progress.Bytes, j.progress.Stored, j.progress.Tables, int64(len(j.list.schemas))
	if j.hollow, err = j.repo.HollowBeside(ctx, j.head); err != nil {
		return err
	}
	if j.hollow != "" {
		j.note("It proves nothing, and replaces no other backup: " + j.hollow)
	}
	j.head.Ended, j.head.Notes = time.Now().UTC(), j.notes
	j.report(func(p *Progress) { p.Phase = "writing the manifest" })
	return j.repo.Finish(ctx, j.head, j.draft)
}

// altered looks for tables that were altered since they were listed. A server that adds a column instantly, without touching
// rows, still lets an older snapshot read the table: with the new definition, which is not that of the moment.
func (j *job) altered(ctx context.Context, changes map[string]int64) error {
	err := j.findAltered(ctx, changes)
	if lost := j.snap.Lost(); lost != nil && errors.Is(err, ErrChanged) {
		return fmt.Errorf("%w; %w", err, lost)
	}
	return err
}

func (j *job) findAltered(ctx context.Context, changes map[string]int64) error {
	tables := append(j.list.tables, j.list.plain...) // all have been read: their order is free
	slices.SortFunc(tables, func(a, b define.TableInfo) int { return compareNames(a.TableName, b.TableName) })
	for _, schema := range j.list.schemas {
		now, err := define.Tables(ctx, j.snap.Control(), schema)
		if err != nil {
			return err
		}
		for _, n := range now {
			i, there := slices.BinarySearchFunc(tables, n.TableName, func(t define.TableInfo, name mysql.TableName) int { return compareNames(t.TableName, name) })
			// The server has seconds only: for a table that was made in the second of the list, that is not enough.
			if there && !j.snap.Kept(n.TableName) && (n.Created != tables[i].Created || n.Created >= j.list.at) {
				return fmt.Errorf("table %s was altered after the snapshot: %w", n.TableName, ErrChanged)
			}
		}
	}
	if changes["truncate"] == 0 {
		return nil
	}
	emptied, err := j.snap.Emptied(ctx)
	if err != nil || emptied == nil {
		return err
	}
	for _, t := range tables {
		if t.Engine != "" && !j.snap.Kept(t.TableName) && emptied(t.TableName) {
			return fmt.Errorf("table %s was truncated after the snapshot, or another one was and the account may not see which: %w", t.TableName, ErrChanged)
		}
	}
	return nil
}

// soFar is the header with what has been read and stored by now: what a backup that is killed leaves.
func (j *job) soFar() repo.Header {
	h := j.begun
	j.mu.Lock()
	defer j.mu.Unlock()
	h.Rows, h.Bytes, h.Stored, h.Tables, h.Schemas = j.progress.Rows, j.progress.Bytes, j.progress.Stored, j.progress.Tables, int64(len(j.list.schemas))
	return h
}

// report changes the progress and hands it on.
func (j *job) report(change func(*Progress)) {
	j.mu.Lock()
	change(&j.progress)
	p := j.progress
	j.mu.Unlock()
	if j.Progress != nil {
		j.Progress(p)
	}
}

func (j *job) note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.notes, text) { // a table may be begun twice
		j.notes = append(j.notes, text)
	}
}
