package blob_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// TestPlaces: a place that cannot be read as one is wrong use, reported immediately, and never with a secret in it.
func TestPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "hunter2"
	for place, want := range map[string]string{
		"": "empty", file: "not a folder", "a\nb": "line break", "s3:bucket": "s3://", "sftp:host/dir": "sftp://", "gs://bucket": "not a kind of place",
		"file:/x": "file://", "file://host/x": "three slashes", "http://host/x": "not a kind of place",
		"s3://": "not the name of a bucket", "s3:///x": "not the name of a bucket", "s3://UPPER/x": "not the name of a bucket", "s3://ab/x": "not the name of a bucket",
		"s3://key:" + secret + "@bucket/x": "AWS_ACCESS_KEY_ID", "s3://bucket/a b": "prefix", "s3://bucket/x/../y": "prefix", "s3://bucket/x?endpont=h": "use endpoint",
		"s3://bucket/x?endpoint=ftp://h": "neither http nor https", "s3://bucket/x?endpoint=u:" + secret + "@h": "a host", "s3://bucket/x?region=a&region=b": "twice",
		"s3://bucket/x?path-style=yes": "on or off", "s3://bucket/x?sse=x": "s3, kms or c", "s3://bucket/x?sse=c": "sse-key-file", "s3://bucket/x?kms-key=k": "sse=kms",
		"s3://bucket/x?sse=c&sse-key-file=f&endpoint=http://h": "https", "s3://bucket/x?tag=a": "KEY:VALUE",
		"sftp://": "no host", "sftp://u@/d": "no host", "sftp://u:" + secret + "@h/d": "password", "sftp://u@h": "no folder", "sftp://u@h/": "no folder", "sftp://u@h:0/d": "port",
		"sftp://u@h:99999/d": "port", "sftp://u:" + secret + "@h:x/d": "cannot be read", "sftp://u@h/~x/d": "/~/DIR", "sftp://u@h/d?keyfile=x": "use key-file",
	} {
		s, err := blob.Open(t.Context(), place, blob.Options{})
		if err == nil {
			s.Close()
		}
		var wrong *blob.PlaceError
		if !errors.As(err, &wrong) || wrong.ExitCode() != 2 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want wrong use with %q", place, err, want)
		}
		if err := blob.Check(place); !errors.As(err, &wrong) {
			t.Errorf("check %q: %v", place, err)
		}
	}
	for _, place := range []string{"dir", "./s3:x", "/abs/dir?x", "s3://bucket", "s3://bucket/a/b?region=eu-west-1", "sftp://u@h/d", "sftp://u@[::1]:22/~/d", "file:///x/y"} {
		if err := blob.Check(place); err != nil {
			t.Errorf("check %q: %v", place, err)
		}
	}
}

