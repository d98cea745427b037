package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

// closer reads samples of the heaviest classes, and plans.
func (c *Collector) closer(ctx context.Context, at int64, list []cost) error {
	for k, t := range c.sampled {
		if at-t >= sampleEvery {
			delete(c.sampled, k)
		}
	}
	wanted := map[digestKey]sampleKey{}
	var ids []string
	for _, d := range list {
		k := sampleKey{c.classes[d.digestKey].class, d.schema}
		if _, fresh := c.sampled[k]; fresh || d.id == "" || aroundPrepared[c.classes[d.digestKey].verb] {
			continue
		}
		wanted[d.digestKey] = k
		ids = append(ids, d.id)
	}
	if len(ids) == 0 {
		return nil
	}
	if c.named == nil || len(c.named) > maxOwn {
		c.named = map[string]bool{}
	}
	best := map[sampleKey]read.StatementSample{}
	err := read.Samples(ctx, c.conn, ids, func(s read.StatementSample) error {
		k, ok := wanted[digestKey{s.Schema, s.Digest}]
		if !ok {
			return nil
		}
		if old, there := best[k]; !there || better(s, old) {
			best[k] = s
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read samples: %w", err)
	}
	var store []events.Sample
	var named []events.Class
	for k, s := range best {
		c.sampled[k] = at
		when := s.Time
		if when == 0 {
			when = at
		}
		if !s.Cut && !c.named[k.class] { // pt-query-digest's ID of a class needs a statement
			c.named[k.class] = true
			named = append(named, events.Class{Instance: c.instance.ID, ID: k.class, Digest: s.Digest, PtID: sqltext.PtID(s.Text), FirstSeen: at, LastSeen: at})
		}
		store = append(store, events.Sample{Instance: c.instance.ID, Class: k.class, Time: when, Text: c.shown(s.Text), Seconds: s.Seconds, Schema: s.Schema, User: s.User, Host: s.Host})
	}
	if err := c.Store.AddSamples(ctx, store...); err != nil {
		return err
	}
	if err := c.Store.AddClasses(ctx, named...); err != nil {
		return err
	}
	return c.takePlans(ctx, at, best)
}

// better reports whether a sample is better than another one: whole before cut, with a user before without, slower before faster.
func better(a, b read.StatementSample) bool {
	if a.Cut != b.Cut {
		return !a.Cut
	}
	if (a.User == "") != (b.User == "") {
		return a.User != ""
	}
	return a.Seconds > b.Seconds
}

// shown is a statement's text as it may be stored: valid UTF-8, bounded, without a password ever and without literals if asked.
func (c *Collector) shown(text string) string {
	if c.Redact || sqltext.SetsPassword([]byte(text)) {
		text = string(sqltext.Redact(nil, []byte(text)))
	}
	if len(text) > maxSampleText {
		text = text[:maxSampleText] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
