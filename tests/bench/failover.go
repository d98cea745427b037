package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/sandbox"
)

// What failovers have to keep to.
const (
	killMedian = 2. // seconds from the last acknowledged write before to the first one after
	killWorst  = 4. // the 99th percentile
)

// pauseOfWriter is between two writes of each of the eight writers: risso chaos has the same.
const pauseOfWriter = 20 * time.Millisecond

// failoverRow is servers that primaries are killed of, and that hand over.
type failoverRow struct {
	server string
	semi   bool
}

// failoverServers are those that were asked for.
func (b *bench) failoverServers() []string { return strings.Split(b.servers, ",") }

// failoverRows are the servers that were asked for, with semi-synchronous replication and without.
func (b *bench) failoverRows() (rows []failoverRow) {
	for _, server := range b.failoverServers() {
		rows = append(rows, failoverRow{server, true})
		if !b.semi {
			rows = append(rows, failoverRow{server, false})
		}
	}
	return rows
}

// kills kills primaries under load, with Risso as the controller and with orchestrator, and reads from a ledger how long nobody could write and what was lost.
func (b *bench) kills(ctx context.Context, s *section) error {
	if os.Geteuid() != 0 {
		return errRoot
	}
	orchestrator := os.Getenv("ORCHESTRATOR")
	if orchestrator == "" {
		s.note("orchestrator is missing here: set ORCHESTRATOR to the path of the program.")
	}
	t := s.table(fmt.Sprintf("kill -9 of the primary of three, under load, %d times: until the first write that the next one acknowledges", b.rounds),
		"servers", "replication", "controller", "rounds", "median s", "p99 s", "worst s", "acknowledged", "lost", "second writers")
	for _, row := range b.failoverRows() {
		for _, peer := range []string{"Risso", "orchestrator"} {
			if peer == "orchestrator" && orchestrator == "" {
				continue
			}
			replication := "asynchronous"
			if row.semi {
				replication = "semi-synchronous"
			}
			say("failover: %s, %s, %s", row.server, replication, peer)
			c, err := b.faultRow(ctx, faultRow{name: fmt.Sprintf("%s-%t-%s", row.server, row.semi, peer), server: row.server, semi: row.semi, peer: peer, orchestrator: orchestrator, kind: chaos.Kill})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c == nil || len(c.Events) == 0 {
				s.note("%s, %s, %s: no round was possible: %v", row.server, replication, peer, err)
				continue
			}
			if err != nil {
				s.note("%s, %s, %s: ended after %d of %d rounds: %v", row.server, replication, peer, len(c.Events), b.rounds, err)
			}
			var took []float64
			for _, e := range c.Events {
				took = append(took, e.Outage.For.Seconds())
			}
			t.row(row.server, replication, peer, strconv.Itoa(len(took)), figure(median(took)), figure(quantile(took, 0.99)), figure(quantile(took, 1)),
				strconv.Itoa(c.Totals.Acknowledged), strconv.Itoa(c.Totals.Lost), strconv.Itoa(c.Totals.Doubles))
			key := fmt.Sprintf("%s_%t_%s", row.server, row.semi, strings.ToLower(peer))
			s.Figures[key+"_median"], s.Figures[key+"_p99"], s.Figures[key+"_lost"] = median(took), quantile(took, 0.99), float64(c.Totals.Lost)
			if peer == "Risso" {
				s.below(row.server+", "+replication+": median", median(took), killMedian, " s")
				s.below(row.server+", "+replication+": 99th percentile", quantile(took, 0.99), killWorst, " s")
			}
			if peer == "Risso" && row.semi {
				s.below(row.server+", "+replication+": acknowledged writes lost", float64(c.Totals.Lost), 1, "")
			}
		}
	}
	return nil
}

// faultRow is one kind of fault, caused again and again to the primary of fresh servers.
type faultRow struct {
	name, server       string
	semi               bool
	peer, orchestrator string
	kind               chaos.Kind
}

// orchestratorRounds is after how many rounds the servers are made anew beside orchestrator: one that was killed is filled there by replaying all logs, which takes longer
// with each round.
const orchestratorRounds = 8

// faultRow causes it. Events and totals are of all rounds until an error.
func (b *bench) faultRow(ctx context.Context, row faultRow) (all *chaos.Certificate, err error) {
	for done := 0; done < b.rounds; done = len(all.Events) {
		count := b.rounds - done
		if row.peer == "orchestrator" {
			count = min(count, orchestratorRounds)
		}
		c, err := b.someRounds(ctx, row, filepath.Join(b.work, fmt.Sprintf("%s-%d", row.name, done)), count)
		switch {
		case all == nil:
			all = c
		case c != nil:
			all.Events = append(all.Events, c.Events...)
			all.Totals.Acknowledged += c.Totals.Acknowledged
			all.Totals.Lost += c.Totals.Lost
			all.Totals.Doubles += c.Totals.Doubles
		}
		if err != nil || c == nil || len(c.Events) == 0 {
			return all, err
		}
	}
	return all, nil
}

