package ask

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// ErrNoBox says that no server on this machine can answer for the one that was asked about.
var ErrNoBox = errors.New("no server of that kind and version on this machine")

// purpose is what sandboxes are claimed for.
const purpose = "alter"

// boxPatience is how long a statement in a sandbox may take: an ALTER TABLE of a sample.
const boxPatience = 10 * time.Minute

// Box is a throw-away server on which a clone is altered.
type Box struct {
	Target mysql.Target
	On     string  // which server it is
	Exact  bool    // its version is that of the server
	Share  float64 // of the server's memory that it has
	c      *mysql.Conn
	down   func() error
}

// BoxAt is a box on a server that is already there, and belongs to the caller, all of it.
func BoxAt(ctx context.Context, target mysql.Target, f *alter.Facts) (*Box, error) {
	c, err := mysql.Connect(ctx, target.WithPatience(boxPatience), nil)
	if err != nil {
		return nil, err
	}
	return &Box{Target: target, On: kindOf(c.Server), Exact: c.Server.Version == f.Server.Version, Share: 1, c: c}, nil
}

func kindOf(s mysql.Server) string { return string(s.Flavour) + " " + s.Version }

// OpenBox starts a sandbox with the settings of the server that decide. sample is how many bytes of the table's rows will be timed there; the memory
// that InnoDB has for pages, and the redo log, are cut by the same share, so that what does not fit on the server does not fit there. The memory to
// sort in stays: with less of it MySQL 9.7 takes three times as long for each row, but for twice the rows it takes twice as long. dir is where sandboxes are; "": as usual.
func OpenBox(ctx context.Context, f *alter.Facts, sample int64, dir string, say func(string)) (_ *Box, err error) {
	server, err := sandbox.Nearest(ctx, f.Server.Server, f.Server.AltersAs)
	if errors.Is(err, sandbox.ErrNoServer) {
		return nil, fmt.Errorf("%w: %s", ErrNoBox, kindOf(f.Server))
	} else if err != nil {
		return nil, err
	}
	share := 1.0
	if size := f.Size(); sample > 0 && size > sample {
		share = float64(sample) / float64(size)
	}
	say("start a " + server.Name + " to ask")
	box, err := sandbox.UpFor(ctx, purpose, sandbox.Options{Dir: dir, Servers: []string{server.Binary}, Settings: settings(f, share), StartTimeout: 2 * time.Minute})
	if err != nil {
		return nil, fmt.Errorf("start a server to ask: %w", err)
	}
	down := func() error { return box.End(ctx) }
	target, err := mysql.ParseTarget(box.Primary().DSN)
	if err == nil {
		var b *Box
		if b, err = BoxAt(ctx, target, f); err == nil {
			b.Share, b.down = share, down
			b.Exact = server.Kind().Number == f.Server.Number
			return b, nil
		}
	}
	return nil, errors.Join(err, down())
}

// What a sandbox gets at least: below that a server does not start, or does little else than make room.
const (
	leastPool = 24 << 20
	mostPool  = 512 << 20
	leastRedo = 8 << 20
	leastScan = 100 // pages
	mostRedo  = 256 << 20
)

// settings are those with which the sandbox starts.
func settings(f *alter.Facts, share float64) []string {
	list := []string{"local_infile=ON", "event_scheduler=OFF"}
	set := func(name string, value string) {
		if value != "" {
			list = append(list, "loose_"+name+"="+value)
		}
	}
	cut := func(name string, fixed, least, most int64) { // fixed is the part of it that does not count
		if v, err := strconv.ParseInt(f.Variables[name], 10, 64); err == nil {
			set(name, strconv.FormatInt(min(most, max(least, min(v, fixed+int64(float64(v-fixed)*share)))), 10))
		}
	}
	for _, name := range f.Server.AlterStartVariables() {
		set(name, f.Variables[name])
	}
	cut("innodb_buffer_pool_size", 0, leastPool, mostPool)
	cut("innodb_lru_scan_depth", 0, leastScan, mostPool) // each second so many pages are made free: of a small pool that would be all of them
	redo, files := f.Server.RedoVariable()
	cut(redo, f.Server.RedoReserve(), leastRedo/int64(files), mostRedo)
	return list
}

// morePool says by how much the box has more than its share of the server's memory for pages; 0: not known.
func (b *Box) morePool(ctx context.Context, f *alter.Facts) (float64, error) {
	text, err := b.c.Text(ctx, "SELECT /* risso: how much memory has the sandbox */ @@innodb_buffer_pool_size")
	if err != nil {
		return 0, fmt.Errorf("ask for innodb_buffer_pool_size: %w", err)
	}
	mine, bad := strconv.ParseFloat(text, 64)
	theirs, worse := strconv.ParseFloat(f.Variables["innodb_buffer_pool_size"], 64)
	if bad != nil || worse != nil || theirs <= 0 {
		return 0, nil
	}
	return mine / theirs / b.Share, nil
}

// Close ends it. What was started for it is gone then.
func (b *Box) Close() error {
	err := b.c.Close()
	if b.down != nil {
		return errors.Join(err, b.down())
	}
	return err
}

// note says what of the server the box does not have.
func (b *Box) notes(f *alter.Facts) (list []string) {
	if !b.Exact {
		list = append(list, fmt.Sprintf("asked on %s: the server is %s, of the same series", b.On, kindOf(f.Server)))
	}
	return list
}
