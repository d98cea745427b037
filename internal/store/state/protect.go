package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// JobKind says what a job does.
type JobKind string

// The kinds of jobs, each the command of that name.
const (
	JobBackup   JobKind = "backup"
	JobDrill    JobKind = "drill"
	JobVerify   JobKind = "verify"
	JobPrune    JobKind = "prune"
	JobCopy     JobKind = "copy"
	JobMirror   JobKind = "mirror" // binlog follow: it runs for good
	JobChecksum JobKind = "checksum"
)

// Job is something that protects a server, done again and again.
type Job struct {
	ID       int64           `json:"id"`
	Name     string          `json:"name"` // unique, chosen by a person
	Kind     JobKind         `json:"kind"`
	Instance string          `json:"instance"` // empty: of no one server
	Place    string          `json:"place"`    // where the repository is; without a secret
	Schedule string          `json:"schedule"` // as data/schedule reads it; empty: only by hand
	Options  json.RawMessage `json:"options"`  // the flags of the command, without a secret; {} when empty
	Enabled  bool            `json:"enabled"`
	NextDue  time.Time       `json:"next_due"` // zero: not planned
	Created  time.Time       `json:"created"`
}

// Outcome is what came of a run.
type Outcome string

// The outcomes.
const (
	OutcomeRunning     Outcome = "running"
	OutcomeOK          Outcome = "ok"
	OutcomeFailed      Outcome = "failed"
	OutcomeInterrupted Outcome = "interrupted" // Risso was ended while it ran
)

// Run is one time that a job, or a person, did something.
type Run struct {
	ID       int64           `json:"id"`
	Job      int64           `json:"job"` // 0: by hand
	Kind     JobKind         `json:"kind"`
	Instance string          `json:"instance"`
	Place    string          `json:"place"`
	Backup   string          `json:"backup"` // the backup that was made, proven, verified or copied
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"` // zero while it runs
	Outcome  Outcome         `json:"outcome"`
	Text     string          `json:"text"`   // one sentence: the outcome, or why it failed and how to fix it
	Result   json.RawMessage `json:"result"` // whatever the job says; {} when empty
}

// mostRuns is how many runs are kept.
const mostRuns = 20_000

const jobColumns = `id, name, kind, instance, place, schedule, options, enabled, next_due, created`

func (j *Job) scan(r *sql.Rows) error {
	var kind, options string
	var due, created int64
	err := r.Scan(&j.ID, &j.Name, &kind, &j.Instance, &j.Place, &j.Schedule, &options, &j.Enabled, &due, &created)
	j.Kind, j.Options, j.NextDue, j.Created = JobKind(kind), json.RawMessage(options), fromStamp(due), fromStamp(created)
	return err
}

// object is JSON that is never empty.
func object(j json.RawMessage) string {
	if len(j) == 0 {
		return "{}"
	}
	return string(j)
}

