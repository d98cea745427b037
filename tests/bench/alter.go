package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/sandbox"
)

// alterations are what is forecast, and then done to one table. Each leaves about the table that the next one needs.
var alterations = []struct{ what, change, back string }{
	{"add an index", "ADD INDEX kc (c)", "DROP INDEX kc"},
	{"rebuild", "ENGINE = InnoDB", ""},
	{"change a type", "MODIFY k BIGINT NOT NULL", ""},
	{"add a column by copying", "ADD COLUMN n INT NOT NULL DEFAULT 1, ALGORITHM = COPY", "DROP COLUMN n"},
	{"another primary key", "DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)", ""},
	{"another character set", "CONVERT TO CHARACTER SET utf8mb4", ""},
}

func (b *bench) alterMariaDB(ctx context.Context, s *section) error {
	return b.alterOn(ctx, s, "mariadb")
}
func (b *bench) alterMySQL(ctx context.Context, s *section) error {
	return b.alterOn(ctx, s, "mysql-9.7")
}

// alterOn compares what risso alter plan forecasts with what it takes.
func (b *bench) alterOn(ctx context.Context, s *section, spec string) error {
	bytes := int64(b.megabytes) << 20
	settings := []string{"innodb_buffer_pool_size=256M", "innodb_flush_log_at_trx_commit=1", "skip-log-bin"}
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{spec}, Settings: settings})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	n := sb.Primary()
	say("alter: a table of %s on %s", digits.Bytes(bytes), spec)
	if err := alterTable(ctx, n, bytes); err != nil {
		return err
	}
	s.note("Server: %s %s with %s; a table like sysbench's with an index on k, of %s when it is made.", n.Server, n.Version, strings.Join(settings, ", "), digits.Bytes(bytes))
	t := s.table("the time of an ALTER TABLE", "change", "kind", "forecast", "from", "to", "truth", "forecast / truth", "off by a factor of", "to plan it took")
	worst := 0.0
	for _, a := range alterations {
		say("alter: %s", a.what)
		began := time.Now()
		p, err := b.alterPlan(ctx, n, "ALTER TABLE big.t "+a.change)
		if err != nil {
			return fmt.Errorf("%s: %w", a.what, err)
		}
		planned := time.Since(began)
		began = time.Now()
		if _, err := n.Query(ctx, p.Statement); err != nil {
			return fmt.Errorf("%s: %w", p.Statement, err)
		}
		truth := time.Since(began).Seconds()
		ratio := p.Forecast.Seconds / truth
		off := math.Max(ratio, 1/ratio)
		worst = math.Max(worst, off)
		s.Figures[strings.ReplaceAll(a.what, " ", "_")+"_forecast_of_truth"] = ratio
		t.row(a.what, p.Kind, digits.Seconds(p.Forecast.Seconds), digits.Seconds(p.Forecast.Low), digits.Seconds(p.Forecast.High), digits.Seconds(truth), figure(ratio), figure(off), digits.Seconds(planned.Seconds()))
		say("alter: %s: %s of %s is %s", a.what, digits.Seconds(p.Forecast.Seconds), digits.Seconds(truth), figure(ratio))
		if a.back == "" {
			continue
		}
		if _, err := n.Query(ctx, "ALTER TABLE big.t "+a.back); err != nil {
			return fmt.Errorf("%s: %w", a.back, err)
		}
	}
	s.below("the forecast that is furthest off, as a factor", worst, 1.5, "")
	return nil
}

// alterPlan is a plan, as far as it matters here.
type alterPlan struct {
	Kind      string `json:"kind"`
	Statement string `json:"statement"`
	Forecast  struct {
		Known              bool
		Seconds, Low, High float64
		Basis              string
	} `json:"forecast"`
}

func (b *bench) alterPlan(ctx context.Context, n *sandbox.Node, statement string) (p alterPlan, err error) {
	cmd := exec.CommandContext(ctx, b.risso, "alter", "plan", "--dsn", "root@unix("+n.Socket+")/", "--output", "json", statement)
	cmd.Env = append(os.Environ(), "RISSO_SANDBOX_DIR="+filepath.Join(b.work, "ask"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return p, fmt.Errorf("risso alter plan: %w", err)
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("risso alter plan: %w", err)
	}
	if !p.Forecast.Known || p.Forecast.Seconds <= 0 {
		return p, fmt.Errorf("risso alter plan forecasts nothing: %s", p.Forecast.Basis)
	}
	return p, nil
}

// alterTable makes the table; its rows have about 240 bytes.
func alterTable(ctx context.Context, n *sandbox.Node, bytes int64) error {
	const row = "FLOOR(RAND() * 1000000000), LEFT(CONCAT_WS('-', RAND(), RAND(), RAND(), RAND(), RAND(), RAND()), 119), LEFT(CONCAT_WS('-', RAND(), RAND(), RAND()), 59)"
	for _, q := range []string{"CREATE DATABASE big DEFAULT CHARACTER SET latin1", "CREATE TABLE big.t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL) ENGINE=InnoDB", "INSERT INTO big.t (k, c, pad) VALUES (" + row + ")"} {
		if _, err := n.Query(ctx, q); err != nil {
			return err
		}
	}
	for rows, want := int64(1), bytes/240; rows < want; {
		more := min(rows, want-rows, 50_000)
		if _, err := n.Query(ctx, fmt.Sprintf("INSERT INTO big.t (k, c, pad) SELECT %s FROM big.t LIMIT %d", row, more)); err != nil {
			return err
		}
		rows += more
	}
	for _, q := range []string{"ALTER TABLE big.t ADD INDEX k (k)", "ANALYZE TABLE big.t"} {
		if _, err := n.Query(ctx, q); err != nil {
			return err
		}
	}
	return nil
}
