package binlog

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
)

// ReadHeads reads the beginning of logs that follow each other, and gives each but the last the part of an index that tells which transactions it can
// have: so Search need not read those that have none that are looked for. Logs of MariaDB are left as they are: numbers of a domain need not grow.
func ReadHeads(ctx context.Context, files []File) ([]File, error) {
	out := slices.Clone(files)
	var before []mysql.GTIDSet
	for _, f := range files {
		set, known, err := headOf(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("read the beginning of %s: %w", f.Name, err)
		}
		if !known || set.ByDomain() {
			return out, nil
		}
		before = append(before, set)
	}
	for i := range out[:max(0, len(out)-1)] {
		if !before[i+1].Empty() && out[i].Index == nil {
			out[i].Index = &Index{Name: out[i].Name, Size: out[i].Size, Before: before[i], After: before[i+1]}
		}
	}
	return out, nil
}

// headOf is which transactions a server had when it began a log; known is false if the log does not say.
func headOf(ctx context.Context, f File) (set mysql.GTIDSet, known bool, err error) {
	in, err := f.Open(ctx)
	if err != nil {
		return set, false, err
	}
	defer in.Close()
	r, err := binlogevent.NewReader(in, binlogevent.Options{Skip: notForIndex})
	if err != nil {
		return set, false, err
	}
	defer r.Close()
	for range headEvents + 1 { // an encrypted log has one more
		e, err := r.Next()
		if err == io.EOF {
			return set, false, nil
		}
		if err != nil {
			return set, false, err
		}
		if e.Type == binlogevent.TypePreviousGTIDs || e.Type == binlogevent.TypeMariaGTIDList {
			set, err = binlogevent.ParseGTIDs(e)
			return set, err == nil, err
		}
	}
	return set, false, nil
}
