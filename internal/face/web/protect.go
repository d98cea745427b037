package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/protect"
	"github.com/rissodb/risso/internal/store/state"
)

// ProtectFacts is what the pages of protection ask of the store of facts.
type ProtectFacts interface {
	Protections(ctx context.Context) ([]state.Protection, error)
	Backups(ctx context.Context, instance string, limit int) ([]state.Backup, error)
	Drills(ctx context.Context, instance string, limit int) ([]state.Drill, error)
	Mirrors(ctx context.Context) ([]state.Mirror, error)
	Jobs(ctx context.Context) ([]state.Job, error)
	Runs(ctx context.Context, q state.RunQuery) ([]state.Run, error)
	Run(ctx context.Context, id int64) (state.Run, error)
	RunNotes(ctx context.Context, run int64) (state.RunProgress, []state.RunLine, error)
}

// Protect is what the web face asks of the part of Risso that protects servers.
type Protect interface {
	// Want says how an instance should be protected; nil: nothing is configured for it.
	Want(instance string) *verdict.Want
	// Plan says what is configured, in words for the page; "" when nothing is.
	Plan(instance string) protect.Plan
	// Kept says about each backup of an instance, by place and ID, why retention keeps it; nil if nothing is configured.
	Kept(ctx context.Context, instance string) map[protect.BackupKey]protect.Kept
	Running() []jobs.Progress
	Start(job, by string) error // by names who did it
	Stop(run int64, by string) error
}

// moment is a time as the page reads it: unix seconds, null if there is none.
func moment(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	v := float64(t.UnixMilli()) / 1000
	return &v
}

type protectBackup struct {
	Place    string        `json:"place"`
	ID       string        `json:"id"`
	Kind     string        `json:"kind"`
	Parent   string        `json:"parent,omitempty"`
	Began    *float64      `json:"began"`
	Ended    *float64      `json:"ended"`
	Bytes    int64         `json:"bytes"`
	Stored   int64         `json:"stored"`
	Tables   int64         `json:"tables"`
	Rows     int64         `json:"rows"`
	Position string        `json:"position"`
	Kept     *protect.Kept `json:"kept,omitempty"`
	Proofs   []int64       `json:"proofs,omitempty"` // ids of the drills that restored it
	Proven   *float64      `json:"proven,omitempty"` // when one of them found it good, last
}

func backupOf(b *state.Backup) *protectBackup {
	if b == nil {
		return nil
	}
	return &protectBackup{Place: b.Place, ID: b.ID, Kind: b.Kind, Parent: b.Parent, Began: moment(b.Began), Ended: moment(b.Ended), Bytes: b.Bytes, Stored: b.Stored,
		Tables: b.Tables, Rows: b.Rows, Position: b.Position}
}

type protectRun struct {
	ID      int64           `json:"id"`
	Job     string          `json:"job"` // its name; empty: by hand
	Kind    state.JobKind   `json:"kind"`
	Place   string          `json:"place"`
	Backup  string          `json:"backup,omitempty"`
	Began   *float64        `json:"began"`
	Ended   *float64        `json:"ended"` // null while it runs
	Outcome state.Outcome   `json:"outcome"`
	Text    string          `json:"text"`
	Result  json.RawMessage `json:"result,omitempty"`
}

func runOf(r state.Run, names map[int64]string) protectRun {
	out := protectRun{ID: r.ID, Job: names[r.Job], Kind: r.Kind, Place: r.Place, Backup: r.Backup, Began: moment(r.Began), Ended: moment(r.Ended), Outcome: r.Outcome, Text: r.Text}
	if len(r.Result) > 2 { // {} says nothing
		out.Result = r.Result
	}
	return out
}

type protectJob struct {
	Name     string        `json:"name"`
	Kind     state.JobKind `json:"kind"`
	Schedule string        `json:"schedule"` // empty: by hand, or after another
	After    string        `json:"after,omitempty"`
	Due      *float64      `json:"due"`
	Last     *protectRun   `json:"last"`
}

type span struct {
	From *float64 `json:"from"`
	To   *float64 `json:"to"`
}

// protectRunning is a run that goes on, or a job that waits.
type protectRunning struct {
	jobs.Progress
	Began *float64 `json:"began"`
	Left  *float64 `json:"left"` // seconds; null: unknown
}

