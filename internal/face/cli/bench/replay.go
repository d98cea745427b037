package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/digest/filter"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/replay"
	"github.com/rissodb/risso/internal/sqltext"
)

// bindOwn adds the flags of ontime, script and replay.
func (f *workloadFlags) bindOwn(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.Float64Var(&f.Scale, "scale", workload.Defaults().Scale, "ontime: millions of rows; fractions are allowed")
	fl.StringVar(&f.File, "file", "", "script: a file of YAML; replay: a slow log, or the output of risso digest --output json")
	fl.StringVar(&f.ReplayMode, "mode", "mix", "replay: mix (classes by their share of the calls) or timeline (sessions, order and gaps as recorded)")
	fl.Float64Var(&f.ReplaySpeed, "speed", 1, "replay with --mode timeline: 2 is twice as fast as recorded")
	fl.BoolVar(&f.ReplayWrites, "writes", false, "replay: also run INSERT, UPDATE, DELETE and REPLACE")
	fl.StringVar(&f.part.since, "since", "", "replay of a log: only what ran at this time or later: a time in UTC (2026-03-01, '2026-03-01 10:00'), or how long ago (2h, 7d)")
	fl.StringVar(&f.part.until, "until", "", "replay of a log: only what ran before this time")
	fl.StringVar(&f.part.filter, "filter", "", "replay of a log: only events that match this expression; see risso digest --help")
	f.command = cmd
}

// openOwn reads the recording of workload replay, which measure itself cannot: it does not know logs.
func (f *workloadFlags) openOwn(name string) (err error) {
	if f.File != "" && name != "script" && name != "replay" {
		return fault.Usagef("either %s or --file: that is for script and replay, and for scale without a workload", name)
	}
	if name != "replay" && f.part != (logPart{}) {
		return fault.Usagef("--since, --until and --filter are for replay")
	}
	if name != "replay" || f.File == "" || f.Dialect == drive.Postgres || f.Recording != nil {
		return nil // it is read already, or replay says what is wrong
	}
	if !slices.Contains(replay.Modes, f.ReplayMode) { // before a long log is read
		return fault.Usagef("--mode %q: %s", f.ReplayMode, strings.Join(replay.Modes, " or "))
	}
	f.Recording, err = ReadRecording(f.command.Context(), f.File, ReplayOf{Timeline: f.ReplayMode == "timeline", Writes: f.ReplayWrites, logPart: f.part})
	var p *fs.PathError
	if errors.As(err, &p) {
		return fault.New(fault.Usage, "", fmt.Errorf("--file %s: %w", p.Path, p.Err))
	}
	return err
}

// logPart says which events of a log are meant, as risso digest does.
type logPart struct{ since, until, filter string }

// options reads it.
func (l logPart) options() (o digest.Options, err error) {
	now := time.Now()
	if o.Since, err = flags.Moment(l.since, now, time.UTC); err != nil {
		return o, fault.Usagef("--since %w", err)
	}
	if o.Until, err = flags.Moment(l.until, now, time.UTC); err != nil {
		return o, fault.Usagef("--until %w", err)
	}
	if !o.Until.IsZero() && !o.Until.After(o.Since) {
		return o, fault.Usagef("--until is not after --since")
	}
	if l.filter == "" {
		return o, nil
	}
	f, err := filter.Compile(l.filter)
	if err != nil {
		return o, fault.New(fault.Usage, "", fmt.Errorf("--%w", err))
	}
	o.Filter = f
	return o, nil
}

// ReplayOf is the part of a recording to run.
type ReplayOf struct {
	logPart
	Timeline, Writes bool
}

// ReadRecording reads a log, or a digest.
func ReadRecording(ctx context.Context, path string, what ReplayOf) (*workload.Recording, error) {
	options, err := what.options() // before a long log is read
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	st, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fault.Usagef("--file %s: a folder", path)
	case !st.Mode().IsRegular(): // it is read from its beginning more than once
		return nil, fault.New(fault.Usage, "write what comes through it to a file", fmt.Errorf("--file %s: no file that can be read twice", path))
	}
	head, err := bufio.NewReader(file).Peek(1)
	if err != nil {
		return nil, fault.Usagef("--file %s: it is empty", path)
	}
	if head[0] == '{' {
		if what.logPart != (logPart{}) {
			return nil, fault.Usagef("--since, --until and --filter need a log: a digest has no single statements; give them to risso digest")
		}
		return readDigest(path, what.Writes)
	}
	return readLog(ctx, path, what, options)
}

// digestFile is what is needed of risso digest --output json.
type digestFile struct {
	Classes []struct {
		ID, Fingerprint string
		Calls           int64
		Avg, P95, Max   float64
		Databases       []string
		Samples         []digest.Sample
	}
}