// SaveJob stores a job: a new one when its ID is 0. ErrExists when another job has its name, ErrNotFound when there is
// none of its ID.
func (s *Store) SaveJob(ctx context.Context, j Job) (Job, error) {
	if j.Created.IsZero() {
		j.Created = time.Now()
	}
	j.Options = json.RawMessage(object(j.Options))
	id := j.ID
	err := s.change(ctx, "save job "+j.Name, func(ctx context.Context, tx *sql.Tx) error {
		j.ID = id
		var taken int64
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM protect_jobs WHERE name = ? AND id <> ?`, j.Name, j.ID).Scan(&taken); err != nil {
			return err
		}
		if taken > 0 {
			return ErrExists
		}
		args := []any{j.Name, string(j.Kind), j.Instance, j.Place, j.Schedule, string(j.Options), j.Enabled, stamp(j.NextDue)}
		if j.ID == 0 {
			r, err := tx.ExecContext(ctx, `INSERT INTO protect_jobs (name, kind, instance, place, schedule, options, enabled, next_due, created) VALUES (?,?,?,?,?,?,?,?,?)`,
				append(args, stamp(j.Created))...)
			if err != nil {
				return err
			}
			j.ID, err = r.LastInsertId()
			return err
		}
		r, err := tx.ExecContext(ctx, `UPDATE protect_jobs SET name=?, kind=?, instance=?, place=?, schedule=?, options=?, enabled=?, next_due=? WHERE id=?`, append(args, j.ID)...)
		return oneRow(r, err)
	})
	return j, err
}

// oneRow is ErrNotFound for a change that found no row.
func oneRow(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return ErrNotFound
}

// Jobs lists all jobs, by name.
func (s *Store) Jobs(ctx context.Context) ([]Job, error) {
	out := []Job{}
	err := s.each(ctx, "list jobs", func(r *sql.Rows) error {
		var j Job
		err := j.scan(r)
		out = append(out, j)
		return err
	}, `SELECT `+jobColumns+` FROM protect_jobs ORDER BY name`)
	return out, err
}

// SetNextDue says when a job is due; the zero time: it is not planned. ErrNotFound when there is no such job.
func (s *Store) SetNextDue(ctx context.Context, job int64, due time.Time) error {
	return s.change(ctx, "plan a job", func(ctx context.Context, tx *sql.Tx) error {
		return oneRow(tx.ExecContext(ctx, `UPDATE protect_jobs SET next_due = ? WHERE id = ?`, stamp(due), job))
	})
}

// RemoveJob forgets a job; its runs stay. ErrNotFound when there is none of that id.
func (s *Store) RemoveJob(ctx context.Context, id int64) error {
	return s.change(ctx, "remove a job", func(ctx context.Context, tx *sql.Tx) error {
		return oneRow(tx.ExecContext(ctx, `DELETE FROM protect_jobs WHERE id = ?`, id))
	})
}

// BeginRun notes that a run begins, with the outcome running, and returns its id.
func (s *Store) BeginRun(ctx context.Context, r Run) (id int64, err error) {
	if r.Began.IsZero() {
		r.Began = time.Now()
	}
	err = s.change(ctx, "begin a run", func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO protect_runs (job, kind, instance, place, backup, began, ended, outcome, text, result) VALUES (?,?,?,?,?,?,0,?,?,?)`,
			r.Job, string(r.Kind), r.Instance, r.Place, r.Backup, stamp(r.Began), string(OutcomeRunning), r.Text, object(r.Result))
		if err != nil {
			return err
		}
		if id, err = res.LastInsertId(); err != nil {
			return err
		}
		for _, old := range []string{`DELETE FROM protect_runs WHERE id <= ? - ?`, `DELETE FROM protect_progress WHERE run <= ? - ?`, `DELETE FROM protect_log WHERE run <= ? - ?`} {
			if _, err := tx.ExecContext(ctx, old, id, mostRuns); err != nil {
				return err
			}
		}
		return nil
	})
	return id, err
}

// EndRun notes how a run ended: its outcome, text, backup and result; now, where Ended is zero. ErrNotFound when there is
// none of that id.
func (s *Store) EndRun(ctx context.Context, r Run) error {
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	return s.change(ctx, "end a run", func(ctx context.Context, tx *sql.Tx) error {
		return oneRow(tx.ExecContext(ctx, `UPDATE protect_runs SET ended=?, outcome=?, text=?, backup=?, result=? WHERE id=?`,
			stamp(r.Ended), string(r.Outcome), r.Text, r.Backup, object(r.Result), r.ID))
	})
}

