package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/avail/chaos/ledger"
)

// What the other changes of a primary have to keep to.
const (
	freezeWorst      = 6.  // seconds from the last acknowledged write to the first one of the next primary
	switchoverMedian = 0.5 // seconds without an acknowledged write
)

// errRoot says why a benchmark does not run.
var errRoot = errors.New("only root can make the network namespaces that the servers are in")

// freezes stops the processes of primaries, which go on when another one has taken writes.
func (b *bench) freezes(ctx context.Context, s *section) error {
	return b.silenced(ctx, s, chaos.Freeze, "SIGSTOP of the primary", freezeWorst)
}

// partitions cuts primaries off from everybody else; they run on, and clients beside them try to write.
func (b *bench) partitions(ctx context.Context, s *section) error {
	return b.silenced(ctx, s, chaos.Partition, "the primary cut off from everybody else", 0)
}

// silenced lets primaries fall silent. limit is what is promised of the 99th percentile; 0: nothing is.
func (b *bench) silenced(ctx context.Context, s *section, kind chaos.Kind, what string, limit float64) error {
	if os.Geteuid() != 0 {
		return errRoot
	}
	t := s.table(fmt.Sprintf("%s of three, under load, semi-synchronous, %d times: until the first write that the next one acknowledges", what, b.rounds),
		"servers", "rounds", "median s", "p99 s", "worst s", "acknowledged", "lost", "second writers")
	for _, server := range b.failoverServers() {
		say("failover: %s, %s", server, kind)
		c, err := b.faultRow(ctx, faultRow{name: fmt.Sprintf("%s-%s", server, kind), server: server, semi: true, peer: "Risso", kind: kind})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c == nil || len(c.Events) == 0 {
			s.note("%s: no round was possible: %v", server, err)
			continue
		}
		if err != nil {
			s.note("%s: ended after %d of %d rounds: %v", server, len(c.Events), b.rounds, err)
		}
		var took []float64
		for _, e := range c.Events {
			took = append(took, e.Outage.For.Seconds())
		}
		t.row(server, strconv.Itoa(len(took)), figure(median(took)), figure(quantile(took, 0.99)), figure(quantile(took, 1)),
			strconv.Itoa(c.Totals.Acknowledged), strconv.Itoa(c.Totals.Lost), strconv.Itoa(c.Totals.Doubles))
		key := fmt.Sprintf("%s_%s", server, kind)
		s.Figures[key+"_median"], s.Figures[key+"_p99"], s.Figures[key+"_lost"], s.Figures[key+"_doubles"] = median(took), quantile(took, 0.99), float64(c.Totals.Lost), float64(c.Totals.Doubles)
		if limit > 0 {
			s.below(server+": 99th percentile", quantile(took, 0.99), limit, " s")
		}
		s.below(server+": acknowledged writes lost", float64(c.Totals.Lost), 1, "")
		s.below(server+": writes taken by a second writer", float64(c.Totals.Doubles), 1, "")
	}
	s.note("A writer beside each server insists on writing there, also to the old primary while it is cut off and when it is back: a second writer is a write that it acknowledged after the next primary had acknowledged one.")
	return nil
}

// switchovers lets the primary hand over under load.
func (b *bench) switchovers(ctx context.Context, s *section) error {
	if os.Geteuid() != 0 {
		return errRoot
	}
	t := s.table(fmt.Sprintf("switchover among three, under load, %d times: without an acknowledged write", b.rounds),
		"servers", "replication", "rounds", "median ms", "p99 ms", "worst ms", "by the journal, median ms", "lost", "second writers")
	for _, row := range b.failoverRows() {
		replication := "asynchronous"
		if row.semi {
			replication = "semi-synchronous"
		}
		say("switchover: %s, %s", row.server, replication)
		h, err := b.handOvers(ctx, row.server, row.semi)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.note("%s, %s: ended after %d of %d rounds: %v", row.server, replication, len(h.took), b.rounds, err)
		}
		if len(h.took) == 0 {
			continue
		}
		ms := func(v float64) string { return figure(1000 * v) }
		t.row(row.server, replication, strconv.Itoa(len(h.took)), ms(median(h.took)), ms(quantile(h.took, 0.99)), ms(quantile(h.took, 1)), ms(median(h.journal)), strconv.Itoa(h.lost), strconv.Itoa(h.doubles))
		key := fmt.Sprintf("switchover_%s_%t", row.server, row.semi)
		s.Figures[key+"_median"], s.Figures[key+"_p99"] = median(h.took), quantile(h.took, 0.99)
		s.below(row.server+", "+replication+": median", median(h.took), switchoverMedian, " s")
		s.below(row.server+", "+replication+": acknowledged writes lost", float64(h.lost), 1, "")
		s.below(row.server+", "+replication+": writes taken by a second writer", float64(h.doubles), 1, "")
	}
	s.note("By the ledger: the longest time without an acknowledgement around each switchover, of eight writers that follow the controller's answer. By the journal: from the statement that shuts the old primary to the one that opens the next.")
	return nil
}