func readDigest(path string, writes bool) (*workload.Recording, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d digestFile
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fault.Usagef("--file %s: not what risso digest --output json writes: %w", path, err)
	}
	out := &workload.Recording{LeftOut: map[string]int64{}}
	for i, c := range d.Classes {
		class := workload.RecordedClass{Before: workload.Before{Class: c.ID, Fingerprint: c.Fingerprint, Calls: c.Calls, Avg: c.Avg, P95: c.P95, Max: c.Max}}
		why := "have no sample in the digest"
		for _, s := range c.Samples {
			if why = replay.Runnable([]byte(s.Query), s.Cut != 0, writes, false); why == "" {
				schema := s.DB
				if schema == "" && len(c.Databases) == 1 {
					schema = c.Databases[0]
				}
				class.Samples = append(class.Samples, workload.RecordedStatement{SQL: s.Query, Schema: schema, Class: i})
			}
		}
		if len(class.Samples) == 0 {
			out.LeftOut[why] += c.Calls
		}
		out.Classes = append(out.Classes, class)
	}
	if len(out.Classes) == 0 {
		return nil, fault.Usagef("--file %s: it has no classes of statements", path)
	}
	return out, nil
}

// How much of a recording is kept: statements of a class, and bytes of all statements of a mix and of a time line.
const (
	keptOfClass   = 200
	keptBytes     = 64 << 20
	keptLineBytes = 512 << 20
	leftFull      = "did not fit: a timeline is limited to 512 MiB of statements"
)

// recorder keeps statements of a log while its digest is made. It is called by one goroutine.
type recorder struct {
	timeline, writes bool
	filter           digest.Filter // nil keeps all
	classify         sqltext.Classifier
	classes          []recordedClass // by the classifier's number
	byID             map[string]int  // place in ids
	ids              []string
	statements       []workload.RecordedStatement // Class is a place in ids; Began is since 1970, for a while
	whole            int                          // of them, whose begin is recorded in whole seconds
	bytes            int64
	rng              *rand.Rand
	leftOut          map[string]int64
}

// recordedClass is what is kept of the statements of one fingerprint.
type recordedClass struct {
	at      int // in ids
	seen    int64
	samples []workload.RecordedStatement
}

// Keep keeps the event for the replay, and counts it in the digest in any case.
func (r *recorder) Keep(e *digest.Event) bool {
	if r.filter != nil && !r.filter.Keep(e) {
		return false
	}
	if digest.IsOwn(e.Query) {
		return true
	}
	if why := replay.Runnable(e.Query, e.Cut != 0, r.writes, r.timeline); why != "" {
		r.leftOut[why]++
		return true
	}
	n := r.classify.Classify(e.Query)
	if n == len(r.classes) {
		id := sqltext.ClassID(sqltext.AppendPlain(nil, []byte(r.classify.Fingerprint(n))))
		at, ok := r.byID[id]
		if !ok {
			at = len(r.ids)
			r.ids, r.byID[id] = append(r.ids, id), at
		}
		r.classes = append(r.classes, recordedClass{at: at})
	}
	c := &r.classes[n]
	c.seen++
	made := func() workload.RecordedStatement {
		return workload.RecordedStatement{SQL: string(e.Query), Schema: string(e.DB), Class: c.at, Session: e.Thread,
			Began: time.Duration(e.Time-int64(math.Round(e.QueryTime*1e6))) * time.Microsecond}
	}
	if r.timeline {
		if e.Time == 0 {
			r.leftOut["have no time in the log"]++
			return true
		}
		if r.bytes += int64(len(e.Query)) + 100; r.bytes > keptLineBytes {
			r.leftOut[leftFull]++
			return true
		}
		st := made()
		if st.Began%time.Second == 0 {
			r.whole++
		}
		r.statements = append(r.statements, st)
		return true
	}
	// Each statement of a class has the same chance to be kept. Source: Vitter's algorithm R.
	if i := r.rng.Int64N(c.seen); len(c.samples) < keptOfClass && r.bytes+int64(len(e.Query)) <= keptBytes || len(c.samples) == 0 {
		r.bytes += int64(len(e.Query))
		c.samples = append(c.samples, made())
	} else if i < int64(len(c.samples)) {
		r.bytes += int64(len(e.Query) - len(c.samples[i].SQL))
		c.samples[i] = made()
	}
	return true
}

