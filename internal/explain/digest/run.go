package digest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// classMemory bounds what all workers together keep of classes, in bytes.
	classMemory = 24 << 20
	// bufferMemory bounds the blocks that workers have in hand.
	bufferMemory = 32 << 20
)

// ErrOption is what every error about Options wraps.
var ErrOption = errors.New("wrong option")

// Run reads the sources one after the other (with Follow: side by side) and returns their profile. When the
// context ends, Run returns its error; with Follow it returns the profile of what was read.
func Run(ctx context.Context, o Options, sources ...Source) (*Profile, error) {
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	if o.Follow {
		return follow(ctx, p, sources)
	}
	r := &run{plan: p}
	for range p.Workers {
		r.workers = append(r.workers, newWorker(p))
	}
	for i, s := range sources {
		if err := r.source(ctx, i, s, r.workers); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	r.orderOfBinlogs()
	made := r.profile()
	return made, r.ordered(made)
}

// ordered says, by an error that wraps ErrOption, that no event has what the classes were to be ordered by.
func (r *run) ordered(p *Profile) error {
	if r.OrderBy == "" || r.order.figure == nil || p.Calls == 0 || slices.ContainsFunc(p.Metrics, func(m Metric) bool { return m.Name == r.order.attr }) {
		return nil
	}
	names := make([]string, len(p.Metrics))
	for i, m := range p.Metrics {
		names[i] = m.Name
	}
	return fmt.Errorf("%w: cannot order by %q: no event has a number of that name; there are %s", ErrOption, r.order.attr, strings.Join(names, ", "))
}

// orderOfBinlogs ranks by bytes where all sources are binary logs, whose rows have no times, and no order was asked for.
func (r *run) orderOfBinlogs() {
	if r.Options.OrderBy != "" || len(r.infos) == 0 {
		return
	}
	for _, s := range r.infos {
		if s.Format != FormatBinlog && s.Format != FormatBinlogText {
			return
		}
	}
	r.orderBy, r.order = "Log_bytes:sum", order{attr: "Log_bytes", figure: figures["sum"]}
}

// plan checks the options and fills in defaults.
func (o Options) plan() (*plan, error) {
	p := &plan{Options: o, seed: maphash.MakeSeed()}
	if p.GroupBy == "" {
		p.GroupBy = "fingerprint"
	}
	switch p.GroupBy {
	case "fingerprint":
		p.group = groupFingerprint
	case "db":
		p.group = groupDB
	case "user":
		p.group = groupUser
	case "host":
		p.group = groupHost
	case "tables":
		p.group = groupTables
	default:
		p.group = groupAttr
	}
	p.orderBy = cmp.Or(p.OrderBy, "Query_time:sum")
	var err error
	if p.order, err = parseOrder(p.orderBy); err != nil {
		return nil, err
	}
	if p.order.figure != nil && !strings.Contains(p.orderBy, ":") {
		p.orderBy += ":sum"
	}
	if p.Format != "" && !slices.Contains(Formats, p.Format) {
		return nil, fmt.Errorf("%w: no format %q; use %s", ErrOption, p.Format, strings.Join(Formats, ", "))
	}
	if p.Samples == 0 {
		p.Samples = 1
	}
	if p.SampleBytes == 0 {
		p.SampleBytes = keepText
	}
	if p.ApdexThreshold == 0 {
		p.ApdexThreshold = 1
	}
	p.apdex = toMicros(p.ApdexThreshold)
	if p.Location == nil {
		p.Location = time.UTC
	}
	if !p.Since.IsZero() {
		p.since = p.Since.UnixMicro()
	}
	if !p.Until.IsZero() {
		p.until = p.Until.UnixMicro()
	}
	if p.Workers <= 0 {
		p.Workers = runtime.GOMAXPROCS(0)
	}
	if p.blockSize <= 0 {
		p.blockSize = max(min(blockSize, bufferMemory/p.Workers), 64<<10)
	}
	p.budget = classMemory / p.Workers
	p.ordered = p.Filter != nil || p.group == groupDB || p.since != 0 || p.until != 0
	return p, nil
}

// run is one Run: its workers and what it read.
type run struct {
	*plan
	workers []*worker
	mu      sync.Mutex
	infos   []SourceInfo
	more    map[string]int64 // skipped, by streams
}

// source reads one source with the given workers.
func (r *run) source(ctx context.Context, number int, s Source, workers []*worker) error {
	info := SourceInfo{Name: s.Name}
	events, before := int64(0), int64(0)
	if !r.Follow { // else sources are read side by side
		before = r.leftOut()
	}
	for _, w := range workers {
		w.mu.Lock()
		w.source = number
		w.server = ""
		events -= w.events
		info.Unread -= unread(w.skipped)
		w.mu.Unlock()
	}
	var err error
	switch {
	case s.Events != nil:
		err = r.stream(ctx, s, workers[0], &info)
	case s.Open != nil:
		err = r.text(ctx, s, workers, &info)
	default:
		err = errors.New("a source without Open and Events")
	}
	if err != nil {
		return err
	}
	for _, w := range workers {
		w.mu.Lock()
		events += w.events
		info.Unread += unread(w.skipped)
		if w.server != "" {
			info.Server = w.server
		}
		w.mu.Unlock()
	}
	if info.Events = events; s.Open != nil && !r.Follow && r.leftOut() == before {
		info.Quiet = cmp.Or(info.Quiet, info.quiet())
	}
	r.mu.Lock()
	r.infos = append(r.infos, info)
	r.mu.Unlock()
	return nil
}

// text reads a log that is text.
func (r *run) text(ctx context.Context, s Source, workers []*worker, info *SourceInfo) error {
	f, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	var done int64
	format := r.Format
	if format == "auto" {
		format = ""
	}
	in, err := open(&meter{r: f, read: func(n int) { done += int64(n) }}, format, r.Follow)
	if err != nil {
		return err
	}
	defer in.close()
	info.Format, info.Looks, info.PassedOver, info.Quiet = in.format, in.looks, in.beside, in.quiet
	if in.beside != "" || in.quiet != "" {
		return nil
	}
	defer func() {
		if in.early.why != nil {
			info.Broken = in.early.why.Error()
		}
	}()
	workers[0].mu.Lock()
	workers[0].info.Format = info.Format
	workers[0].mu.Unlock()
	read := func(n int) {
		info.Bytes += int64(n)
		r.progress(done, s.Size)
	}
	switch info.Format {
	case FormatGeneral:
		return r.drain(ctx, newGeneral(in.Reader, r.Location, read), workers[0], info)
	case FormatSlowTable, FormatGeneralTable:
		return r.drain(ctx, newTable(in.Reader, info.Format, r.Location, read), workers[0], info)
	case FormatSlow:
		return r.slow(ctx, &blocks{r: in, size: r.blockSize, read: read}, workers) // one worker reads at a time
	}
	newStream := r.Streams[info.Format]
	if newStream == nil {
		return fmt.Errorf("this is a log in the format %s, which is not supported here", info.Format)
	}
	if r.Follow {
		return fmt.Errorf("%w: a log in the format %s can be read to its end, but not followed", ErrOption, info.Format)
	}
	st, err := newStream(&meter{r: in, read: read})
	if err != nil {
		return err
	}
	return errors.Join(r.drain(ctx, st, workers[0], info), st.Close())
}

func (r *run) progress(done, total int64) {
	if r.Progress != nil {
		r.Progress(done, total)
	}
}

// slow lets the workers share a slow log.
func (r *run) slow(ctx context.Context, b *blocks, workers []*worker) error {
	c := newChain()
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		g.Go(func() error {
			err := w.work(ctx, b, c)
			if err != nil {
				c.stop()
			}
			return err
		})
	}
	err := g.Wait()
	for _, w := range workers {
		w.chain = nil
	}
	return err
}

