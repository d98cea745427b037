package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

const (
	discoverServers = 300
	discoverGoal    = 3. // seconds
	discoverChain   = 20 // replicas below one source
)

// discover finds 300 servers from the last of them. They are simulated: each is one real server, connected to and asked all that is asked of any, and given
// another name and other sources.
func (b *bench) discover(ctx context.Context, s *section) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{b.server}, Settings: []string{"max_connections=500"}})
	if err != nil {
		return err
	}
	defer func() {
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := sb.Down(dctx); err != nil {
			say("topology: %v", err)
		}
	}()
	target, err := mysql.ParseTarget("root@unix(" + sb.Primary().Socket + ")/")
	if err != nil {
		return err
	}
	t := s.table(fmt.Sprintf("%d servers that are one %s, found from the last", discoverServers, b.server), "round", "seconds", "servers", "links")
	one := look.Search([]mysql.Target{target})
	var took []float64
	for round := 1; round <= b.rounds; round++ {
		search := &topology.Search{
			Look: func(ctx context.Context, address string) (topology.Facts, error) {
				f, err := one.Look(ctx, target.Address())
				simulate(&f, address)
				return f, err
			},
			Again:  func(ctx context.Context, _ string) (string, error) { return one.Again(ctx, target.Address()) },
			Failed: look.Failed,
		}
		began := time.Now()
		top := search.Discover(ctx, []topology.Start{{Address: simulated(discoverServers - 1)}})
		took = append(took, time.Since(began).Seconds())
		t.row(strconv.Itoa(round), figure(took[round-1]), strconv.Itoa(len(top.Nodes)), strconv.Itoa(len(top.Links)))
		for _, n := range top.Nodes {
			if !n.Seen {
				return errors.New(n.Name + " was not seen: " + n.Unseen.Text)
			}
		}
		if len(top.Nodes) != discoverServers || len(top.Links) != discoverServers-1 {
			return fmt.Errorf("found %d servers and %d links, want %d and %d", len(top.Nodes), len(top.Links), discoverServers, discoverServers-1)
		}
	}
	s.Figures["seconds"] = median(took)
	s.below("discovery", median(took), discoverGoal, " s")
	return nil
}

func simulated(number int) string { return fmt.Sprintf("db%d:3306", number) }

// simulate makes facts those of the server at an address: it replicates from one of 15 that replicate from db0.
func simulate(f *topology.Facts, address string) {
	number := 0
	fmt.Sscanf(address, "db%d:", &number)
	f.UUID, f.ServerID, f.Hostname, f.Port = fmt.Sprint("u", number), strconv.Itoa(number+1), fmt.Sprint("db", number), 3306
	source := (number - 1) / discoverChain
	if number > 0 {
		f.Channels = []topology.Channel{{Channel: fleet.Channel{Source: simulated(source), SourceID: fmt.Sprint("u", source), IORunning: "Yes", SQLRunning: "Yes"}}}
	}
	for replica := number*discoverChain + 1; replica <= number*discoverChain+discoverChain && replica < discoverServers; replica++ {
		f.Listed = append(f.Listed, topology.Listed{ServerID: strconv.Itoa(replica + 1), UUID: fmt.Sprint("u", replica), Host: fmt.Sprint("db", replica), Port: 3306})
	}
}