// readLog reads a slow or general log, plain or compressed.
func readLog(ctx context.Context, path string, what ReplayOf, o digest.Options) (*workload.Recording, error) {
	source, err := digest.File(path)
	if err != nil {
		return nil, err
	}
	r := &recorder{timeline: what.Timeline, writes: what.Writes, filter: o.Filter, byID: map[string]int{}, leftOut: map[string]int64{}, rng: rand.New(rand.NewPCG(1, 1))}
	o.Filter, o.Workers, o.Samples = r, 1, 1
	p, err := digest.Run(ctx, o, source)
	if err != nil {
		return nil, err
	}
	if err := p.NoLog("auto"); err != nil {
		return nil, fault.New(fault.Usage, "replay reads slow and general logs, and what risso digest --output json writes", err)
	}
	if p.Calls == 0 && what.logPart != (logPart{}) {
		return nil, fault.Usagef("--file %s: no event is left by --since, --until and --filter", path)
	}
	if n := p.Missing(); n > 0 {
		r.leftOut["are announced in the log and could not be read"] += n
	}
	return r.recording(p), nil
}

// recording joins what was kept with the figures of the digest.
func (r *recorder) recording(p *digest.Profile) *workload.Recording {
	out := &workload.Recording{LeftOut: r.leftOut, Classes: make([]workload.RecordedClass, len(r.ids))}
	for _, c := range p.Classes {
		if at, ok := r.byID[c.ID]; ok {
			m := c.Metric("Query_time")
			out.Classes[at].Before = workload.Before{Class: c.ID, Fingerprint: c.Fingerprint, Calls: c.Calls, Avg: m.Avg, Median: m.Median, P95: m.P95, Max: m.Max}
		}
	}
	for _, c := range r.classes {
		out.Classes[c.at].Samples = append(out.Classes[c.at].Samples, c.samples...)
	}
	if !r.timeline || len(r.statements) == 0 {
		return out
	}
	slices.SortStableFunc(r.statements, func(a, b workload.RecordedStatement) int { return cmp.Compare(a.Began, b.Began) })
	if r.whole == len(r.statements) {
		spread(r.statements)
	}
	first := r.statements[0].Began
	for i := range r.statements {
		r.statements[i].Began -= first
	}
	out.Statements = r.statements
	return out
}

// spread puts statements whose log tells whole seconds evenly into their second, in their order.
func spread(list []workload.RecordedStatement) {
	for i := 0; i < len(list); {
		n := i
		for n < len(list) && list[n].Began == list[i].Began {
			n++
		}
		for k := n - 1; k >= i; k-- {
			list[k].Began += time.Second * time.Duration(k-i) / time.Duration(n-i)
		}
		i = n
	}
}

// plan asks a workload that knows it how many sessions it wants, and how long.
func (f *benchRunFlags) plan() {
	p, ok := f.Workload.(workload.Planned)
	if !ok {
		return
	}
	threads, long := f.Threads, f.Time
	if !f.command.Flags().Changed("threads") {
		threads = 0
	}
	if !f.command.Flags().Changed("for") {
		long = 0
	}
	f.Threads, f.Time = p.Plan(threads, long)
}

// writeBenchRecorded sets what the server took for each class next to what it took when they were recorded.
func writeBenchRecorded(b *strings.Builder, r *bench.Result) {
	t := render.Table{Heads: []string{"CLASS", ">CALLS", ">AS CLIENT", ">SERVER", ">RECORDED", ">95 %", ">RECORDED", ">NOW/THEN"}}
	server := func(v *workload.ServerTime, of func(*workload.ServerTime) float64) string {
		if v == nil {
			return "–"
		}
		return digits.Seconds(of(v))
	}
	middle := "average"
	for _, k := range r.Kinds {
		if k.Recorded == nil || k.Transactions == 0 {
			continue
		}
		mid, recorded := (*workload.ServerTime).Mean, k.Recorded.Avg
		as := k.Latency.Avg
		if k.Recorded.Median > 0 {
			middle, mid, recorded, as = "median", (*workload.ServerTime).Middle, k.Recorded.Median, k.Latency.At(50)
		}
		t.Rows = append(t.Rows, []string{k.Name, digits.Thousands(k.Transactions), digits.Seconds(as), server(k.Recorded.Now, mid), digits.Seconds(recorded),
			server(k.Recorded.Now, func(v *workload.ServerTime) float64 { return v.P95 }), digits.Seconds(k.Recorded.P95), k.OfRecorded()})
	}
	if len(t.Rows) > 0 {
		b.WriteString("\n" + strings.Join(t.Lines(0), "\n") + "\n")
		trip := 0.0
		for _, k := range r.Kinds {
			if k.Recorded != nil {
				trip = k.Recorded.RoundTrip
			}
		}
		fmt.Fprintf(b, "SERVER is this server's own time, as RECORDED is of the one that was recorded (%s and p95); the client's time includes the round trip, which alone takes %s.\n", middle, digits.Seconds(trip))
		b.WriteString("NOW/THEN is not a verdict: the log was written at another time, and what else its server's machine did then is not known.\nFor a verdict on each class run both servers in turns: risso bench compare replay --file … --dsn-a OLD --dsn-b NEW\n")
	}
}
