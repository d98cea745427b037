package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// TestMain is also the process that a test kills: with RISSO_TEST_PUT set, it puts a blob there and says when it begins.
func TestMain(m *testing.M) {
	if place := os.Getenv("RISSO_TEST_PUT"); place != "" {
		s, err := blob.Open(context.Background(), place, blob.Options{PartSize: part})
		if err == nil {
			fmt.Println("begins")
			_, err = s.Put(context.Background(), "data/big", bytes.NewReader(blobtest.Bytes(9, 8*part)), blob.PutOptions{Resume: true})
		}
		fmt.Println("ended", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestS3Faults: what is temporary is tried again and the blob is whole; what is not is reported, and there is no blob.
func TestS3Faults(t *testing.T) {
	server := blobtest.S3(t)
	big, small := blobtest.Bytes(1, 3*part+100), blobtest.Bytes(2, 3000)
	always := 1 << 30
	for _, c := range []struct {
		name     string
		kind     string
		times    int
		disturb  func(http.ResponseWriter, *http.Request, http.Handler)
		content  []byte
		stream   bool
		patience time.Duration
		wrong    string // part of the error that Put returns; "" for none
	}{
		{name: "500 to a small blob", kind: "put", times: 3, disturb: pass(blobtest.Broken), content: small},
		{name: "500 to a part", kind: "put part", times: 3, disturb: pass(blobtest.Broken), content: big},
		{name: "500 to a part of a stream", kind: "put part", times: 3, disturb: pass(blobtest.Broken), content: big, stream: true},
		{name: "500 to the beginning", kind: "begin upload", times: 2, disturb: pass(blobtest.Broken), content: big},
		{name: "500 to the end", kind: "complete upload", times: 2, disturb: pass(blobtest.Broken), content: big},
		{name: "throttled", kind: "put part", times: 6, disturb: pass(blobtest.Slow), content: big},
		{name: "throttled for good", kind: "put part", times: always, disturb: pass(blobtest.Slow), content: big, patience: time.Second, wrong: "SlowDown"},
		{name: "a part cut on the way", kind: "put part", times: 2, disturb: blobtest.CutRequest(100000), content: big, stream: true},
		{name: "a small blob cut on the way", kind: "put", times: 2, disturb: blobtest.CutRequest(100), content: small, stream: true},
		{name: "a flipped bit in a part", kind: "put part", times: 1, disturb: blobtest.FlipRequest(70000), content: big},
		{name: "a flipped bit in a small blob", kind: "put", times: 1, disturb: blobtest.FlipRequest(70), content: small},
		{name: "the answer to a part lost", kind: "put part", times: 1, disturb: blobtest.LoseAnswer, content: big},
		{name: "the answer to the end lost", kind: "complete upload", times: 1, disturb: blobtest.LoseAnswer, content: big},
		{name: "a lost part", kind: "put part", times: 1, disturb: blobtest.LosePart, content: big},
		{name: "a lost part of a stream", kind: "put part", times: 1, disturb: blobtest.LosePart, content: big, stream: true, wrong: "did not store what it was sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			proxy := blobtest.NewHTTPProxy(t, server.Addr)
			o := blob.Options{PartSize: part, Patience: 20 * time.Second}
			if c.patience != 0 {
				o.Patience = c.patience
			}
			s := open(t, server.PlaceBy(t, proxy.Addr, "faults", strings.ReplaceAll(c.name, " ", "-")), o)
			proxy.Disturb(blobtest.Times(c.times, c.kind, c.disturb))
			var src io.Reader = bytes.NewReader(c.content)
			if c.stream {
				src = blobtest.Stream(c.content)
			}
			_, err := s.Put(t.Context(), "data/x", src, blob.PutOptions{})
			if n := proxy.Count(c.kind); n < min(c.times, 2) {
				t.Errorf("%s was asked %d times: the fault did not happen, want at least %d", c.kind, n, min(c.times, 2))
			}
			proxy.Disturb(nil)
			if left := blobtest.Leftovers(t, s); len(left) > 0 {
				t.Errorf("left over: got %+v, want none", left)
			}
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("put gives %v, not %q; want an error, %q in the error", err, c.wrong, c.wrong)
				}
				if list := blobtest.Names(t, s, ""); len(list) > 0 {
					t.Errorf("there is %q all the same, want none", list)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := blobtest.Get(t.Context(), s, "data/x"); err != nil || !bytes.Equal(got, c.content) {
				t.Errorf("%d bytes of %d are back, equal %t, %v", len(got), len(c.content), bytes.Equal(got, c.content), err)
			}
		})
	}
	t.Run("reading", func(t *testing.T) {
		t.Parallel()
		s3Reading(t, server, big)
	})
}

func pass(f func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) { f(w, r) }
}

func s3Reading(t *testing.T, server *blobtest.S3Server, big []byte) {
	proxy := blobtest.NewHTTPProxy(t, server.Addr)
	s := open(t, server.PlaceBy(t, proxy.Addr, "reading", "x"), blob.Options{PartSize: part, Patience: 5 * time.Second})
	blobtest.Put(t, s, "data/x", big)
	err := blobtest.Parallel(16, func(i int) error {
		for j := range 75 {
			if _, err := s.Put(t.Context(), fmt.Sprintf("n/%04d", i*75+j), bytes.NewReader(nil), blob.PutOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, disturb := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"cut in the middle": blobtest.Times(3, "get", blobtest.Cut(2_000_001)), "500": blobtest.Times(3, "get", pass(blobtest.Broken)), "throttled": blobtest.Times(3, "get", pass(blobtest.Slow)),
	} {
		before := proxy.Count("get")
		proxy.Disturb(disturb)
		if got, err := blobtest.Get(t.Context(), s, "data/x"); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(big), err)
		}
		if n := proxy.Count("get") - before; n < 4 {
			t.Errorf("%s: got %d requests, the fault did not happen; want at least 4", name, n)
		}
	}
	// A list of two pages, of which each fails at first.
	for kind, disturb := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){"500": pass(blobtest.Broken), "cut": blobtest.Cut(500)} {
		var n atomic.Int64
		proxy.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if blobtest.Kind(r) == "list" && n.Add(1)%2 == 1 {
				disturb(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
		if list := blobtest.Names(t, s, "n/"); len(list) != 1200 || list[1199] != "n/1199" {
			t.Errorf("%s: a list of %d; want len(list) 1200, list[1199] \"n/1199\"", kind, len(list))
		}
	}
	// Replaced while it is read: not a mixture of both.
	proxy.Disturb(blobtest.Times(1, "get", blobtest.Cut(1_000_000)))
	r, err := s.Get(t.Context(), "data/x", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	blobtest.Put(t, s, "data/x", blobtest.Bytes(77, len(big)))
	if _, err := io.Copy(io.Discard, r); err == nil {
		t.Error("half of one blob and half of another were given as one")
	}
	// A server that refuses: reported immediately, not after minutes.
	proxy.Disturb(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) })
	began := time.Now()
	if _, err := s.Put(t.Context(), "data/y", bytes.NewReader(nil), blob.PutOptions{}); err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("forbidden: got %v after %s; want an error, time.Since(began) at most 20 * time.Second", err, time.Since(began))
	}
}

// TestS3Resume: a process is killed while it uploads; the next one sends only what is missing.
func TestS3Resume(t *testing.T) {
	server := blobtest.S3(t)
	proxy := blobtest.NewHTTPProxy(t, server.Addr)
	place := server.PlaceBy(t, proxy.Addr, "resume", "x")
	want := blobtest.Bytes(9, 8*part)
	var parts atomic.Int64
	hold := make(chan struct{})
	proxy.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if blobtest.Kind(r) == "put part" {
			if parts.Add(1) > 5 {
				<-hold // the last ones never arrive
				panic(http.ErrAbortHandler)
			}
		}
		next.ServeHTTP(w, r)
	})
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_PUT="+place)
	var said bytes.Buffer
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return proxy.Count("put part") > 6 && proxy.Uploaded.Load() >= 5*part }, "five parts")
	cmd.Process.Kill()
	cmd.Wait()
	close(hold)
	proxy.Disturb(nil)
	if strings.Contains(said.String(), "ended") {
		t.Fatalf("it was too fast to be killed: %s, want no \"ended\" in it", said.String())
	}

	s := open(t, place, blob.Options{PartSize: part})
	if list := blobtest.Names(t, s, ""); len(list) != 0 {
		t.Fatalf("after the kill there is %q, want none", list)
	}
	if left := blobtest.Leftovers(t, s); len(left) != 1 || left[0].Name != "data/big" {
		t.Fatalf("left over: got %+v; want len(left) 1, left[0].Name \"data/big\"", left)
	}
	before := proxy.Uploaded.Load()
	if _, err := s.Put(t.Context(), "data/big", blobtest.Stream(want), blob.PutOptions{Resume: true}); err != nil {
		t.Fatal(err)
	}
	if sent := proxy.Uploaded.Load() - before; sent > 4*part {
		t.Errorf("%d bytes of %d were sent again, want at most %d", sent, len(want), 4*part)
	}
	if got, err := blobtest.Get(t.Context(), s, "data/big"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d are back, %v", len(got), len(want), err)
	}
	if left := blobtest.Leftovers(t, s); len(left) > 0 {
		t.Errorf("left over: got %+v, want none", left)
	}
}

