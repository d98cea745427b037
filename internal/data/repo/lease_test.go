package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a place in memory, with a clock of its own, which notes what is put and when.
type memory struct {
	mu      sync.Mutex
	began   time.Time
	ahead   time.Duration // its clock, before this host's
	slow    time.Duration // each Put takes so long
	objects map[string][]byte
	put     map[string]time.Time
	log     []string         // second and key of each Put, with the number of backups' bytes stored that a note tells
	fails   map[string]error // what an operation on a key ends with, or on all
	gate    chan struct{}    // not nil: each Put waits here
	putting atomic.Int32     // that are at work
}

func newMemory() *memory {
	return &memory{began: time.Now(), objects: map[string][]byte{}, put: map[string]time.Time{}, fails: map[string]error{}}
}

func (m *memory) fail(op, key string) error {
	if err := m.fails[op+" "+key]; err != nil {
		return err
	}
	return m.fails[op]
}

func (m *memory) Put(_ context.Context, key string, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.putting.Add(1)
	defer m.putting.Add(-1)
	if m.gate != nil {
		<-m.gate
	}
	time.Sleep(m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("put", key); err != nil && (len(b) > 0 || m.fails["empty"] != nil) {
		return err
	}
	var note beginning
	_ = json.Unmarshal(b, &note)
	m.objects[key], m.put[key] = b, time.Now().Add(m.ahead)
	m.log = append(m.log, fmt.Sprintf("%v %d", time.Since(m.began), note.Stored))
	return nil
}

func (m *memory) Create(ctx context.Context, key string, r io.Reader) error {
	return m.Put(ctx, key, r)
}

func (m *memory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("get", key); err != nil {
		return nil, err
	}
	b, ok := m.objects[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (m *memory) Size(_ context.Context, key string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("size", key); err != nil {
		return 0, err
	}
	b, ok := m.objects[key]
	if !ok {
		return 0, fs.ErrNotExist
	}
	return int64(len(b)), nil
}

func (m *memory) List(_ context.Context, prefix string, f func(key string, size int64) error) error {
	m.mu.Lock()
	keys := slices.Sorted(maps.Keys(m.objects))
	m.mu.Unlock()
	for _, key := range keys {
		if strings.HasPrefix(key, prefix) {
			if err := f(key, 1); err != nil {
				return err
			}
		}
	}
	return m.fail("list", "")
}

func (m *memory) Delete(ctx context.Context, key string) error {
	if m.fails["delete hangs"] != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("delete", key); err != nil {
		return err
	}
	delete(m.objects, key)
	return nil
}

// dated is a place that tells when an object was put.
type dated struct{ *memory }

func (d dated) Modified(ctx context.Context, key string) (time.Time, error) {
	_, err := d.Size(ctx, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.memory.put[key], err
}

// prunes puts the lease of a prune on another machine, of an age.
func (m *memory) prunes(id string, age time.Duration) {
	b, _ := json.Marshal(pruneNote{&Process{Boot: "another", PID: 7, Host: id}})
	m.objects[pruneLockPrefix+id], m.put[pruneLockPrefix+id] = b, time.Now().Add(m.ahead-age)
}

// TestLeaseIsRenewed: a note is put at once, ten seconds later, and each minute after that, with what is known by then; one that cannot be
// put ages, and is tried again.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := &Repo{store: dated{m}}
		h := Header{ID: "b", Stored: 1}
		key := unfinishedKey("b")
		if err := r.Note(t.Context(), h); err == nil || !strings.Contains(err.Error(), "b was not started") {
			t.Errorf("before Begin: got %v; want an error, \"b was not started\" in the error", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := r.Begin(ctx, h, nil); err != nil {
			t.Fatal(err)
		}
		l := r.leases.held[key]
		check := func(what string, after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			if !slices.Equal(m.log, want) {
				t.Errorf("%s: got %q, want %q", what, m.log, want)
			}
			m.log = nil
		}
		check("before the first beat", 9*time.Second, "0s 1")
		check("beats", 122*time.Second, "10s 1", "1m10s 1", "2m10s 1")
		r.Tell("b", func() Header { return Header{ID: "b", Stored: 2} })
		check("with what is told", time.Minute, "3m10s 2")
		if err := r.Note(t.Context(), Header{ID: "b", Stored: 3}); err != nil {
			t.Error(err)
		}
		check("a note at once, which stays", time.Minute, "3m11s 3", "4m10s 3")
		r.tell("b", func() []byte { return nil })
		check("nothing to tell: as it was at first", time.Minute, "5m10s 1")
		if got := l.age(); got != time.Second {
			t.Errorf("got an age of %v, want 1 s", got)
		}
		m.fails["put"] = errors.New("away")
		if err := r.Note(t.Context(), h); !errors.Is(err, m.fails["put"]) {
			t.Errorf("got %v, want what the place says", err)
		}
		if check("away", 2*time.Minute); l.age() != 2*time.Minute+time.Second {
			t.Errorf("got an age of %v, want that nothing was renewed", l.age())
		}
		clear(m.fails)
		m.slow = 5 * time.Second
		check("back", 58*time.Second)
		check("slowly", 12*time.Second, "8m15s 1")
		if got := l.age(); got != 11*time.Second {
			t.Errorf("got an age of %v, want it from before it was put", got)
		}
		m.slow = 0
		cancel()
		check("the context has ended", 10*time.Minute)
		if err := r.Abandon(t.Context(), "b"); err != nil || len(m.objects) > 0 || len(r.leases.held) > 0 {
			t.Errorf("got %v, %v, %v; want nothing left", err, m.objects, r.leases.held)
		}
		if err := r.Begin(t.Context(), h, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Abandon(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		check("abandoned", 10*time.Minute, "18m21s 1")
	})
}

// TestNotesOneByOne: of two notes at once the later one waits, so that it is not overtaken.
func TestNotesOneByOne(t *testing.T) {
	m := newMemory()
	r := &Repo{store: dated{m}}
	if err := r.Begin(t.Context(), Header{ID: "b"}, nil); err != nil {
		t.Fatal(err)
	}
	m.gate = make(chan struct{})
	var notes sync.WaitGroup
	for n := range int64(2) {
		notes.Go(func() { _ = r.Note(t.Context(), Header{ID: "b", Stored: n}) })
	}
	for range 2 {
		for m.putting.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if time.Sleep(20 * time.Millisecond); m.putting.Load() != 1 {
			t.Errorf("got %d at once, want one", m.putting.Load())
		}
		m.gate <- struct{}{}
	}
	notes.Wait()
	if err := r.Abandon(t.Context(), "b"); err != nil {
		t.Error(err)
	}
}

// TestFullPlaceForWords: without content where there is no room, if the key says enough.
func TestFullPlaceForWords(t *testing.T) {
	lock, lost := pruneLockPrefix+"x", lostKey("x")
	for _, c := range []struct {
		key   string
		err   error
		empty bool // nor without content
		want  error
		put   bool
	}{
		{lock, nil, false, nil, true}, {lock, syscall.ENOSPC, false, nil, true}, {lock, syscall.EDQUOT, false, nil, true}, {lost, syscall.ENOSPC, false, nil, true}, {"locks/unfinished", syscall.ENOSPC, false, nil, true},
		{unfinishedKey("x"), syscall.ENOSPC, false, syscall.ENOSPC, false}, {lock, syscall.EROFS, false, syscall.EROFS, false}, {lock, syscall.EIO, false, syscall.EIO, false}, {lock, syscall.ENOSPC, true, ErrFull, false}, {lock, syscall.ENOSPC, true, syscall.ENOSPC, false}, {lock, syscall.EROFS, true, syscall.EROFS, false},
	} {
		m := newMemory()
		m.fails["put"] = c.err
		if c.empty {
			m.fails["empty"] = c.err
		}
		err := (&Repo{store: m}).putWord(t.Context(), c.key, []byte("word"))
		b, put := m.objects[c.key]
		if !errors.Is(err, c.want) || errors.Is(err, ErrFull) != (c.empty && c.err == syscall.ENOSPC) || put != c.put || put && (c.err == nil) != (len(b) > 0) {
			t.Errorf("%s, %v: got %v and %q, want %v", c.key, c.err, err, b, c.want)
		}
	}
}

// TestBeginWaits: for a prune until it ends or is taken for killed, 15 minutes after its lease was put, by the clock of the place.
func TestBeginWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead time.Duration
		locks map[string]time.Duration // their ages
		ends  map[string]time.Duration
		idle  bool
		told  string
		took  time.Duration
	}{
		{"none", 0, nil, nil, false, "", 0}, {"old", 0, map[string]time.Duration{"a": 15 * time.Minute}, nil, false, "", 0}, {"old, Idle", 0, map[string]time.Duration{"a": 15 * time.Minute}, nil, true, "", 0},
		{"a moment younger, Idle", 0, map[string]time.Duration{"a": 15*time.Minute - time.Second/2}, nil, true, "a", time.Second},
		{"ends", 0, map[string]time.Duration{"a": 0}, map[string]time.Duration{"a": 3500 * time.Millisecond}, false, "a", 4 * time.Second},
		{"two", 0, map[string]time.Duration{"a": 0, "b": 0}, map[string]time.Duration{"a": 3500 * time.Millisecond, "b": 7500 * time.Millisecond}, false, "a b", 8 * time.Second},
		{"an old one before it", 0, map[string]time.Duration{"a": time.Hour, "b": 0}, map[string]time.Duration{"b": 1500 * time.Millisecond}, true, "b", 2 * time.Second},
		// The note is put 10.6 s and 70.6, 130.6, … 850.6 s later: at the last of these the lease is 15 minutes old.
		{"killed, by the clock of the place, which is behind", -time.Hour, map[string]time.Duration{"a": time.Minute}, nil, false, "a", 851300 * time.Millisecond},
		{"by one that is ahead", time.Hour, map[string]time.Duration{"a": time.Minute}, nil, false, "a", 851300 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			if m.ahead = c.ahead; c.ahead != 0 {
				m.slow = 300 * time.Millisecond // so that no look falls together with a put
			}
			for id, age := range c.locks {
				m.prunes(id, age)
			}
			for id, at := range c.ends {
				time.AfterFunc(at, func() { _ = m.Delete(t.Context(), pruneLockPrefix+id) })
			}
			r := &Repo{store: dated{m}}
			var told []string
			waiting := func(h Holder) { told = append(told, h.Process.Host) }
			began := time.Now()
			var err error
			if c.idle {
				err = r.Idle(t.Context(), waiting)
			} else {
				err = r.Begin(t.Context(), Header{ID: "x"}, waiting)
			}
			took := time.Since(began)
			if _, noted := m.objects[unfinishedKey("x")]; err != nil || took != c.took || strings.Join(told, " ") != c.told || noted == c.idle {
				t.Errorf("%s: got %v after %v, told of %q, noted %t; want it after %v, told of %q", c.name, err, took, told, noted, c.took, c.told)
			}
			if err := r.Abandon(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBeginGivesUp: without a note, in at most ten seconds more, and with what was wrong.
func TestBeginGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := &Repo{store: m} // which tells no times: all leases live
		m.prunes("a", 99*time.Hour)
		ended, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := r.Begin(ended, Header{ID: "x"}, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(m.began) != time.Hour || m.objects[unfinishedKey("x")] != nil || len(r.leases.held) > 0 {
			t.Errorf("got %v after %v and %v, want that it waited for the prune", err, time.Since(m.began), m.objects)
		}
		m.fails["delete hangs"] = errors.New("hangs")
		ended, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Begin(ended, Header{ID: "x"}, nil); err == nil || time.Since(m.began) != time.Hour+time.Minute+10*time.Second {
			t.Errorf("got %v after %v, want 10 s more", err, time.Since(m.began))
		}
		away := errors.New("away")
		for _, op := range []string{"list", "get " + pruneLockPrefix + "a", "size " + pruneLockPrefix + "a", "size " + unfinishedKey("x"), "put"} {
			m.fails = map[string]error{op: away}
			m.slow = 0
			if err := r.Begin(t.Context(), Header{ID: "x"}, nil); !errors.Is(err, away) || len(r.leases.held) > 0 {
				t.Errorf("%s: got %v and %v, want what the place says", op, err, r.leases.held)
			}
		}
	})
}

// TestPruneThatEnds: a lease that goes between two looks at it; one that says too much; one that is looked for by its own prune.
func TestPruneThatEnds(t *testing.T) {
	m := newMemory()
	r := &Repo{store: dated{m}}
	lock := pruneLockPrefix + "a"
	m.prunes("a", 0)
	m.prunes("b", 0)
	if key, h, err := r.pruning(t.Context(), ""); err != nil || key != lock || h.Process.Host != "a" || h.Put != m.put[lock] {
		t.Errorf("got %s, %v, %v; want the first", key, h, err)
	}
	if key, h, err := r.pruning(t.Context(), lock); err != nil || key != pruneLockPrefix+"b" || h.Process.Host != "b" {
		t.Errorf("got %s, %v, %v; want the other one", key, h, err)
	}
	m.fails["size "+lock] = fs.ErrNotExist
	if key, _, err := r.pruning(t.Context(), ""); err != nil || key != pruneLockPrefix+"b" {
		t.Errorf("got %s, %v; want what is still there", key, err)
	}
	clear(m.fails)
	note, _ := json.Marshal(pruneNote{&Process{PID: 7}})
	for size, known := range map[int]bool{len(note): true, 1 << 16: true, 1<<16 + 1: false, 0: false} {
		m.objects[lock] = slices.Concat(note[:len(note)-1], bytes.Repeat([]byte(" "), max(size-len(note), 0)), []byte("}"))
		if size == 0 {
			m.objects[lock] = nil
		}
		if h, err := r.holder(t.Context(), lock); err != nil || (h.Process != nil) != known {
			t.Errorf("a note of %d bytes: got %v, %v; want that it is read: %t", size, h, err, known)
		}
	}
}

// TestAbandonedAndLost: what is taken back of a backup that is not whole, and what stays of one that is; and the word that it is lost.
func TestAbandonedAndLost(t *testing.T) {
	away := errors.New("away")
	all := []string{headKey("x"), objectsKey("x"), signatureKey("x"), unfinishedKey("x")}
	for _, c := range []struct {
		whole bool
		fails string
		left  []string
	}{{false, "", nil}, {true, "", append([]string{manifestKey("x")}, all[:3]...)}, {false, "delete " + objectsKey("x"), all[1:3]}, {false, "delete " + unfinishedKey("x"), all[3:]}, {true, "size " + manifestKey("x"), append([]string{manifestKey("x")}, all[:3]...)}} {
		m := newMemory()
		for _, key := range all {
			m.objects[key] = []byte("x")
		}
		if c.whole {
			m.objects[manifestKey("x")] = []byte("x")
		}
		if c.fails != "" {
			m.fails[c.fails] = away
		}
		slices.Sort(c.left)
		err := (&Repo{store: m}).Abandon(t.Context(), "x")
		if got := slices.Sorted(maps.Keys(m.objects)); !slices.Equal(got, c.left) || (err != nil) != strings.HasPrefix(c.fails, "delete") {
			t.Errorf("whole %t, %s: got %v and %v left, want %v", c.whole, c.fails, err, got, c.left)
		}
	}
	m := newMemory()
	r := &Repo{store: m}
	if err := r.lost(t.Context(), "x"); err != nil {
		t.Errorf("got %v, want nothing", err)
	}
	m.fails["size"] = away
	if err := r.lost(t.Context(), "x"); !errors.Is(err, away) {
		t.Errorf("got %v, want what the place says", err)
	}
	clear(m.fails)
	m.objects[lostKey("x")] = nil
	if err := r.lost(t.Context(), "x"); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want that it is lost", err)
	}
}