// InterruptRuns marks what is still noted as running: serve does so at its start, when nothing can run. It returns how many.
func (s *Store) InterruptRuns(ctx context.Context) (n int64, err error) {
	err = s.change(ctx, "mark interrupted runs", func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `UPDATE protect_runs SET outcome=?, ended=?, text='Risso ended while it ran' WHERE outcome=?`,
			string(OutcomeInterrupted), stamp(time.Now()), string(OutcomeRunning))
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// RunQuery picks runs. What is left zero does not narrow.
type RunQuery struct {
	Job      int64
	Instance string
	Kind     JobKind
	Limit    int // the newest so many; 0 means 100, at most 1,000
}

// Runs lists runs, the newest first.
func (s *Store) Runs(ctx context.Context, q RunQuery) ([]Run, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	out := []Run{}
	err := s.each(ctx, "list runs", func(r *sql.Rows) error {
		run, err := scanRun(r)
		out = append(out, run)
		return err
	}, `SELECT `+runColumns+` FROM protect_runs
		WHERE (?1 = 0 OR job = ?1) AND (?2 = '' OR instance = ?2) AND (?3 = '' OR kind = ?3)
		ORDER BY began DESC, id DESC LIMIT ?4`, q.Job, q.Instance, string(q.Kind), min(q.Limit, 1000))
	return out, err
}

const runColumns = `id, job, kind, instance, place, backup, began, ended, outcome, text, result`

func scanRun(r *sql.Rows) (Run, error) {
	var n Run
	var kind, outcome, result string
	var began, ended int64
	err := r.Scan(&n.ID, &n.Job, &kind, &n.Instance, &n.Place, &n.Backup, &began, &ended, &outcome, &n.Text, &result)
	n.Kind, n.Outcome, n.Result, n.Began, n.Ended = JobKind(kind), Outcome(outcome), json.RawMessage(result), fromStamp(began), fromStamp(ended)
	return n, err
}

// Backup is a whole backup that is in a repository.
type Backup struct {
	Place    string    `json:"place"`
	ID       string    `json:"id"` // as the repository calls it; sorts by time
	Instance string    `json:"instance"`
	Kind     string    `json:"kind"`   // logical or physical
	Parent   string    `json:"parent"` // the backup that an incremental one needs
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	Bytes    int64     `json:"bytes"`  // before compression
	Stored   int64     `json:"stored"` // that this backup added to the place
	Tables   int64     `json:"tables"`
	Rows     int64     `json:"rows"`
	Position string    `json:"position"` // GTID set or file:offset of the snapshot
}

// AddBackup notes a backup; one that is known already is replaced.
func (s *Store) AddBackup(ctx context.Context, b Backup) error {
	return s.change(ctx, "note backup "+b.ID, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO protect_backups (place, id, instance, kind, parent, began, ended, bytes, stored, tables, rows, position)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`, b.Place, b.ID, b.Instance, b.Kind, b.Parent, stamp(b.Began), stamp(b.Ended), b.Bytes, b.Stored, b.Tables, b.Rows, b.Position)
		return err
	})
}

// KeepBackups forgets those of a place that are not among ids: what was pruned from the repository.
func (s *Store) KeepBackups(ctx context.Context, place string, ids []string) error {
	list, err := json.Marshal(append([]string{}, ids...))
	if err != nil {
		return fmt.Errorf("forget backups: %w", err)
	}
	return s.change(ctx, "forget backups", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM protect_backups WHERE place = ? AND id NOT IN (SELECT value FROM json_each(?))`, place, string(list))
		return err
	})
}

// Backups lists the backups of an instance, or all when it is empty, the newest first. Limit 0 means 1,000.
func (s *Store) Backups(ctx context.Context, instance string, limit int) ([]Backup, error) {
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	out := []Backup{}
	err := s.each(ctx, "list backups", func(r *sql.Rows) error {
		var b Backup
		var began, ended int64
		err := r.Scan(&b.Place, &b.ID, &b.Instance, &b.Kind, &b.Parent, &began, &ended, &b.Bytes, &b.Stored, &b.Tables, &b.Rows, &b.Position)
		b.Began, b.Ended = fromStamp(began), fromStamp(ended)
		out = append(out, b)
		return err
	}, `SELECT place, id, instance, kind, parent, began, ended, bytes, stored, tables, rows, position FROM protect_backups
		WHERE (?1 = '' OR instance = ?1) ORDER BY began DESC, id DESC LIMIT ?2`, instance, limit)
	return out, err
}

// Drill is what a rehearsed restore found.
type Drill struct {
	ID       int64           `json:"id"`
	Place    string          `json:"place"`
	Backup   string          `json:"backup"`
	Instance string          `json:"instance"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"`
	Passed   bool            `json:"passed"`
	Recovery float64         `json:"recovery"` // seconds until a server answered with the data
	Reached  time.Time       `json:"reached"`  // the time that the data was rolled forward to; zero: the snapshot's
	Text     string          `json:"text"`
	Proof    json.RawMessage `json:"proof"` // as in the repository
}