// TestS3ResumeOther: what an earlier upload left is not taken for something else that it is not.
func TestS3ResumeOther(t *testing.T) {
	server := blobtest.S3(t)
	proxy := blobtest.NewHTTPProxy(t, server.Addr)
	s := open(t, server.PlaceBy(t, proxy.Addr, "resume", "y"), blob.Options{PartSize: part, Patience: -1})
	proxy.Disturb(blobtest.Times(1, "complete upload", func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }))
	old := blobtest.Bytes(1, 3*part)
	if _, err := s.Put(t.Context(), "data/x", bytes.NewReader(old), blob.PutOptions{Resume: true}); err == nil {
		t.Fatal("the fault did not happen")
	}
	proxy.Disturb(nil)
	left := blobtest.Leftovers(t, s)
	if len(left) != 1 {
		t.Fatalf("left over: got %+v, want length 1", left)
	}
	want := bytes.Clone(old)
	want[part+5] ^= 1
	if _, err := s.Put(t.Context(), "data/x", bytes.NewReader(want), blob.PutOptions{Resume: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := blobtest.Get(t.Context(), s, "data/x"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := s.Discard(t.Context(), left[0]); err != nil {
		t.Errorf("discard an upload that has ended: %v", err)
	}
}

// TestSFTPFaults: a connection that breaks again and again is reopened; nothing is lost, and what is permanent is reported.
func TestSFTPFaults(t *testing.T) {
	server := blobtest.SFTP(t)
	proxy := blobtest.NewTCPProxy(t, server.Addr)
	server.Know(t, proxy.Addr)
	s := open(t, server.Place(proxy.Addr, "x"), blob.Options{Patience: 20 * time.Second})
	want := blobtest.Bytes(1, 20<<20)
	proxy.CutAfter.Store(7 << 20)
	if _, err := s.Put(t.Context(), "data/x", blobtest.Stream(want), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := proxy.Cuts.Load(); n < 2 {
		t.Errorf("got %d cuts: the fault did not happen, want at least 2", n)
	}
	if got, err := blobtest.Get(t.Context(), s, "data/x"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if n := proxy.Cuts.Load(); n < 4 {
		t.Errorf("got %d cuts: the fault did not happen, want at least 4", n)
	}
	proxy.CutAfter.Store(0)
	if left := blobtest.Leftovers(t, s); len(left) > 0 {
		t.Errorf("left over: got %+v, want none", left)
	}
	for i := range 8 {
		proxy.CutAll()
		name := fmt.Sprintf("data/n%d", i)
		blobtest.Put(t, s, name, []byte(name))
		proxy.CutAll()
		if err := s.Delete(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if list := blobtest.Names(t, s, ""); len(list) != 1 {
		t.Errorf("got %q, want length 1", list)
	}
	// A host that is away for good.
	impatient := open(t, server.Place(proxy.Addr, "x"), blob.Options{Patience: time.Second})
	proxy.Refuse.Store(true)
	proxy.CutAll()
	if _, err := impatient.Put(t.Context(), "data/y", bytes.NewReader(want), blob.PutOptions{}); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("a host that is away: %v; want an error, \"given up\" in the error", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, "data/y", bytes.NewReader(want), blob.PutOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose time is over: %v, want context.DeadlineExceeded", err)
	}
}

// TestFullDisk: a full disk is reported, and nothing is left behind.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here (root is needed): %s", out)
	}
	defer exec.Command("umount", dir).Run()
	sftp := blobtest.SFTP(t)
	for name, place := range map[string]string{"folder": dir + "/f", "sftp": strings.Replace(sftp.Place(sftp.Addr, "x"), sftp.Dir+"/x", dir+"/s", 1)} {
		t.Run(name, func(t *testing.T) {
			s := open(t, place, blob.Options{})
			blobtest.Put(t, s, "a", blobtest.Bytes(1, 100_000))
			_, err := s.Put(t.Context(), "b", bytes.NewReader(blobtest.Bytes(2, 5<<20)), blob.PutOptions{})
			if err == nil || !(strings.Contains(err.Error(), "no space left") || strings.Contains(err.Error(), "disk full")) {
				t.Errorf("a full disk gives %v", err)
			}
			if list := blobtest.Names(t, s, ""); len(list) != 1 {
				t.Errorf("list %q, want length 1", list)
			}
			if left := blobtest.Leftovers(t, s); len(left) > 0 {
				t.Errorf("left over: got %+v, want none", left)
			}
			blobtest.Put(t, s, "c", blobtest.Bytes(1, 100_000))
		})
	}
}