// TestAway: what cannot be reached, or is not what it should be, is reported soon, with what to do.
func TestAway(t *testing.T) {
	s3, sftp := blobtest.S3(t), blobtest.SFTP(t)
	other := blobtest.SFTP(t)
	missing := strings.Replace(s3.Place(t, "there", "x"), "s3://there/", "s3://elsewhere/", 1)
	stranger := *sftp
	stranger.KeyFile = other.KeyFile
	unknown := *sftp
	unknown.KnownHosts = filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(unknown.KnownHosts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	changed := *sftp
	changed.KnownHosts = filepath.Join(t.TempDir(), "known")
	changed.HostKey = other.HostKey
	changed.Know(t, sftp.Addr)
	for _, c := range []struct{ place, want string }{
		{missing, "no bucket"}, {strings.Replace(s3.Place(t, "there", "x"), "http:", "https:", 1), "HTTP"},
		{"s3://bucket/x?region=r&endpoint=http://127.0.0.1:1", "refused"},
		{stranger.Place(sftp.Addr, "d"), " (1 key tried)"}, {unknown.Place(sftp.Addr, "d"), "ssh-keyscan -p"}, {changed.Place(sftp.Addr, "d"), "differs from"},
		{"sftp://u@127.0.0.1:1/d?key-file=" + sftp.KeyFile, "refused"}, {"sftp://u@127.0.0.1:1/d?key-file=/nowhere", "key-file"},
	} {
		began := time.Now()
		s, err := blob.Open(t.Context(), c.place, blob.Options{Patience: time.Second})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || time.Since(began) > 10*time.Second {
			t.Errorf("%s: %v after %s; want %q", c.place, err, time.Since(began), c.want)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	if s, err := blob.Open(t.Context(), s3.Place(t, "there", "x"), blob.Options{}); err == nil {
		s.Close()
		t.Error("wrong keys are taken")
	}
}

// TestS3Headers: encryption, tags and class are asked for with every object, small or in parts, and the keys of SSE-C with
// every read. versitygw itself does not encrypt, so the requests are inspected.
func TestS3Headers(t *testing.T) {
	server := blobtest.S3(t)
	for name, c := range map[string]struct {
		params []string
		want   map[string]string
	}{
		"s3":   {[]string{"sse=s3", "storage-class=STANDARD_IA"}, map[string]string{"X-Amz-Server-Side-Encryption": "AES256", "X-Amz-Storage-Class": "STANDARD_IA"}},
		"kms":  {[]string{"sse=kms", "kms-key=arn:k"}, map[string]string{"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "arn:k"}},
		"tags": {[]string{"tag=team:dba", "tag-kind=on"}, map[string]string{"X-Amz-Tagging": "risso-kind=data&team=dba"}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := blobtest.NewHTTPProxy(t, server.Addr)
			s := open(t, server.PlaceBy(t, proxy.Addr, "headers", name, c.params...), blob.Options{PartSize: part, Patience: -1})
			for _, n := range []int{100, part + 1} {
				from := len(proxy.Headers())
				_, err := s.Put(t.Context(), "data/x", bytes.NewReader(blobtest.Bytes(1, n)), blob.PutOptions{})
				if err != nil {
					t.Logf("the server says: %v", err) // it may not know the header; what matters is that it was asked
				}
				h := proxy.Headers()[from] // of the object, or of the beginning of its parts
				for k, v := range c.want {
					if h.Get(k) != v {
						t.Errorf("%d bytes: %s is %q, not %q", n, k, h.Get(k), v)
					}
				}
			}
		})
	}
}

// TestS3TLS: a server with its own certificate is trusted by ca-file only, and SSE-C works over it.
func TestS3TLS(t *testing.T) {
	server := blobtest.S3TLS(t)
	place := server.Place(t, "secure", "x")
	s := open(t, place, blob.Options{PartSize: part})
	blobtest.Put(t, s, "a", []byte("content"))
	if got, err := blobtest.Get(t.Context(), s, "a"); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v; want \"content\"", got, err)
	}
	without := strings.Replace(place, "&ca-file="+server.CA, "", 1)
	began := time.Now()
	if s, err := blob.Open(context.Background(), without, blob.Options{}); err == nil || !strings.Contains(err.Error(), "certificate") || time.Since(began) > 20*time.Second {
		t.Errorf("a stranger's certificate: got %v, %v; want an error, \"certificate\" in the error, time.Since(began) at most 20 * time.Second", s, err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, place+"&sse=c&sse-key-file="+key, blob.Options{PartSize: part})
	for _, n := range []int{100, part + 1} {
		want := blobtest.Bytes(5, n)
		if _, err := c.Put(t.Context(), "c", bytes.NewReader(want), blob.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := blobtest.Get(t.Context(), c, "c"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if err := os.WriteFile(key, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Open(t.Context(), place+"&sse=c&sse-key-file="+key, blob.Options{}); err == nil || !strings.Contains(err.Error(), "32 bytes") {
		t.Errorf("a key that is too short: %v; want an error, \"32 bytes\" in the error", err)
	}
}

// TestSFTPKeys: the agent's keys, those of ~/.ssh, and one with a passphrase that the agent has; a host with several keys of
// which one is known.
func TestSFTPKeys(t *testing.T) {
	server := blobtest.SFTP(t)
	pem, err := os.ReadFile(server.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ssh.ParseRawPrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile(server.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		p := filepath.Join(home, ".ssh", name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("known_hosts", known)
	place := "sftp://" + server.User + "@" + server.Addr + server.Dir + "/keys"
	try := func(what, place, wrong string) {
		t.Helper()
		s, err := blob.Open(t.Context(), place, blob.Options{Patience: -1})
		if err == nil {
			s.Close()
		}
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v; want %q", what, err, wrong)
		}
	}
	try("no key", place, "no key to log in with")
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	lockedFile := write("locked", encodePEM(locked))
	try("a key with a passphrase", place+"?key-file="+lockedFile, "ssh-add")
	sock := filepath.Join(home, "agent")
	serveAgent(t, sock, raw)
	t.Setenv("SSH_AUTH_SOCK", sock)
	try("the agent", place, "")
	try("a key with a passphrase that the agent has", place+"?key-file="+lockedFile, "")
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(home, "nobody"))
	write("id_ed25519", pem)
	try("~/.ssh", place, "")
	try("a key that is none", place+"?key-file="+write("text", []byte("text")), "key-file")
}