// protectRow is how one server is protected.
type protectRow struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Address  string           `json:"address"`
	Watched  bool             `json:"watched"`
	Plan     *protect.Plan    `json:"plan"`             // null: nothing is configured
	Source   string           `json:"source,omitempty"` // the server whose backups hold the data of this one, a replica without a plan
	State    verdict.State    `json:"state"`
	Words    string           `json:"words"`
	Findings []fleet.Finding  `json:"findings"`
	Last     *protectBackup   `json:"last_backup"`
	Proven   *protectBackup   `json:"last_proven"`
	ProvenAt *float64         `json:"proven_at"`
	Recovery *float64         `json:"recovery"` // seconds, as the last good drill measured
	Window   *span            `json:"window"`
	Gap      string           `json:"gap,omitempty"`
	Next     *protectJob      `json:"next"`
	Running  []protectRunning `json:"running"`
	Jobs     []protectJob     `json:"jobs"`
}

// protected returns how every server is protected, the worst first.
func (s *server) protected(r *http.Request) (any, error) {
	rows, err := s.protectRows(r.Context(), time.Now())
	if err != nil {
		return nil, err
	}
	return map[string]any{"now": float64(time.Now().UnixMilli()) / 1000, "servers": rows}, nil
}

func (s *server) protectRows(ctx context.Context, now time.Time) ([]protectRow, error) {
	list, err := s.Facts.Protections(ctx)
	if err != nil {
		return nil, err
	}
	mirrors, err := s.Facts.Mirrors(ctx)
	if err != nil {
		return nil, err
	}
	allJobs, err := s.protectJobs(ctx)
	if err != nil {
		return nil, err
	}
	running := s.protectRunning()
	facts := map[string]*verdict.Facts{}
	rows := []protectRow{}
	for _, p := range list {
		if p.Instance != "" {
			facts[p.Instance] = &verdict.Facts{Protection: p}
		}
	}
	for _, m := range mirrors {
		if f := facts[m.Instance]; f != nil {
			f.Mirrors = append(f.Mirrors, m)
		}
	}
	add := func(row protectRow, f verdict.Facts) {
		s.protectFill(&row, f, now)
		row.Jobs, row.Running = allJobs[row.ID], running[row.ID]
		for i, j := range row.Jobs {
			if j.Due != nil && (row.Next == nil || *j.Due < *row.Next.Due) {
				row.Next = &row.Jobs[i]
			}
		}
		rows = append(rows, row)
	}
	sources, seen := s.Live.Follows(now), map[string]bool{}
	for _, i := range s.Live.Fleet(now) {
		if i.Kind != fleet.KindServer {
			continue
		}
		f := facts[i.ID]
		if f == nil {
			f = &verdict.Facts{Protection: state.Protection{Instance: i.ID}}
		}
		f.Source = s.protectedSource(i.ID, sources, list)
		seen[i.ID] = true
		add(protectRow{ID: i.ID, Name: i.Name, Address: i.Address, Watched: true}, *f)
	}
	for id, f := range facts { // not watched any more, but there is something of it
		if f.LastBackup != nil && !seen[id] {
			add(protectRow{ID: id, Name: id}, *f)
		}
	}
	rank := map[verdict.State]int{verdict.Critical: 0, verdict.Warning: 1, verdict.OK: 2}
	slices.SortFunc(rows, func(a, b protectRow) int {
		if d := rank[a.State] - rank[b.State]; d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return rows, nil
}

// protectedSource goes up from a replica to the first server that is or should be backed up; "" if there is none.
func (s *server) protectedSource(id string, sources map[string][]string, known []state.Protection) string {
	seen, list := map[string]bool{id: true}, sources[id] // two servers may be each other's replicas
	for len(list) > 0 {
		next := list[0]
		if list = list[1:]; seen[next] {
			continue
		}
		seen[next] = true
		planned := s.Protect != nil && s.Protect.Want(next) != nil
		if planned || slices.ContainsFunc(known, func(p state.Protection) bool { return p.Instance == next && p.LastBackup != nil }) {
			return next
		}
		list = append(list, sources[next]...)
	}
	return ""
}

// protectFill fills in what is known and what to say about it.
func (s *server) protectFill(row *protectRow, f verdict.Facts, now time.Time) {
	var want *verdict.Want
	if s.Protect != nil {
		if want = s.Protect.Want(row.ID); want != nil {
			plan := s.Protect.Plan(row.ID)
			row.Plan = &plan
		}
	}
	v := verdict.Judge(f, want, now)
	if want == nil && f.LastBackup == nil {
		row.Source = f.Source
	}
	row.State, row.Words, row.Findings = v.State, v.Words, v.Findings
	row.Last, row.Proven, row.ProvenAt, row.Gap = backupOf(f.LastBackup), backupOf(f.LastProven), moment(f.ProvenAt), f.Gap
	if f.Recovery > 0 {
		row.Recovery = &f.Recovery
	}
	if !f.WindowTo.IsZero() {
		row.Window = &span{moment(f.WindowFrom), moment(f.WindowTo)}
	}
}

// protectJobs returns the jobs of each instance with their last runs.
func (s *server) protectJobs(ctx context.Context) (map[string][]protectJob, error) {
	list, err := s.Facts.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]protectJob{}
	for _, j := range list {
		p := protectJob{Name: j.Name, Kind: j.Kind, Schedule: j.Schedule, Due: moment(j.NextDue)}
		var o struct {
			After string `json:"after"`
		}
		if json.Unmarshal(j.Options, &o) == nil {
			p.After = o.After
		}
		runs, err := s.Facts.Runs(ctx, state.RunQuery{Job: j.ID, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 {
			last := runOf(runs[0], map[int64]string{j.ID: j.Name})
			p.Last = &last
		}
		out[j.Instance] = append(out[j.Instance], p)
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b protectJob) int { return kindOrder(a.Kind) - kindOrder(b.Kind) })
	}
	return out, nil
}

// kindOrder is the order in which jobs are shown.
func kindOrder(k state.JobKind) int {
	return slices.Index([]state.JobKind{state.JobBackup, state.JobCopy, state.JobPrune, state.JobMirror, state.JobDrill, state.JobVerify, state.JobChecksum}, k)
}

// protectRunning returns what is running for each instance. Mirrors run forever and are listed as jobs.
func (s *server) protectRunning() map[string][]protectRunning {
	out := map[string][]protectRunning{}
	if s.Protect == nil {
		return out
	}
	for _, p := range s.Protect.Running() {
		row := protectRunning{Progress: p, Began: moment(p.Began)}
		if p.Left >= 0 {
			row.Left = &p.Left
		}
		out[p.Instance] = append(out[p.Instance], row)
	}
	return out
}

// protectDrill is what a rehearsed restore found.
type protectDrill struct {
	ID       int64           `json:"id"`
	Place    string          `json:"place"`
	Backup   string          `json:"backup"`
	Began    *float64        `json:"began"`
	Ended    *float64        `json:"ended"`
	Passed   bool            `json:"passed"`
	Recovery float64         `json:"recovery"`
	Reached  *float64        `json:"reached"`
	Text     string          `json:"text"`
	Proof    json.RawMessage `json:"proof"`
}

// mostShown is how many backups, drills and runs the page of a server begins with.
const mostShown = 400

// protectedServer returns everything about one server.
func (s *server) protectedServer(r *http.Request) (any, error) {
	ctx, id := r.Context(), r.URL.Query().Get("id")
	rows, err := s.protectRows(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rows, func(p protectRow) bool { return p.ID == id })
	if i < 0 {
		return nil, failed(http.StatusNotFound, "no server "+strconv.Quote(id), "GET /api/protect lists them")
	}
	drills, err := s.Facts.Drills(ctx, id, mostShown)
	if err != nil {
		return nil, err
	}
	backups, err := s.Facts.Backups(ctx, id, mostShown)
	if err != nil {
		return nil, err
	}
	runs, err := s.Facts.Runs(ctx, state.RunQuery{Instance: id, Limit: mostShown})
	if err != nil {
		return nil, err
	}
	names, err := s.jobNames(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]protectRun, len(runs))
	for i, n := range runs {
		shown[i] = runOf(n, names)
	}
	return map[string]any{"now": float64(time.Now().UnixMilli()) / 1000, "server": rows[i], "backups": s.backupsOf(ctx, id, backups, drills), "drills": drillsOf(drills), "runs": shown}, nil
}