// handed is what switchovers cost.
type handed struct {
	took, journal []float64 // seconds
	lost, doubles int
}

// handOvers lets the primary of fresh servers hand over again and again.
func (b *bench) handOvers(ctx context.Context, server string, semi bool) (h handed, err error) {
	dir := filepath.Join(b.work, fmt.Sprintf("switchover-%s-%t", server, semi))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return h, err
	}
	lab, err := chaos.OpenLab(ctx, chaos.LabOptions{Dir: dir, Group: "bench", Risso: b.risso, Server: server, Replicas: 2, SemiSync: semi, Controllers: 1, Say: func(string) {}})
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, lab.Close(clean, false))
	}()
	if err != nil {
		return h, err
	}
	names, err := lab.Names(ctx)
	if err != nil {
		return h, err
	}
	path := filepath.Join(dir, "ledger.jsonl")
	book, err := ledger.Create(path, "bench", lab.Members())
	if err != nil {
		return h, err
	}
	writing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with writing
		defer close(done)
		book.Write(writing, ledger.Config{Find: lab.Find, Open: lab.Open, OpenDirect: lab.Direct, Names: names, Followers: 8, Pause: pauseOfWriter, Direct: lab.Members()})
	}()
	end := func() { stop(); <-done }
	defer end()
	for range b.rounds {
		took, err := handOver(ctx, lab, book)
		if err != nil {
			return h, err
		}
		h.took = append(h.took, took.Seconds())
		say("failover: switchover, %d ms", took.Milliseconds())
	}
	end()
	h.doubles = len(book.Copy().Judge().Doubles)
	if err := h.check(ctx, lab, book); err != nil {
		return h, err
	}
	text, err := lab.Command(ctx, "receipt", "--group", "bench", "--last", strconv.Itoa(b.rounds), "--output", "json")
	if err != nil {
		return h, err
	}
	var a struct {
		Receipts []struct {
			Outage time.Duration `json:"outage_ns"`
		}
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return h, fmt.Errorf("risso receipt: %w", err)
	}
	for _, r := range a.Receipts {
		h.journal = append(h.journal, r.Outage.Seconds())
	}
	return h, nil
}

// check looks on the primary for all that was acknowledged.
func (h *handed) check(ctx context.Context, lab *chaos.Lab, book *ledger.Book) error {
	s, err := lab.Find(ctx)
	if err != nil {
		return err
	}
	db, err := lab.Direct(s.Name)
	if err != nil {
		return err
	}
	defer db.Close()
	f, err := ledger.NewChecker(book).Check(ctx, db, s.Name, book.Now(), true)
	h.lost = len(f.Lost)
	return errors.Join(err, book.Err())
}

// handOver lets the primary hand over once, and tells how long nobody's write was acknowledged.
func handOver(ctx context.Context, lab *chaos.Lab, book *ledger.Book) (time.Duration, error) {
	if err := pause(ctx, time.Second); err != nil {
		return 0, err
	}
	before, err := lab.Find(ctx)
	if err != nil {
		return 0, err
	}
	from := book.Now()
	text, err := lab.Command(ctx, "switchover", "--group", "bench", "--yes")
	if err != nil {
		return 0, err
	}
	ended := book.Now()
	for {
		if _, last := book.Count(); last > ended {
			break
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	after, err := lab.Find(ctx)
	if err == nil && after.Name == before.Name {
		err = fmt.Errorf("the primary is %s as before: %s", after.Name, strings.TrimSpace(text))
	}
	return book.Copy().Outage(from, book.Now()).For, err
}
