package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

const (
	adviseGoal       = 60.  // seconds for 650,000 tables
	adviseGoalTables = 65e4 // of it
	adviseMemory     = 200. // MB
	adviseLeast      = 1e4  // tables; of fewer, most is what is asked of any server
)

// adviseMany looks for what is wrong with a server of very many tables. Those that it makes itself have no faults.
func (b *bench) adviseMany(ctx context.Context, s *section) error {
	socket, pid, end, err := b.manyTables(ctx)
	if err != nil {
		return err
	}
	defer end()
	count, err := countTables(ctx, socket)
	if err != nil {
		return err
	}
	opened := func() (float64, error) {
		n, err := askSocket(ctx, socket, "SELECT VARIABLE_VALUE FROM "+statusTable(ctx, socket)+" WHERE VARIABLE_NAME = 'Opened_tables'")
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(n, 64)
	}
	t := s.table(fmt.Sprintf("%s tables, %s", figure(count), b.server), "round", "seconds", "server, s of processor", "as risso says", "client, s of processor", "memory, MB", "statements", "tables opened")
	for round := 1; round <= b.rounds; round++ {
		say("advise: round %d", round)
		before, err := opened()
		if err != nil {
			return err
		}
		d, out, err := spend(exec.CommandContext(ctx, b.risso, "advise", "--dsn", "root@unix("+socket+")/", "--look", "0s", "--data", filepath.Join(b.work, "data"), "--state", filepath.Join(b.work, "state"), "--output", "json"), pid)
		if err != nil {
			return err
		}
		after, err := opened()
		if err != nil {
			return err
		}
		var said struct {
			Servers []struct {
				Tables     float64 `json:"tables"`
				Statements float64 `json:"statements"`
				CPU        float64 `json:"server_cpu_seconds"`
			} `json:"servers"`
		}
		if err := json.Unmarshal(out, &said); err != nil {
			return err
		}
		if len(said.Servers) != 1 || said.Servers[0].Tables > count || said.Servers[0].Tables < 0.99*count { // views are counted, too
			return fmt.Errorf("risso looked at %+v, the server has %v tables", said.Servers, count)
		}
		x := said.Servers[0]
		t.row(strconv.Itoa(round), figure(d.wall), figure(d.server), figure(x.CPU), figure(d.client), figure(d.memory/1e6), figure(x.Statements), figure(after-before))
		s.Figures["seconds"], s.Figures["server_cpu"], s.Figures["client_cpu"], s.Figures["memory"], s.Figures["opened"] = d.wall, d.server, d.client, d.memory, after-before
		s.below("memory", d.memory/1e6, adviseMemory, " MB")
		if count >= adviseGoalTables {
			s.below("time", d.wall, adviseGoal, " s")
		} else if count >= adviseLeast {
			s.below("a table, of both processors", (d.server+d.client)/count*1e6, 2*adviseGoal/adviseGoalTables*1e6, " µs")
		}
	}
	return nil
}

// statusTable is where a server has its counters as a table.
func statusTable(ctx context.Context, socket string) string {
	if _, err := askSocket(ctx, socket, "SELECT 1 FROM information_schema.GLOBAL_STATUS LIMIT 1"); err == nil {
		return "information_schema.GLOBAL_STATUS"
	}
	return "performance_schema.global_status"
}