// AddDrill notes a drill and returns its id; that of the first time if it is known already.
func (s *Store) AddDrill(ctx context.Context, d Drill) (id int64, err error) {
	err = s.change(ctx, "note a drill", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO protect_drills (place, backup, instance, began, ended, passed, recovery, reached, text, proof)
			VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`, d.Place, d.Backup, d.Instance, stamp(d.Began), stamp(d.Ended), d.Passed, d.Recovery, stamp(d.Reached), d.Text, object(d.Proof))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT id FROM protect_drills WHERE place = ? AND backup = ? AND began = ?`, d.Place, d.Backup, stamp(d.Began)).Scan(&id)
	})
	return id, err
}

// Drills lists the drills of an instance, or all when it is empty, the newest first. Limit 0 means 1,000.
func (s *Store) Drills(ctx context.Context, instance string, limit int) ([]Drill, error) {
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	out := []Drill{}
	err := s.each(ctx, "list drills", func(r *sql.Rows) error {
		var d Drill
		var began, ended, reached int64
		var proof string
		err := r.Scan(&d.ID, &d.Place, &d.Backup, &d.Instance, &began, &ended, &d.Passed, &d.Recovery, &reached, &d.Text, &proof)
		d.Began, d.Ended, d.Reached, d.Proof = fromStamp(began), fromStamp(ended), fromStamp(reached), json.RawMessage(proof)
		out = append(out, d)
		return err
	}, `SELECT id, place, backup, instance, began, ended, passed, recovery, reached, text, proof FROM protect_drills
		WHERE (?1 = '' OR instance = ?1) ORDER BY began DESC, id DESC LIMIT ?2`, instance, limit)
	return out, err
}

// Mirror is how far the mirrored binary logs of an instance reach.
type Mirror struct {
	Place    string    `json:"place"`
	Instance string    `json:"instance"`
	First    time.Time `json:"first"`   // of the unbroken run of logs that ends now
	Last     time.Time `json:"last"`    // up to when everything is mirrored: the newest event, or when the mirror was last level with the server
	Checked  time.Time `json:"checked"` // when somebody looked
	Gap      string    `json:"gap"`     // what is missing before First; empty: nothing
}

