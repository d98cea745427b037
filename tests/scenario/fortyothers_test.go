package scenario_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
)

// TestFortyCluster: a cluster whose writes pause for a member that applies slowly is found, and is not any more when the table has the key that is advised.
func TestFortyCluster(t *testing.T) {
	t.Parallel()
	s := up(t, sandbox.Options{Name: "s", Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera, Replicas: 1, StartTimeout: patience})
	first := s.Nodes[0]
	c := wrong{id: "galera.flow_control", object: "wsrep_flow_control_paused"}
	look := func() answered { return advise(t, "--look", "0", "--dsn", first.DSN) }
	execSQL(t, first, "CREATE DATABASE forty; CREATE TABLE forty.slow (a INT, b INT); INSERT INTO forty.slow SELECT i, 0 FROM ("+numbers(3)+") n")
	await(t, "it is not found before it is true", func() bool { // once the other member has the rows
		execSQL(t, first, "FLUSH STATUS")
		_, found := look().find(&c, "")
		return !found
	})
	for _, n := range s.Nodes {
		execSQL(t, n, "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=1'")
	}
	load := func() {
		execSQL(t, first, "FLUSH STATUS"+strings.Repeat("; UPDATE forty.slow SET b = b + 1", 20))
	}
	load() // the other member looks for each row in the whole table
	a := look()
	f, found := a.find(&c, "")
	if !found {
		t.Fatalf("got %s of the time paused, and no finding", value(t, first, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_flow_control_paused'"))
	}
	t.Log(f.What)
	key, found := a.find(&wrong{id: "schema.no_pk", object: "forty.slow"}, "")
	if !found {
		t.Fatal("schema.no_pk is not found")
	}
	execSQL(t, first, key.Statement)
	await(t, "writes no longer pause", func() bool {
		load()
		_, still := look().find(&c, "")
		return !still
	})
}

// TestFortyOld: a version that is not maintained any more is found; those that are, are not.
func TestFortyOld(t *testing.T) {
	t.Parallel()
	c := wrong{id: "ver.eol", object: "version"}
	for kind, want := range map[string]bool{"mysql-5.7": true, "mysql-8.0": true, "mysql-9.7": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f, found := advise(t, "ver.eol", "--look", "0", "--dsn", single(t, kind).DSN).find(&c, "")
			if found != want {
				t.Errorf("got %+v, want a finding: %t", f, want)
			}
		})
	}
}

// TestFortyKept: a server that was never backed up is told by what serve keeps, and is not any more when the backup is there that it asks for.
func TestFortyKept(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("servers:\n")
	dir, names := tempDir(t), []string{"mariadb", "mysql-9.7"}
	for _, kind := range names {
		n := single(t, kind)
		execSQL(t, n, "CREATE DATABASE forty; CREATE TABLE forty.t (id INT PRIMARY KEY); INSERT INTO forty.t VALUES (1)")
		fmt.Fprintf(&text, "  - {name: %q, dsn: %q, protect: {place: %q, schedule: daily at 02:00}}\n", kind, n.DSN, filepath.Join(dir, kind))
	}
	conf := filepath.Join(dir, "risso.yaml")
	write(t, conf, text.String())
	r := serve(t, dataDir(t), "--no-host", "--config", conf)
	kept := func() []string { return r.advisedOn(t, "backup.stale", "backup") }
	await(t, "backup.stale on both", func() bool { return slices.Equal(kept(), names) })
	out, said, code := runRisso(t, nil, "advise", "--kept", "backup.stale", "--url", r.base)
	if code != 0 || !strings.Contains(out, "never backed up") {
		t.Errorf("code %d, %s%s; want \"never backed up\" in it", code, out, said)
	}
	for _, kind := range names {
		r.start(t, kind+"/backup")
	}
	await(t, "both are backed up, and backup.stale is gone", func() bool { return len(kept()) == 0 })
}

// advisedOn are the servers on which a piece of advice is open, sorted; "" is any object.
func (r *risso) advisedOn(t *testing.T, id, object string) (on []string) {
	t.Helper()
	var a struct {
		Findings []struct {
			fleet.Advice
			State string
		}
	}
	r.get(t, "/api/advice", nil, &a)
	for _, f := range a.Findings {
		if f.ID == id && (object == "" || f.Object == object) && f.State == "open" {
			on = append(on, f.Servers...)
		}
	}
	slices.Sort(on)
	return on
}