// jobNames returns the names of all jobs by their numbers.
func (s *server) jobNames(ctx context.Context) (map[int64]string, error) {
	list, err := s.Facts.Jobs(ctx)
	names := make(map[int64]string, len(list))
	for _, j := range list {
		names[j.ID] = j.Name
	}
	return names, err
}

// backupsOf returns backups with their proofs and what retention says.
func (s *server) backupsOf(ctx context.Context, id string, list []state.Backup, drills []state.Drill) []*protectBackup {
	var kept map[protect.BackupKey]protect.Kept
	if s.Protect != nil {
		kept = s.Protect.Kept(ctx, id)
	}
	out := []*protectBackup{}
	for i := range list {
		b := backupOf(&list[i])
		if k, ok := kept[protect.BackupKey{Place: b.Place, ID: b.ID}]; ok {
			b.Kept = &k
		}
		for _, d := range drills {
			if d.Backup != b.ID || d.Place != b.Place {
				continue
			}
			b.Proofs = append(b.Proofs, d.ID)
			if d.Passed && b.Proven == nil { // drills come newest first
				b.Proven = moment(d.Ended)
			}
		}
		out = append(out, b)
	}
	return out
}

func drillsOf(list []state.Drill) []protectDrill {
	out := make([]protectDrill, len(list))
	for i, d := range list {
		out[i] = protectDrill{ID: d.ID, Place: d.Place, Backup: d.Backup, Began: moment(d.Began), Ended: moment(d.Ended), Passed: d.Passed, Recovery: d.Recovery,
			Reached: moment(d.Reached), Text: d.Text, Proof: d.Proof}
	}
	return out
}