// work takes blocks until there are none.
func (w *worker) work(ctx context.Context, b *blocks, c *chain) error {
	var buf []byte
	for {
		if err := ctx.Err(); err != nil && !w.Follow { // with Follow the reader ends when the context does
			return err
		}
		blk, next, err := b.next(buf)
		buf = next
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
		err = w.block(blk, c)
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if cap(buf) > 2*w.blockSize && cap(buf) > statementLimit/2 {
			buf = nil // one long statement must not hold memory forever
		}
	}
}

var errStopped = errors.New("another worker gave up")

// block counts a block's events.
func (w *worker) block(b block, c *chain) error {
	w.chain, w.seq = c, b.seq
	known := false
	w.parser.line, known = c.at(b.seq)
	if !known {
		w.parser.line = lineContext{}
		if w.ordered {
			var ok bool
			if w.parser.line, ok = c.wait(b.seq); !ok {
				return errStopped
			}
		}
	}
	w.info.Bytes += int64(len(b.data)) + b.cut
	w.parser.block(b.data, b.offset, b.cut, b.last, &w.raw, w.add)
	w.spread()
	if len(w.touched) > 0 {
		l, ok := c.wait(b.seq)
		if !ok {
			return errStopped
		}
		w.settle(&l)
	}
	c.publish(b.seq, w.parser.line)
	return nil
}

// stream reads a source that produces events itself.
func (r *run) stream(ctx context.Context, s Source, w *worker, info *SourceInfo) error {
	st, err := s.Events(ctx)
	if err != nil {
		return err
	}
	return errors.Join(r.drain(ctx, st, w, info), st.Close())
}

