package page_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// faults are what a look for advice finds in the schema shop: five things.
var faults = []string{
	"CREATE DATABASE shop",
	"CREATE TABLE shop.log (at DATETIME, what VARCHAR(200)) ENGINE=InnoDB",
	"CREATE TABLE shop.orders (id INT PRIMARY KEY, a INT, b INT, KEY ka (a), KEY kab (a, b), KEY kaid (a, id)) ENGINE=InnoDB",
	"CREATE TABLE shop.tickets (id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=InnoDB AUTO_INCREMENT=250",
	"INSERT INTO shop.tickets (a) VALUES (1)",
	"CREATE TABLE shop.coupons (id SMALLINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=InnoDB AUTO_INCREMENT=29000",
	"INSERT INTO shop.coupons (a) VALUES (1)",
}

// TestAdviceInBrowser looks at the page Advice: two servers with the same faults, which are looked at when somebody asks.
func TestAdviceInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	var config strings.Builder
	config.WriteString("advice: {every: off}\nservers:\n")
	for name, kind := range map[string]string{"shop-1": "mariadb", "web-1": "mysql-9.7"} {
		sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: name, Servers: []string{kind}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		})
		db, err := sb.Primary().DB()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range faults {
			if _, err := db.ExecContext(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, "  - {name: %s, dsn: root@unix(%s)/, group: %s}\n", name, sb.Primary().Socket, strings.TrimSuffix(name, "-1"))
	}
	file := filepath.Join(dir, "risso.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serveWith(t, binary(t, dir, "RISSO_BIN", "1"), "--data", filepath.Join(dir, "data"), "--config", file)
	playwright(ctx, t, []string{"advice.spec.ts"}, "RISSO_URL="+url, "RISSO_ADVISED=1")
}