// protectRunDetail returns one run with its progress and log.
func (s *server) protectRunDetail(r *http.Request) (any, error) {
	id, err := runID(r)
	if err != nil {
		return nil, err
	}
	n, err := s.Facts.Run(r.Context(), id)
	if errors.Is(err, state.ErrNotFound) {
		return nil, failed(http.StatusNotFound, fmt.Sprintf("no run %d", id), "GET /api/protect/server?id=… lists them")
	}
	if err != nil {
		return nil, err
	}
	p, lines, err := s.Facts.RunNotes(r.Context(), id)
	if err != nil {
		return nil, err
	}
	type line struct {
		Time *float64 `json:"time"`
		Text string   `json:"text"`
	}
	shown := make([]line, len(lines))
	for i, l := range lines {
		shown[i] = line{moment(l.Time), l.Text}
	}
	names, err := s.jobNames(r.Context())
	if err != nil {
		return nil, err
	}
	out := map[string]any{"run": runOf(n, names), "instance": n.Instance, "stage": p.Stage, "done": p.Done, "total": p.Total, "unit": p.Unit, "noted": moment(p.Time), "log": shown, "running": nil}
	for _, list := range s.protectRunning() {
		for _, row := range list {
			if row.Run == id {
				out["running"] = row
			}
		}
	}
	return out, nil
}

func runID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.URL.Query().Get("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, badRequest("id must be the number of a run", "GET /api/protect/server?id=… lists them")
	}
	return id, nil
}

var errNothingToStart = failed(http.StatusConflict, "nothing is configured to protect a server", "write a protect block into the config file of risso serve")

// startJob makes a job due now. It may have to wait for another of its server.
func (s *server) startJob(r *http.Request) (any, error) {
	if s.Protect == nil {
		return nil, errNothingToStart
	}
	name := r.URL.Query().Get("job")
	instance, _, _ := strings.Cut(name, "/")
	if err := s.touches(r, instance); err != nil {
		return nil, err
	}
	switch err := s.Protect.Start(name, viewerOf(r).Who()); {
	case errors.Is(err, jobs.ErrNoJob):
		return nil, failed(http.StatusNotFound, "no job "+strconv.Quote(name), "GET /api/protect lists them")
	case errors.Is(err, jobs.ErrRunning):
		return nil, failed(http.StatusConflict, name+" runs already", "")
	case err != nil:
		return nil, err
	}
	s.did(r, instance, name, name+" was started")
	return map[string]any{"started": name}, nil
}

// stopRun ends a run that goes on.
func (s *server) stopRun(r *http.Request) (any, error) {
	if s.Protect == nil {
		return nil, errNothingToStart
	}
	id, err := runID(r)
	if err != nil {
		return nil, err
	}
	var of []string
	if n, err := s.Facts.Run(r.Context(), id); err == nil && n.Instance != "" {
		of = []string{n.Instance}
	}
	if err := s.touches(r, of...); err != nil {
		return nil, err
	}
	switch err := s.Protect.Stop(id, viewerOf(r).Who()); {
	case errors.Is(err, jobs.ErrNoRun):
		return nil, failed(http.StatusConflict, fmt.Sprintf("run %d is not in progress", id), "")
	case err != nil:
		return nil, err
	}
	s.did(r, strings.Join(of, ""), "run "+strconv.FormatInt(id, 10), fmt.Sprintf("run %d was stopped", id))
	return map[string]any{"stopping": id}, nil
}