// drain counts all events of a stream.
func (r *run) drain(ctx context.Context, st Stream, w *worker, info *SourceInfo) error {
	var e Event
	for n := 0; ; n++ {
		if n&255 == 0 && ctx.Err() != nil && !r.Follow {
			return ctx.Err()
		}
		err := st.Next(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.offer(&e, int64(n))
		w.mu.Unlock()
	}
	told := st.Info()
	told.Name = info.Name
	if told.Format == "" {
		told.Format = info.Format
	}
	told.Bytes = max(told.Bytes, info.Bytes)
	told.Looks, told.Broken = info.Looks, cmp.Or(told.Broken, info.Broken)
	skipped := st.Skipped()
	told.Unread = info.Unread + unread(skipped)
	*info = told
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.more == nil {
		r.more = make(map[string]int64)
	}
	for why, n := range skipped {
		r.more[why] += n
	}
	return nil
}

// offer counts an event of a stream.
func (w *worker) offer(e *Event, offset int64) {
	ev := &w.raw
	*ev = raw{
		attrs: ev.attrs[:0], query: e.Query, cut: e.Cut, explain: e.Explain, db: e.DB, dbKnown: true, user: e.User, host: e.Host, ip: e.IP,
		thread: e.Thread, time: e.Time, queryTime: toMicros(e.QueryTime), lockTime: toMicros(e.LockTime),
		announced: true, gotQuery: !e.NoQueryTime, gotLock: !e.NoLockTime, offset: offset,
	}
	if len(ev.host) == 0 {
		ev.host = ev.ip
	}
	w.texts = w.texts[:0]
	for _, a := range e.Attrs {
		n := w.names.findString(a.Name)
		if n == nil || a.Kind > AttrText || w.names.slot(n, a.Kind) < 0 {
			w.skipped[skipNames]++
			continue
		}
		num := uint64(0)
		switch {
		case a.Kind == AttrText:
			num = textAt(len(w.texts), len(a.Text))
			w.texts = append(w.texts, a.Text...)
		case a.Kind == AttrNumber:
			num = toMicros(a.Num)
		case a.Num != 0:
			num = 1
		}
		ev.attrs = pushed(ev.attrs, &n.refs[a.Kind], num)
	}
	ev.block = w.texts
	if ev.time == 0 { // nothing will report it later
		w.timeless(ev)
		return
	}
	w.add(ev)
}

// timeless counts an event of a stream that has no time.
func (w *worker) timeless(ev *raw) {
	w.add(ev)
	w.settle(&lineContext{})
}

// full is the event as filters and groups see it.
func (w *worker) full(ev *raw) *Event {
	e := &w.event
	*e = Event{
		Time: ev.time, Query: ev.query, Cut: ev.cut, Explain: ev.explain, DB: ev.db, User: ev.user, Host: ev.host, IP: ev.ip, Thread: ev.thread,
		QueryTime: float64(ev.queryTime) / micro, LockTime: float64(ev.lockTime) / micro,
		NoQueryTime: !ev.gotQuery, NoLockTime: !ev.gotLock, Attrs: e.Attrs[:0],
	}
	for i := range ev.attrs {
		a := &ev.attrs[i]
		x := Attr{Name: w.names.slots[a.slot].name, Kind: a.kind}
		switch a.kind {
		case AttrText:
			x.Text = ev.text(a)
		case AttrNumber:
			x.Num = float64(a.num) / micro
		case AttrFlag:
			x.Num = float64(a.num)
		}
		e.Attrs = append(e.Attrs, x)
	}
	return e
}

// attrGroup is the value of the attribute that is grouped by, as text.
func (w *worker) attrGroup(ev *raw) ([]byte, bool) {
	switch w.GroupBy {
	case "Query_time":
		w.text = appendMicros(w.text[:0], ev.queryTime)
		return w.text, ev.gotQuery
	case "Thread_id", "thread":
		w.text = fmt.Appendf(w.text[:0], "%d", ev.thread)
		return w.text, ev.thread != 0
	}
	for i := range ev.attrs {
		a := &ev.attrs[i]
		s := &w.names.slots[a.slot]
		if s.name != w.GroupBy {
			continue
		}
		switch {
		case s.kind == AttrText:
			return ev.text(a), true
		case s.kind == AttrNumber:
			w.text = appendMicros(w.text[:0], a.num)
		case a.num != 0:
			w.text = append(w.text[:0], "Yes"...)
		default:
			w.text = append(w.text[:0], "No"...)
		}
		return w.text, true
	}
	return nil, false
}

func appendMicros(b []byte, v uint64) []byte {
	b = fmt.Appendf(b, "%d", v/micro)
	if f := v % micro; f != 0 {
		b = fmt.Appendf(b, ".%06d", f)
		b = bytes.TrimRight(b, "0")
	}
	return b
}

// leftOut is how much was left out so far, of any kind: it only shows that something was.
func (r *run) leftOut() (n int64) {
	for _, k := range r.allSkipped() {
		n += k
	}
	return n
}

// allSkipped adds up what workers and streams left out.
func (r *run) allSkipped() map[string]int64 {
	all := maps.Clone(r.more)
	if all == nil {
		all = make(map[string]int64)
	}
	for _, w := range r.workers {
		for why, n := range w.skipped {
			all[why] += n
		}
	}
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	return all
}
