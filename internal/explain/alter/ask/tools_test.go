package ask

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTools runs the command lines that a plan prints, where the programs are installed: the table is as planned afterwards, with all its rows.
func TestTools(t *testing.T) {
	for _, c := range []struct{ tool, spec, schema, table string }{
		{"pt-online-schema-change", "mariadb", "my shop", "or ders"},
		{"pt-online-schema-change", "mysql-9.7", "shop", "orders"},
		{"gh-ost", "mysql-5.7", "shop", "orders"},
	} {
		t.Run(c.tool+" "+c.spec, func(t *testing.T) {
			if _, err := exec.LookPath(c.tool); err != nil && c.tool == "gh-ost" { // go install github.com/github/gh-ost/go/cmd/gh-ost@v1.1.6
				t.Skip("no gh-ost is on PATH")
			} else if err != nil {
				lack.Of(t, c.tool+" is missing: run script/setup")
			}
			toolOf(t, c.tool, c.spec, mysql.TableName{Schema: c.schema, Name: c.table})
		})
	}
}

func toolOf(t *testing.T, tool, spec string, name mysql.TableName) {
	n := sandboxtest.Lend(t, spec)
	c := sandboxtest.Connect(t, n)
	for _, q := range []string{"CREATE DATABASE " + mysql.Quote(name.Schema), "CREATE TABLE " + name.String() + " (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, `b c` VARCHAR(20)) ENGINE=InnoDB",
		"INSERT INTO " + name.String() + " (a) VALUES (1), (2), (3)", "INSERT INTO " + name.String() + " (a) SELECT x.a FROM " + name.String() + " x, " + name.String() + " y, " + name.String() + " z"} {
		if err := c.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	cfg, err := n.TCPConfig()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	file := filepath.Join(home, "client.cnf")
	if err := os.WriteFile(file, []byte("[client]\nuser="+cfg.User+"\npassword="+cfg.Passwd+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	box := sandboxtest.Target(t, sandboxtest.Lend(t, spec, cheap...))
	p, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE " + name.String() + " MODIFY a BIGINT NOT NULL COMMENT 'it''s \"big\"',\n ADD KEY `k k` (a)", Box: &box, File: file})
	if err != nil {
		t.Fatal(err)
	}
	command := ""
	for _, x := range p.Tools {
		if x.Name == tool {
			command = x.Command
			if x.Command == "" {
				t.Fatalf("it cannot: %v", x.Cannot)
			}
		}
	}
	if strings.Contains(command, cfg.Passwd) {
		t.Errorf("the password is in %s", command)
	}
	cmd := exec.Command("bash", "-c", command)
	cmd.Env = append(os.Environ(), "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	after, err := c.Maps(t.Context(), "SHOW CREATE TABLE "+name.String())
	if err != nil || len(after) != 1 || !alter.SameTable(after[0]["Create Table"], p.After) {
		t.Errorf("got %v, %v; want %s", after, err, p.After)
	}
	if rows, err := c.Text(t.Context(), "SELECT COUNT(*) FROM "+name.String()); err != nil || rows != "30" {
		t.Errorf("%s rows, %v; want 30", rows, err)
	}
}