// someRounds causes a fault so often to the primary of fresh servers.
func (b *bench) someRounds(ctx context.Context, row faultRow, dir string, count int) (*chaos.Certificate, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	controllers := 0
	if row.peer == "Risso" {
		controllers = 1
	}
	lab, err := chaos.OpenLab(ctx, chaos.LabOptions{Dir: dir, Group: "bench", Risso: b.risso, Server: row.server, Replicas: 2, SemiSync: row.semi, Controllers: controllers, Say: func(string) {}})
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := lab.Close(clean, false); err != nil {
			say("failover: %v", err)
		}
	}()
	if err != nil {
		return nil, err
	}
	var cluster chaos.Cluster = lab
	if row.peer == "orchestrator" {
		if cluster, err = newOrchestrated(ctx, lab, row.orchestrator, row.semi); err != nil {
			return nil, err
		}
	}
	names, err := lab.Names(ctx)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "ledger.jsonl")
	book, err := ledger.Create(path, "bench", lab.Members())
	if err != nil {
		return nil, err
	}
	faults := chaos.Plan(1, []chaos.Kind{row.kind}, count)
	for i := range faults {
		faults[i].Least = time.Second
	}
	r := chaos.Run{Cluster: cluster, Faults: faults, Book: book, Writers: 8, Pause: pauseOfWriter, Limit: time.Minute, Settle: 3 * time.Minute, Say: func(text string) { say("failover: %s", strings.TrimSpace(text)) },
		Journal: func(string, chaos.Fault, string) error { return nil }, GoOn: true, Failover: true}
	rerr := r.Do(ctx, 1, names, nil)
	if err := book.Close(); err != nil {
		return nil, err
	}
	again, _, err := ledger.Read(path)
	if err != nil {
		return nil, err
	}
	c, err := chaos.Judge(again)
	return c, errors.Join(rerr, err)
}

// orchestrated is the same servers with orchestrator as the controller. What it leaves to people is done for it: a primary that was killed is filled again and follows the
// new one, and the new one waits for acknowledgements if the old one did.
type orchestrated struct {
	*chaos.Lab
	place   sandbox.Place
	address string
	semi    bool
}

// newOrchestrated starts orchestrator, with the shortest intervals that it has, and waits until it knows all servers.
func newOrchestrated(ctx context.Context, lab *chaos.Lab, program string, semi bool) (*orchestrated, error) {
	place, err := lab.Sandbox.Network.Place(sandbox.Control)
	if err != nil {
		return nil, err
	}
	o := &orchestrated{Lab: lab, place: place, address: place.Address + ":3000", semi: semi}
	password, err := lab.Sandbox.Password()
	if err != nil {
		return nil, err
	}
	primary := lab.Sandbox.Primary()
	at := filepath.Join(lab.Dir, "primary") // clients read it: the hook writes it as soon as orchestrator has a new primary
	if err := os.WriteFile(at, fmt.Appendf(nil, "%s:%d\n", primary.Host, primary.Port), 0o600); err != nil {
		return nil, err
	}
	config := filepath.Join(lab.Dir, "orchestrator.json")
	text, err := json.Marshal(map[string]any{
		"ListenAddress": o.address, "MySQLTopologyUser": lab.Sandbox.User, "MySQLTopologyPassword": password,
		"BackendDB": "sqlite", "SQLite3DataFile": filepath.Join(lab.Dir, "orchestrator.sqlite3"),
		"HostnameResolveMethod": "none", "MySQLHostnameResolveMethod": "", "DiscoverByShowSlaveHosts": false, "InstancePollSeconds": 1, "MySQLConnectTimeoutSeconds": 1,
		"RecoverMasterClusterFilters": []string{"*"}, "RecoverIntermediateMasterClusterFilters": []string{"*"}, "RecoveryPeriodBlockSeconds": 1,
		"ApplyMySQLPromotionAfterMasterFailover": true, "FailureDetectionPeriodBlockMinutes": 1,
		"PostMasterFailoverProcesses": []string{"echo {successorHost}:{successorPort} > " + at},
	})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	lab.Where = func(context.Context) (ledger.Server, error) {
		b, err := os.ReadFile(at)
		return ledger.Server{Address: strings.TrimSpace(string(b))}, err
	}
	p := &chaos.Process{Title: "orchestrator", Args: []string{program, "--config=" + config, "http"}, Place: place, Log: filepath.Join(lab.Dir, "orchestrator.log"), Ready: o.known}
	lab.Controllers = []chaos.Controller{p}
	return o, p.Start(ctx)
}

// known tells orchestrator of all servers until it has seen each of them replicate.
func (o *orchestrated) known(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 90*time.Second, errors.New("orchestrator does not know all servers after 90 s"))
	defer cancel()
	last := ""
	for ctx.Err() == nil {
		seen := 0
		for _, n := range o.Sandbox.Nodes {
			text, err := o.get(ctx, fmt.Sprintf("/api/discover/%s/%d", n.Host, n.Port))
			if err == nil && strings.Contains(text, `"Code":"OK"`) {
				seen++
			} else {
				last = fmt.Sprint(text, err)
			}
		}
		if seen == len(o.Sandbox.Nodes) {
			return delay.For(ctx, 3*time.Second) // it looks at each of them again
		}
		_ = delay.For(ctx, time.Second)
	}
	return fmt.Errorf("%w: %.300s", context.Cause(ctx), last)
}

// get asks orchestrator's API.
func (o *orchestrated) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.address+path, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: o.place.Dial, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// Heal is what a person does after orchestrator has failed over.
func (o *orchestrated) Heal(ctx context.Context, _ chaos.Fault, target string) (damage string, err error) {
	s, err := o.Find(ctx)
	if err != nil {
		return "", err
	}
	n, err := o.Sandbox.Node(target)
	if err != nil {
		return "", err
	}
	primary, err := o.Sandbox.Node(s.Name)
	if err != nil {
		return "", err
	}
	if n == primary {
		return "", errors.New("orchestrator has not failed over")
	}
	if err := n.Reseed(ctx, primary); err != nil {
		return "", err
	}
	if o.semi {
		if err := primary.WaitForReplicas(ctx); err != nil {
			return "", err
		}
	}
	return "", o.known(ctx)
}

// Tend has nothing left to do.
func (*orchestrated) Tend(context.Context) ([]string, error) { return nil, nil }