// SaveMirror notes how far a mirror reaches.
func (s *Store) SaveMirror(ctx context.Context, m Mirror) error {
	return s.change(ctx, "note a mirror", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO protect_mirrors (place, instance, first, last, checked, gap) VALUES (?,?,?,?,?,?)`,
			m.Place, m.Instance, stamp(m.First), stamp(m.Last), stamp(m.Checked), m.Gap)
		return err
	})
}

// Mirrors lists all mirrors.
func (s *Store) Mirrors(ctx context.Context) ([]Mirror, error) {
	out := []Mirror{}
	err := s.each(ctx, "list mirrors", func(r *sql.Rows) error {
		var m Mirror
		var first, last, checked int64
		err := r.Scan(&m.Place, &m.Instance, &first, &last, &checked, &m.Gap)
		m.First, m.Last, m.Checked = fromStamp(first), fromStamp(last), fromStamp(checked)
		out = append(out, m)
		return err
	}, `SELECT place, instance, first, last, checked, gap FROM protect_mirrors ORDER BY instance, place`)
	return out, err
}

// Protection is how well one instance is protected: a line of the page.
type Protection struct {
	Instance   string    `json:"instance"`
	LastBackup *Backup   `json:"last_backup"` // the newest whole one that is not dated ahead; if there is no other, one that is
	Ahead      *Backup   `json:"ahead"`       // the newest that is dated ahead of now: a clock was wrong
	LastProven *Backup   `json:"last_proven"` // the newest that a drill restored and found good
	ProvenAt   time.Time `json:"proven_at"`   // when that drill ended
	LastDrill  *Drill    `json:"last_drill"`  // good or bad
	Recovery   float64   `json:"recovery"`    // seconds to recover, as the last good drill measured; 0: unknown
	WindowFrom time.Time `json:"window_from"` // any moment from here
	WindowTo   time.Time `json:"window_to"`   // to here can be restored; both zero: only the backups themselves
	Gap        string    `json:"gap"`         // what is missing in the mirrored logs
	NextDue    time.Time `json:"next_due"`    // the next job of any kind; zero: nothing is planned
	NextJob    *Job      `json:"next_job"`
	Failing    []Run     `json:"failing"` // the last run of every job whose last run did not go well
	Running    []Run     `json:"running"`
}

// Protections returns how every instance is protected that has a backup, a job or a mirror, by instance.
func (s *Store) Protections(ctx context.Context) ([]Protection, error) {
	backups, err := s.Backups(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	drills, err := s.Drills(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	mirrors, err := s.Mirrors(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := s.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	last, err := s.lastRuns(ctx)
	if err != nil {
		return nil, err
	}
	return Protect(backups, drills, mirrors, jobs, last, time.Now()), nil
}

// lastRuns returns the last run of every job that there is, and every run that goes on.
func (s *Store) lastRuns(ctx context.Context) ([]Run, error) {
	var out []Run
	err := s.each(ctx, "list runs", func(r *sql.Rows) error {
		run, err := scanRun(r)
		out = append(out, run)
		return err
	}, `SELECT `+runColumns+` FROM protect_runs WHERE outcome = 'running' OR id IN
		(SELECT max(r.id) FROM protect_runs r JOIN protect_jobs j ON j.id = r.job GROUP BY r.job) ORDER BY id`)
	return out, err
}

// Protect joins facts into one line for each instance, as they are now; backups and drills come newest first.
func Protect(backups []Backup, drills []Drill, mirrors []Mirror, jobs []Job, runs []Run, now time.Time) []Protection {
	byInstance := map[string]*Protection{}
	of := func(instance string) *Protection {
		p := byInstance[instance]
		if p == nil {
			p = &Protection{Instance: instance, Failing: []Run{}, Running: []Run{}}
			byInstance[instance] = p
		}
		return p
	}
	for i := range backups {
		p, ahead := of(backups[i].Instance), fleet.Ahead(backups[i].Began, now)
		if ahead && p.Ahead == nil {
			p.Ahead = &backups[i]
		}
		if p.LastBackup == nil || p.LastBackup == p.Ahead && !ahead {
			p.LastBackup = &backups[i]
		}
	}
	for i := range drills {
		p := of(drills[i].Instance)
		if p.LastDrill == nil {
			p.LastDrill = &drills[i]
		}
		p.prove(drills[i], backups)
	}
	for _, m := range mirrors {
		p := of(m.Instance)
		from, to := Window(backups, m)
		if !to.IsZero() && (p.WindowTo.IsZero() || to.After(p.WindowTo)) {
			p.WindowFrom, p.WindowTo = from, to
		}
		p.Gap = m.Gap
	}
	for i, j := range jobs {
		p := of(j.Instance)
		if j.Enabled && !j.NextDue.IsZero() && (p.NextDue.IsZero() || j.NextDue.Before(p.NextDue)) {
			p.NextDue, p.NextJob = j.NextDue, &jobs[i]
		}
	}
	for _, r := range runs {
		switch p := of(r.Instance); r.Outcome {
		case OutcomeRunning:
			p.Running = append(p.Running, r)
		case OutcomeFailed, OutcomeInterrupted:
			p.Failing = append(p.Failing, r)
		}
	}
	out := make([]Protection, 0, len(byInstance))
	for _, p := range byInstance {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Protection) int {
		if a.Instance < b.Instance {
			return -1
		}
		return 1
	})
	return out
}

// prove takes a good drill into account: the newest backup that was proven counts, and the newest drill of it.
func (p *Protection) prove(d Drill, backups []Backup) {
	if !d.Passed {
		return
	}
	i := slices.IndexFunc(backups, func(b Backup) bool { return b.ID == d.Backup && b.Place == d.Place })
	if i < 0 || p.LastProven != nil && !backups[i].Began.After(p.LastProven.Began) {
		return // pruned since, so that it protects nothing any more; or not the newest
	}
	p.LastProven, p.ProvenAt, p.Recovery = &backups[i], d.Ended, d.Recovery
}

// Window is the span of time that backups and mirrored logs together can restore any moment of: from the end of the oldest
// backup of that place whose following logs are all there, to the newest event. Both are zero where no backup fits.
func Window(backups []Backup, m Mirror) (from, to time.Time) {
	for _, b := range backups {
		// The snapshot is between the two; which of them it is near to depends on the kind of the backup.
		if b.Place != m.Place || b.Instance != m.Instance || b.Began.Before(m.First) || b.Ended.After(m.Last) {
			continue
		}
		if from.IsZero() || b.Ended.Before(from) {
			from, to = b.Ended, m.Last
		}
	}
	return from, to
}
