package ask

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestForecast compares forecasts with what it takes, on a table of so many bytes: RISSO_TEST_ALTER_BYTES=1GiB.
func TestForecast(t *testing.T) {
	size, err := digits.ParseBytes(os.Getenv("RISSO_TEST_ALTER_BYTES"))
	if err != nil || size == 0 {
		t.Skip("RISSO_TEST_ALTER_BYTES says how large the table is")
	}
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) { forecastOf(t, spec, size) })
	}
}

func forecastOf(t *testing.T, spec string, size int64) {
	n := sandboxtest.Up(t, spec, "innodb_buffer_pool_size=256M", "innodb_flush_log_at_trx_commit=1", "skip-log-bin")
	target := sandboxtest.Target(t, n).WithPatience(time.Hour)
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := &truth{t: t, c: c, target: target}
	w.exec("CREATE DATABASE big")
	w.exec("CREATE TABLE big.t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)) ENGINE=InnoDB")
	const row = "FLOOR(RAND() * 1000000000), LEFT(CONCAT_WS('-', RAND(), RAND(), RAND(), RAND(), RAND(), RAND()), 119), LEFT(CONCAT_WS('-', RAND(), RAND(), RAND()), 59)"
	w.exec("INSERT INTO big.t (k, c, pad) VALUES (" + row + ")")
	rows := int64(1)
	for want := size / 240; rows < want; {
		more := min(rows, want-rows, 50_000)
		w.exec(fmt.Sprintf("INSERT INTO big.t (k, c, pad) SELECT %s FROM big.t LIMIT %d", row, more))
		rows += more
	}
	w.exec("ANALYZE TABLE big.t")
	sandboxes := t.TempDir()
	for _, change := range []string{"ADD INDEX kc (c)", "ENGINE = InnoDB", "MODIFY k BIGINT NOT NULL", "ADD COLUMN n INT NOT NULL DEFAULT 1, ALGORITHM = INPLACE", "ADD INDEX kp (pad), ADD INDEX kk (k, id)"} {
		p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE big.t " + change, Sample: 64 << 20, Dir: sandboxes})
		if err != nil {
			t.Fatal(err)
		}
		slow, err := mysql.Connect(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := slow.Exec(t.Context(), p.Plan.Statement); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		took := time.Since(began).Seconds()
		slow.Close()
		t.Logf("%s of %s: %s, forecast %s (%s to %s), took %s, off by a factor of %.2f", change, digits.Bytes(p.Facts.Size()), p.Kind, digits.Seconds(p.Forecast.Seconds), digits.Seconds(p.Forecast.Low), digits.Seconds(p.Forecast.High), digits.Seconds(took), max(took/p.Forecast.Seconds, p.Forecast.Seconds/took))
	}
}
