package series

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestFramesTravel sends sealed minutes to another store in any order, some of them twice, before and after that one made
// blocks and days of what it had.
func TestFramesTravel(t *testing.T) {
	var mu sync.Mutex
	var frames [][]byte
	from := openStore(t, t.TempDir(), func(o *Options) {
		o.OnFrame = func(instance string, minute int64, frame []byte) {
			mu.Lock()
			defer mu.Unlock()
			frames = append(frames, frame)
		}
	})
	m := small(t, from, "db", t0+30, t0+2*hourSeconds+600)
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	if len(frames) != 130 {
		t.Fatalf("got %d frames, want 130", len(frames))
	}
	r := rand.New(rand.NewPCG(5, 6))
	r.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
	dir := t.TempDir()
	to := openStore(t, dir)
	for i, f := range frames {
		for range 1 + r.IntN(2) {
			if err := to.PutFrame(f); err != nil {
				t.Fatal(err)
			}
		}
		switch i {
		case 20, 60:
			if err := to.Compact(context.Background(), time.Unix(t0+daySeconds/2, 0)); err != nil {
				t.Fatal(err)
			}
		case 40, 100:
			if err := to.Compact(context.Background(), time.Unix(t0+3*daySeconds, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if i%30 == 0 {
			m.check(t, to, "db", t0, t0+daySeconds, true)
		}
	}
	m.check(t, to, "db", t0, t0+daySeconds, false)
	m.checkBands(t, to, "db", t0, t0+3*hourSeconds, 77)
	if err := to.Compact(context.Background(), time.Unix(t0+3*daySeconds, 0)); err != nil {
		t.Fatal(err)
	}
	m.check(t, to, "db", t0, t0+daySeconds, false)
	m.checkBands(t, to, "db", t0, t0+3*hourSeconds, hourSeconds)
	before := to.Stats()
	for _, f := range frames {
		if err := to.PutFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	if after := to.Stats(); after.FrameBytes != before.FrameBytes || after.Blocks != 1 {
		t.Fatalf("frames that were there changed something: %+v, then %+v; want FrameBytes %v, Blocks 1", before, after, before.FrameBytes)
	}
	if at, _ := to.Last("db"); at != t0+2*hourSeconds+599 {
		t.Fatalf("newest tick %d, want %d", at, t0+2*hourSeconds+599)
	}
}

func TestBadFrames(t *testing.T) {
	var frame []byte
	a := openStore(t, t.TempDir(), func(o *Options) { o.OnFrame = func(_ string, _ int64, f []byte) { frame = f } })
	small(t, a, "db", t0, t0+59)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir())
	sc := scanRecords(frame)
	if len(sc.records) != 2 {
		t.Fatalf("not a schema and a frame: got %v, want 2", len(sc.records))
	}
	alone := frame[sc.records[1].off:]
	if err := s.PutFrame(alone); !errors.Is(err, ErrUnknownSchema) {
		t.Errorf("without its schema: got %v, want ErrUnknownSchema", err)
	}
	for _, b := range [][]byte{nil, frame[:len(frame)-1], bytes.Repeat([]byte{7}, 500)} {
		if err := s.PutFrame(b); err == nil {
			t.Errorf("%d bytes were taken", len(b))
		}
	}
	for at := range frame {
		bad := bytes.Clone(frame)
		bad[at] ^= 4
		if err := s.PutFrame(bad); err == nil {
			t.Errorf("a flipped bit at %d was taken", at)
		}
	}
	if err := s.PutFrame(frame); err != nil {
		t.Fatal(err)
	}
	if err := s.PutFrame(alone); err != nil {
		t.Errorf("with its schema known: %v", err)
	}
}

// TestManyAtOnce lets writers, readers and compaction loose on one store.
func TestManyAtOnce(t *testing.T) {
	s := openStore(t, t.TempDir(), func(o *Options) { o.CacheBytes = 64 << 10 })
	const writers, ticks = 4, 2*hourSeconds + 500
	var wg, bg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for k := range writers {
		wg.Go(func() {
			w, err := s.Writer(fmt.Sprintf("db-%d", k))
			if err != nil {
				t.Error(err)
				return
			}
			for i := range truthSeries {
				w.Define(truthDesc(i))
			}
			vals := make([]float64, truthSeries)
			for at := t0; at < t0+ticks; at++ {
				for i := range vals {
					vals[i] = truth(i, at)
				}
				if err := w.Append(at, vals, at%30 == 0); err != nil {
					t.Error(err)
					return
				}
				if at%2000 == 0 {
					w.Flush()
				}
			}
		})
	}
	e := newEngine(t)
	for k := range 2 {
		bg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 1))
			for ctx.Err() == nil {
				id := fmt.Sprintf("db-%d", r.IntN(writers))
				readAll(t, s, id, r)
				q, err := e.NewRangeQuery(ctx, s.Queryable(), nil, `sum by (instance) (rate(truth{i=~"1|6"}[1m]))`, time.Unix(t0, 0), time.Unix(t0+ticks, 0), time.Minute)
				if err == nil {
					q.Exec(ctx)
					q.Close()
				}
			}
		})
	}
	bg.Go(func() {
		for at := t0; ctx.Err() == nil; at = min(at+600, t0+ticks) {
			if err := s.Compact(ctx, time.Unix(at, 0)); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	wg.Wait()
	cancel()
	bg.Wait()
	if err := s.Compact(context.Background(), time.Unix(t0+2*daySeconds, 0)); err != nil {
		t.Fatal(err)
	}
	for k := range writers {
		if n := checkTruth(t, s, fmt.Sprintf("db-%d", k), t0, t0+ticks); n != ticks {
			t.Fatalf("%d seconds, want %d", n, ticks)
		}
	}
	if n := s.blocks.open(); n > 0 {
		t.Fatalf("%d block handles are still held by readers, want at most 0", n)
	}
}

func readAll(t *testing.T, s *Store, id string, r *rand.Rand) {
	from := t0 + int64(r.IntN(hourSeconds))
	last, value := s.Last(id)
	if v, ok := value(truthDesc(1).Key()); ok && v != truth(1, last) {
		t.Errorf("last is %v", v)
	}
	i := r.IntN(truthSeries)
	p, err := s.Raw(context.Background(), id, truthDesc(i).Key(), from, from+4000)
	if err != nil {
		t.Error(err)
	}
	for k, at := range p.T {
		if i == 1 && k > 0 && p.T[k-1] != at-1 {
			t.Errorf("a second is missing at %d, last %d", at, last)
		}
		if p.V[k] != truth(i, at) {
			t.Errorf("series %d at %d is %v, want truth(i, at)", i, at, p.V[k])
		}
	}
	if _, err := s.Bands(context.Background(), id, []string{truthDesc(1).Key(), truthDesc(2).Key(), "nothing"}, from, from+7200, 60); err != nil {
		t.Error(err)
	}
	s.Descs(id, from, from+600)
	s.Stats()
	s.Instances()
}

// open counts handles that somebody besides the cache holds.
func (c *blockCache) open() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.items {
		n += e.Value.(*cachedBlock).file.refs - 1
	}
	return n
}
