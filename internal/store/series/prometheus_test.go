//go:build tsdb

package series

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Prometheus' database brings 360 packages (the SDKs of all clouds whose services it discovers), half of all that Risso's tests would
// be compiled and checked with. So it is here by a build tag, which script/test sets where it tests without the race detector.

// asked names the source of the answers that this store's are compared with.
const asked = "Prometheus' own database"

// How much is compared.
const (
	hours  = int64(2)
	rounds = 3
)

// newReference opens a TSDB of Prometheus.
func newReference(t *testing.T) reference {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.RetentionDuration = 0
	opts.MinBlockDuration = int64(24 * time.Hour / time.Millisecond)
	opts.MaxBlockDuration = opts.MinBlockDuration
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &database{DB: db, t: t}
}

type database struct {
	*tsdb.DB
	t   *testing.T
	app storage.Appender
}

func (d *database) add(l labels.Labels, at int64, v float64) {
	d.t.Helper()
	if d.app == nil {
		d.app = d.Appender(d.t.Context())
	}
	if _, err := d.app.Append(0, l, at, v); err != nil {
		d.t.Fatal(err)
	}
}

func (d *database) commit() {
	d.t.Helper()
	if err := d.app.Commit(); err != nil {
		d.t.Fatal(err)
	}
	d.app = nil
}
