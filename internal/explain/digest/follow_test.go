package digest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A log is followed over a pause, a rotation and a cut, and nothing is lost or counted twice.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slow.log")
	n := 0
	event := func() string {
		n++
		return fmt.Sprintf("# Time: 2026-01-01T10:00:00.%06dZ\n# User@Host: a[a] @ h []\n# Query_time: 1.000000  Lock_time: 0.000000\nSET timestamp=1;\nSELECT %d;\n", n, n)
	}
	write := func(flags int, text string) {
		t.Helper()
		f, err := os.OpenFile(path, flags|os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(os.O_TRUNC, event()+event())
	s, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	profiles := make(chan *Profile, 1000)
	last := make(chan *Profile, 1)
	go func() {
		p, err := Run(ctx, Options{Follow: true, Every: 50 * time.Millisecond, Each: func(p *Profile) { profiles <- p }}, s)
		if err != nil {
			t.Error(err)
		}
		last <- p
	}()
	total := int64(0)
	await := func() {
		t.Helper()
		for total < int64(n) {
			select {
			case p := <-profiles:
				total += p.Calls
			case <-ctx.Done():
				t.Fatalf("%d of %d events were seen", total, n)
			}
		}
	}
	await()
	write(os.O_APPEND, event())
	await()
	whole := event()
	write(os.O_APPEND, whole[:90]) // half an event
	time.Sleep(3 * pollEvery)
	write(os.O_APPEND, whole[90:])
	await()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	old, err := os.OpenFile(path+".1", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	old.WriteString(event()) // the server has not reopened it yet
	old.Close()
	write(0, event())
	write(os.O_APPEND, event())
	await()
	write(os.O_TRUNC, event())
	await()
	cancel()
	p := <-last
	close(profiles)
	for x := range profiles {
		total += x.Calls
	}
	if total += p.Calls; total != int64(n) {
		t.Errorf("%d events were seen, %d written; want %d", total, n, int64(n))
	}
}

func TestFollowFromEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slow.log")
	if err := os.WriteFile(path, writeLog(50), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*pollEvery)
	defer cancel()
	p, err := Run(ctx, Options{Follow: true, FromEnd: true}, s)
	if err != nil || p.Calls != 0 {
		t.Errorf("got %v, %v; want Calls 0", p, err)
	}
}
