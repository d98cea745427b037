package sandbox

import (
	"context"
	"testing"
	"time"
)

func TestQuick(t *testing.T) {
	cache := t.TempDir()
	dir := t.TempDir()
	for _, srv := range []string{"mariadb"} {
		t.Run(srv, func(t *testing.T) {
			for i := range 2 {
				start := time.Now()
				s, err := Up(context.Background(), Options{Dir: dir, CacheDir: cache, Servers: []string{srv}, Topology: TopologyGalera, Progress: func(m string) { t.Log(time.Since(start), m) }})
				if err != nil {
					t.Fatal(err)
				}
				t.Log(i, time.Since(start))
				start = time.Now()
				if err := s.Down(context.Background()); err != nil {
					t.Fatal(err)
				}
				t.Log("down", time.Since(start))
			}
		})
	}
}
