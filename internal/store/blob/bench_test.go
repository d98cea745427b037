package blob_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// BenchmarkSmall puts small blobs by eight workers: what each costs is syncing and asking, not bytes.
func BenchmarkSmall(b *testing.B) {
	s3, sftp := blobtest.S3(b), blobtest.SFTP(b)
	for name, place := range map[string]string{"folder": b.TempDir(), "s3": s3.Place(b, "bench", "x"), "sftp": sftp.Place(sftp.Addr, "x")} {
		b.Run(name, func(b *testing.B) {
			s, err := blob.Open(b.Context(), place, blob.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			content := blobtest.Bytes(1, 2000)
			var all sync.WaitGroup
			for w := range 8 {
				all.Go(func() {
					for i := w; i < b.N; i += 8 {
						if _, err := s.Put(b.Context(), fmt.Sprintf("data/s%d/t%d/x", i%50, i), bytes.NewReader(content), blob.PutOptions{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}
