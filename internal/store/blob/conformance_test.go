package blob_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// open opens a place and fails the test when that fails.
func open(t *testing.T, place string, o blob.Options) blob.Store {
	t.Helper()
	if o.Notice == nil {
		o.Notice = func(op string, err error, wait time.Duration) { t.Logf("again in %s: %s: %v", wait, op, err) }
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := blob.Open(ctx, place, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	blobtest.Run(t, 1<<20, func(t *testing.T, name string) blob.Store {
		return open(t, filepath.Join(dir, name, "not", "yet"), blob.Options{})
	})
}

const part = 5 << 20

func TestS3(t *testing.T) {
	server := blobtest.S3(t)
	blobtest.Run(t, part, func(t *testing.T, name string) blob.Store {
		return open(t, server.Place(t, name, "pre/fix"), blob.Options{PartSize: part})
	})
}

func TestSFTP(t *testing.T) {
	server := blobtest.SFTP(t)
	blobtest.Run(t, 2<<20, func(t *testing.T, name string) blob.Store {
		return open(t, server.Place(server.Addr, name+"/not/yet"), blob.Options{})
	})
}
