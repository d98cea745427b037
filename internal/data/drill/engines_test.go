package drill

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOtherEngines: what CLONE does not copy makes no drill fail, and is reported as what it is: empty, or unreadable; the remedy that the
// backup names works.
func TestOtherEngines(t *testing.T) {
	t.Parallel()
	const spec = "mysql-9.7"
	n := sandboxtest.Up(t, spec)
	var list []string
	script := "CREATE DATABASE `select`; USE `select`; CREATE TABLE inno (a INT); INSERT INTO inno VALUES (1)"
	for _, engine := range []string{"ARCHIVE", "BLACKHOLE", "CSV", "MEMORY", "MyISAM"} {
		script += "; CREATE TABLE of_" + engine + " (a INT NOT NULL) ENGINE = " + engine + "; INSERT INTO of_" + engine + " VALUES (1), (2)"
		list = append(list, "select.of_"+engine+" ("+engine+")")
	}
	script += "; CREATE TABLE of_all (a INT NOT NULL) ENGINE = MERGE UNION = (of_MyISAM)"
	list = append(list, "select.of_all (MRG_MYISAM)")
	if _, err := n.Query(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	r := openRepo(t, t.TempDir())
	h, err := physical.Take(t.Context(), physical.Options{Target: target, Repo: r, Name: "db1", Install: true, WorkDir: t.TempDir(), JournalDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(h.Notes, "\n"); !strings.Contains(said, strings.Join(list, ", ")) || !strings.Contains(said, "those of ARCHIVE and MERGE cannot be read there (after DROP TABLE IF EXISTS") {
		t.Errorf("the backup says %q; want %q in it, \"those of ARCHIVE and MERGE cannot be read there (after DROP TABLE IF EXISTS\" in it",
			said, strings.Join(list, ", "))
	}
	dir := shortDir(t)
	p, err := Run(t.Context(), Options{Repo: r, Dir: dir, Server: spec})
	if err != nil || !p.Passed || !strings.Contains(p.Summary(), "BUT the rows of 6 tables are not in it") || !strings.Contains(p.Summary(), list[0]+": cannot be read") {
		t.Fatalf("got %+v, %v; want Passed true, \"BUT the rows of 6 tables are not in it\" in Summary(), list[0] + \": cannot be read\" in Summary()",
			p, err)
	}
	for _, name := range list {
		if broken := strings.Contains(name, "ARCHIVE") || strings.Contains(name, "MRG_"); !slices.Contains(p.LeftOut, name) != broken || slices.Contains(p.LeftOut, name+": cannot be read") != broken {
			t.Errorf("of %s the drill says %q; want !slices.Contains(p.LeftOut, name) %v, slices.Contains(p.LeftOut, name+\": cannot be read\") %v",
				name, p.LeftOut, broken, broken)
		}
	}
	s, err := sandbox.Up(t.Context(), sandbox.Options{Name: "copy", Dir: dir, Servers: []string{spec}, Data: (&run{Options: Options{Repo: r, Threads: 2, Progress: func(Progress) {}}, header: h}).files})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Down(t.Context())
	for _, name := range []string{"of_BLACKHOLE", "of_CSV", "of_MEMORY", "of_MyISAM"} {
		if rows, err := s.Primary().Query(t.Context(), "SELECT * FROM `select`."+name); err != nil || len(rows[0].Rows) != 0 {
			t.Errorf("%s: got %v, %v; want none", name, rows, err)
		}
	}
	for _, name := range []string{"`select`.of_ARCHIVE", "`select`.of_all"} {
		if rows, err := s.Primary().Query(t.Context(), "SELECT * FROM "+name); err == nil {
			t.Errorf("%s can be read: %v", name, rows)
		}
		if _, err := s.Primary().Query(t.Context(), "DROP TABLE IF EXISTS "+name+"; CREATE TABLE "+name+" (a INT NOT NULL) ENGINE = ARCHIVE; INSERT INTO "+name+" VALUES (1)"); err != nil {
			t.Errorf("the remedy: %v", err)
		}
	}
}
