package serve

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// TestHealthOff: health: off in the config file lets nobody learn which servers are watched; a server that is watched and one that is not are answered alike.
func TestHealthOff(t *testing.T) {
	for _, c := range []struct {
		says string
		want int
	}{{"", http.StatusServiceUnavailable}, {"health: on\n", http.StatusServiceUnavailable}, {"health: off\n", http.StatusNotFound}} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(c.says+"servers:\n- name: db1\n  dsn: u@tcp(127.0.0.1:1)/\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := config.Flags{Listen: config.DefaultListen, Sources: config.Sources{ConfigFile: file}}.Settings()
		if err != nil {
			t.Fatal(err)
		}
		desk := newHealth(func() []config.Watched { return set.Servers }, set.NoHealth, func(string) *mysql.Traffic { return nil }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- desk.Run(ctx) }()
		for path, want := range map[string]int{"/health/db1/up": c.want, "/health/db2/up": http.StatusNotFound} {
			got := 0
			for range 1000 { // until it runs
				w := httptest.NewRecorder()
				desk.Under("/health/").ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, strings.NewReader("")))
				if got = w.Code; got == want {
					break
				}
			}
			if got != want {
				t.Errorf("%q, %s: got %d; want %d", c.says, path, got, want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("health: maybe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (config.Flags{Listen: config.DefaultListen, Sources: config.Sources{ConfigFile: file}}).Settings(); err == nil || !strings.Contains(err.Error(), "on or off") {
		t.Errorf("health: maybe: got %v", err)
	}
}
