package digest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// pollEvery is how often a followed file is looked at when it had nothing new. Linux's inotify would be quicker,
// but does not see what other hosts write to a shared file system.
const pollEvery = 200 * time.Millisecond

// follow reads all sources side by side, a worker each, until the context ends.
func follow(ctx context.Context, p *plan, sources []Source) (*Profile, error) {
	p.Workers = 1
	p.budget = classMemory / max(len(sources), 1)
	r := &run{plan: p}
	for i, s := range sources {
		w := newWorker(p)
		w.source, w.info.Name = i, s.Name
		r.workers = append(r.workers, w)
	}
	if len(r.workers) == 0 {
		r.workers = append(r.workers, newWorker(p))
	}
	done := make(chan struct{})
	var readers, ticks errgroup.Group
	for i, s := range sources {
		readers.Go(func() error {
			switch open := s.Open; {
			case s.path != "":
				s.Open = func(ctx context.Context) (io.ReadCloser, error) { return openTail(ctx, s.path, p.FromEnd) }
			case open != nil:
				s.Open = func(ctx context.Context) (io.ReadCloser, error) {
					f, err := open(ctx)
					if t, ok := f.(*patient); ok {
						t.growing = true
					}
					return f, err
				}
			}
			err := r.source(ctx, i, s, r.workers[i:i+1])
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			return nil
		})
	}
	if p.Each != nil && p.Every > 0 {
		ticks.Go(func() error {
			t := time.NewTicker(p.Every)
			defer t.Stop()
			for {
				select {
				case <-done:
					return nil
				case <-t.C:
					p.Each(r.take())
				}
			}
		})
	}
	err := readers.Wait()
	close(done)
	ticks.Wait() // returns no error
	if err != nil {
		return nil, err
	}
	return r.take(), nil
}

// take returns the profile of what came since the last call.
func (r *run) take() *Profile {
	for _, w := range r.workers {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	r.mu.Lock()
	r.infos = nil
	for _, w := range r.workers {
		w.info.Events, w.info.Server = w.events, w.server
		r.infos = append(r.infos, w.info)
		w.info.Bytes = 0
	}
	p := r.profile()
	r.more = nil
	r.extra.Store(0) // all workers start over
	r.mu.Unlock()
	for _, w := range r.workers {
		w.reset()
	}
	return p
}

// reset forgets all figures; what the log's current state is stays.
func (w *worker) reset() {
	w.classes.clear()
	w.forget()
	w.values = newValues()
	clear(w.parser.whos[:]) // they hold numbers of values
	w.skipped = make(map[string]int64)
	w.other, w.folded, w.lacking, w.bytes, w.events = nil, 0, 0, 0, 0
	w.touched = nil
}

// tail reads a file that grows, as tail -F: if its name comes to mean another file, that one is read from
// its start once the old has ended; when it becomes shorter it is read from its start. A file that is cut and
// grows beyond its old length between two looks is not noticed.
type tail struct {
	ctx  context.Context
	path string
	f    *os.File
	at   int64
	next bool // another file has the name; one more look at the old one
}

func openTail(ctx context.Context, path string, fromEnd bool) (*tail, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &tail{ctx: ctx, path: path, f: f}
	if fromEnd {
		if t.at, err = f.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return t, nil
}

// Read returns errIdle, after a pause, when there is nothing new, and io.EOF when the context ends.
func (t *tail) Read(p []byte) (int, error) {
	for {
		n, err := t.f.Read(p)
		t.at += int64(n)
		if n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if t.ctx.Err() != nil {
			return 0, io.EOF
		}
		switch again, err := t.changed(); {
		case err != nil:
			return 0, err
		case again:
			continue
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-t.ctx.Done():
			timer.Stop()
			return 0, io.EOF
		case <-timer.C:
			return 0, errIdle
		}
	}
}

// changed checks whether the file was cut or replaced, and whether there is something to read now.
func (t *tail) changed() (again bool, err error) {
	mine, err := t.f.Stat()
	if err != nil {
		return false, err
	}
	if mine.Mode().IsRegular() && mine.Size() < t.at {
		t.at, err = t.f.Seek(0, io.SeekStart)
		return err == nil && mine.Size() > 0, err
	}
	named, err := os.Stat(t.path)
	if err != nil { // moved away, and the new one is not there yet
		return false, nil
	}
	if os.SameFile(mine, named) {
		t.next = false
		return false, nil
	}
	if !t.next { // the server may have written to the old one until now
		t.next = true
		return true, nil
	}
	f, err := os.Open(t.path)
	if err != nil {
		return false, nil // gone again, or not ours to read yet
	}
	t.f.Close() // was only read
	t.f, t.at, t.next = f, 0, false
	return true, nil
}

// Close implements io.Closer.
func (t *tail) Close() error { return t.f.Close() }

// patient reads from something that knows no context, such as a terminal or a pipe: when the context ends, Read
// returns immediately. The pending read then ends by itself, with the next byte or with the program.
type patient struct {
	ctx     context.Context
	growing bool // say so when there is nothing for a while
	ask     chan []byte
	got     chan patientRead
	buf     []byte
	rest    []byte
	busy    bool // a read is under way
}

type patientRead struct {
	n   int
	err error
}

func newPatient(ctx context.Context, r io.Reader) *patient {
	p := &patient{ctx: ctx, ask: make(chan []byte), got: make(chan patientRead, 1), buf: make([]byte, 256<<10)}
	go func() {
		for b := range p.ask {
			n, err := r.Read(b)
			p.got <- patientRead{n, err}
		}
	}()
	return p
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		if !p.busy {
			p.ask <- p.buf
			p.busy = true
		}
		var idle <-chan time.Time // nil waits for good
		if p.growing {
			timer := time.NewTimer(pollEvery)
			defer timer.Stop()
			idle = timer.C
		}
		select {
		case <-p.ctx.Done():
			if p.growing {
				return 0, io.EOF
			}
			return 0, p.ctx.Err()
		case <-idle:
			return 0, errIdle
		case g := <-p.got:
			p.busy = false
			p.rest = p.buf[:g.n]
			if g.n == 0 {
				return 0, g.err
			}
			// an error together with bytes comes again with the next read
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close ends the goroutine, at the latest when its read ends.
func (p *patient) Close() error {
	close(p.ask)
	return nil
}
