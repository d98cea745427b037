package ask

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox/sample"
)

// readTime bounds how long rows are read from the server.
const readTime = time.Minute

// taken is what stands in the comment of statements that take rows.
const taken = "a part of the rows, to try an ALTER TABLE on"

// The change is timed on several parts of the rows, one after the other, as long as that is short: a single short measurement tells more of the
// moment than of the change.
const (
	mostParts = 3
	notShort  = 10. // seconds
)

// Sample times the change on parts of the real rows: each has most bytes of data and indexes, about. The way is that of the answer. Its Unmeasured says
// why there is none; an error is one of the box or the server as a whole.
func (b *Box) Sample(ctx context.Context, target mysql.Target, f *alter.Facts, st alter.Statement, a alter.Answer, most int64, say func(string)) (alter.Sample, error) {
	s := alter.Sample{Elsewhere: !f.Place.Here}
	if f.Rows == 0 || f.Size() == 0 {
		s.Unmeasured = "the table is empty, as far as the server knows"
		return s, nil
	}
	var err error
	if s.MorePool, err = b.morePool(ctx, f); err != nil {
		return s, err
	}
	k := &clone{b: b, f: f, st: st}
	share := min(1, float64(most)/float64(f.Size()))
	o := sample.Options{Rows: int64(math.Ceil(float64(f.Rows) * share)), Of: f.Rows, Purpose: taken}
	for len(s.Parts) < mostParts {
		p, err := k.part(ctx, target, o, a, &s, say)
		if err != nil || s.Unmeasured != "" {
			return s, err
		}
		if s.Parts = append(s.Parts, p); p.Seconds > notShort {
			break
		}
	}
	return s, nil
}

// part puts some of the rows into a new clone, and times the change there. If it could not, s.Unmeasured says why.
func (k *clone) part(ctx context.Context, target mysql.Target, o sample.Options, a alter.Answer, s *alter.Sample, say func(string)) (p alter.Part, err error) {
	if err := k.reset(ctx); err != nil {
		return p, err
	}
	say("put a part of the rows into the clone")
	rows, err := k.b.take(ctx, target, k.f, o)
	if err != nil {
		s.Unmeasured = "a part of the rows could not be copied: " + err.Error()
		return p, ctx.Err()
	}
	if p.Rows = rows.Rows; p.Rows == 0 {
		s.Unmeasured = "there are no rows"
		return p, nil
	}
	if p.Bytes, err = k.size(ctx, k.st.Table); err != nil {
		return p, err
	}
	if s.Elsewhere && s.Reads == nil {
		s.Reads = compare(ctx, target, k.b.Target, k.f, rows)
	}
	k.settle(ctx)
	say("change the clone")
	if _, _, err := k.alter(ctx, a.Algorithm, a.Lock); err != nil {
		if mysql.ErrorNumber(err) == 0 {
			return p, err
		}
		s.Fails = errno.WithoutValues(err.Error())
		s.Unmeasured = "the change failed on a part of the rows"
		return p, nil
	}
	p.Seconds = k.empty.Seconds()
	name := k.st.Table
	if k.st.RenamedTo != nil {
		name = *k.st.RenamedTo
	}
	p.Grown, err = k.size(ctx, name)
	return p, err
}

// take puts a part of the rows into the clone.
func (b *Box) take(ctx context.Context, target mysql.Target, f *alter.Facts, o sample.Options) (part sample.Sample, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("not done within %s", readTime))
	defer cancel()
	from, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: readTime})
	if err != nil {
		return part, err
	}
	defer from.Close()
	to, err := b.Target.ConnectStream(ctx, mysql.StreamOptions{Patience: boxPatience})
	if err != nil {
		return part, err
	}
	defer to.Close()
	if err := errors.Join(from.ForRows(ctx, f.Server), to.ForRows(ctx, b.c.Server)); err != nil {
		return part, err
	}
	if err := dropTriggers(ctx, to, f.Triggers); err != nil {
		return part, err
	}
	return sample.Copy(ctx, from, to, f.Table, o)
}

// settle writes to disk what the sandbox still has in memory of the rows that it was given: it would be written while the change is timed. Where the
// server cannot (another engine) the time is longer.
func (k *clone) settle(ctx context.Context) {
	if k.b.c.Exec(ctx, "FLUSH /* risso: before it is timed */ TABLES "+k.st.Table.String()+" FOR EXPORT") == nil {
		_ = k.b.c.Exec(ctx, "UNLOCK TABLES")
	}
}

// size is what the clone's data and indexes have.
func (k *clone) size(ctx context.Context, name mysql.TableName) (n int64, err error) {
	if err := k.b.c.Exec(ctx, "ANALYZE TABLE /* risso: how large is the clone */ "+name.String()); err != nil {
		return 0, err
	}
	if q := k.b.c.Server.FreshStatistics(); q != "" {
		if err := k.b.c.Exec(ctx, q); err != nil {
			return 0, err
		}
	}
	text, err := k.b.c.Text(ctx, "SELECT /* risso: how large is the clone */ DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name))
	if err != nil {
		return 0, err
	}
	n, err = strconv.ParseInt(text, 10, 64)
	return n, err
}

// dropTriggers keeps the clone's triggers from firing: they fire in no ALTER TABLE either.
func dropTriggers(ctx context.Context, s *mysql.Stream, list []define.Definition) error {
	for _, d := range list {
		if err := s.Exec(ctx, "DROP TRIGGER IF EXISTS "+mysql.Quote(d.Schema)+"."+mysql.Quote(d.Name)); err != nil {
			return err
		}
	}
	return nil
}

// comparePlaces are so many of the first places of a sample whose rows both servers read.
const comparePlaces = 8

// compare lets both servers read the same rows: how fast is the one, measured by the other. Nothing where that cannot be asked.
func compare(ctx context.Context, target, box mysql.Target, f *alter.Facts, part sample.Sample) []float64 {
	if part.Key == "" || len(part.Places) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var where []string
	for _, p := range part.Places[:min(len(part.Places), comparePlaces)] {
		where = append(where, part.Key+" BETWEEN "+p.Low+" AND "+p.High)
	}
	name := mysql.TableName{Schema: f.Table.Schema, Name: f.Table.Name}
	read := "SELECT /* risso: how fast does it read */ COUNT(*), BIT_XOR(CRC32(CONCAT_WS('#', " + strings.Join(sample.Columns(f.Table), ", ") + "))) FROM " + name.String() + " WHERE " + strings.Join(where, " OR ")
	var out []float64
	for _, at := range []mysql.Target{box, target} {
		best := 0.0
		for range 3 {
			began := time.Now()
			if err := query(ctx, at, read, func([][]byte) error { return nil }); err != nil {
				return nil
			}
			if d := time.Since(began).Seconds(); best == 0 || d < best {
				best = d
			}
		}
		out = append(out, best)
	}
	return out
}

func query(ctx context.Context, target mysql.Target, statement string, f func([][]byte) error) error {
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: readTime})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Query(ctx, statement, f)
}
