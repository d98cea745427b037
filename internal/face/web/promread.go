package web

import (
	"github.com/rissodb/risso/internal/store/series/gaps"

	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// remoteReadPath is where remote read is asked.
const remoteReadPath = "/api/v1/read"

// remoteRead answers Prometheus' protocol remote read, version 1, with samples: a Prometheus evaluates rules over what Risso keeps.
func (s *server) remoteRead(w http.ResponseWriter, r *http.Request) {
	packed, release, err := s.readBody(w, r, formBytes)
	if err != nil {
		writePromError(w, err)
		return
	}
	defer release()
	a := s.gate.answer(r)
	a.takes = false // it is packed already
	defer a.free()
	err = s.gate.run(r.Context(), s.gate.promql, func(ctx context.Context) error {
		a.begin()
		return s.prom.read(ctx, packed, a)
	})
	if err != nil {
		writePromError(w, err)
		return
	}
	w.Header().Set("Content-Encoding", "snappy")
	a.send(w)
}

// read answers one request of remote read.
func (p *promAPI) read(ctx context.Context, packed []byte, a *answer) error {
	if n, err := snappy.DecodedLen(packed); err != nil || n > formBytes {
		return badData("the body is not a request of remote read packed by snappy, or has more than %d bytes", formBytes)
	}
	body, err := snappy.Decode(nil, packed)
	if err != nil {
		return badData("the body: %w", err)
	}
	var req prompb.ReadRequest
	if err := req.Unmarshal(body); err != nil {
		return badData("the body: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.limits.Time)
	defer cancel()
	b := newBounds(p.limits)
	room := p.limits.Samples
	resp := prompb.ReadResponse{}
	for _, q := range req.Queries {
		result, err := p.readOne(ctx, q, b, &room)
		if err != nil {
			return err
		}
		resp.Results = append(resp.Results, result)
	}
	// An answer that does not fit is refused before it is made: it would be held three times.
	if size := int64(resp.Size()); size > p.limits.Answer {
		return fmt.Errorf("%w: it has %d bytes; ask for less: fewer series, a shorter range", errTooLarge, size)
	}
	out, err := resp.Marshal()
	if err != nil {
		return err
	}
	a.kind = "application/x-protobuf"
	_, err = io.Writer(a).Write(snappy.Encode(nil, out))
	return err
}

// readOne reads what one query of a request asks for; room is how many samples the answer may still get.
func (p *promAPI) readOne(ctx context.Context, query *prompb.Query, b *bounds, room *int) (*prompb.QueryResult, error) {
	matchers, err := readMatchers(query.Matchers)
	if err != nil {
		return nil, err
	}
	q, err := gaps.Mark(boundQueryable{p.store.Queryable(), b}).Querier(query.StartTimestampMs, query.EndTimestampMs)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	hints := &storage.SelectHints{Start: query.StartTimestampMs, End: query.EndTimestampMs}
	if query.Hints != nil {
		hints.Func = query.Hints.Func // series: only labels are asked for
	}
	set := q.Select(ctx, true, hints, matchers...)
	out := &prompb.QueryResult{}
	var it chunkenc.Iterator
	for set.Next() {
		s := set.At()
		ts := &prompb.TimeSeries{Labels: prompb.FromLabels(s.Labels(), nil)}
		for it = s.Iterator(it); hints.Func != "series" && it.Next() != chunkenc.ValNone; *room-- {
			if *room <= 0 {
				return nil, fmt.Errorf("%w: more than %d samples; name fewer series by matchers, or ask for a shorter range", errTooLarge, p.limits.Samples)
			}
			t, v := it.At()
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: t, Value: v})
		}
		if err := it.Err(); err != nil {
			return nil, err
		}
		if len(ts.Samples) > 0 || hints.Func == "series" {
			out.Timeseries = append(out.Timeseries, ts)
		}
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	return out, set.Err()
}

// readMatchers makes matchers of those of a request.
func readMatchers(list []*prompb.LabelMatcher) ([]*labels.Matcher, error) {
	kinds := map[prompb.LabelMatcher_Type]labels.MatchType{prompb.LabelMatcher_EQ: labels.MatchEqual, prompb.LabelMatcher_NEQ: labels.MatchNotEqual,
		prompb.LabelMatcher_RE: labels.MatchRegexp, prompb.LabelMatcher_NRE: labels.MatchNotRegexp}
	var out []*labels.Matcher
	for _, m := range list {
		kind, known := kinds[m.Type]
		if !known {
			return nil, badData("a matcher of the unknown type %d", m.Type)
		}
		made, err := labels.NewMatcher(kind, m.Name, m.Value)
		if err != nil {
			return nil, badData("a matcher: %w", err)
		}
		out = append(out, made)
	}
	return out, nil
}
