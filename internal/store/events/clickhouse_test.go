package events

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rissodb/risso/internal/lack"
)

// clickHouse is the one server of this test run. RISSO_CLICKHOUSE names another, clickhouse://host:port.
var clickHouse struct {
	once sync.Once
	url  string // without a database
	err  error
	stop func()
	n    int
}

func TestMain(m *testing.M) {
	code := m.Run()
	if clickHouse.stop != nil {
		clickHouse.stop()
	}
	os.Exit(code)
}

// openClickHouse opens a store in a separate database.
func openClickHouse(t *testing.T) Store {
	t.Helper()
	s, err := OpenClickHouse(t.Context(), clickHouseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// clickHouseURL makes a database and returns its URL.
func clickHouseURL(t *testing.T) string {
	t.Helper()
	clickHouse.once.Do(func() {
		if clickHouse.url = os.Getenv("RISSO_CLICKHOUSE"); clickHouse.url == "" {
			clickHouse.url, clickHouse.stop, clickHouse.err = startClickHouse()
		}
	})
	if clickHouse.err != nil {
		t.Fatal(clickHouse.err)
	}
	if clickHouse.url == "" {
		lack.Of(t, "clickhouse-server is not installed: run script/setup")
	}
	o, err := clickhouse.ParseDSN(clickHouse.url)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(o)
	defer db.Close()
	clickHouse.n++
	name := fmt.Sprintf("risso_test_%d_%d", os.Getpid(), clickHouse.n)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db := sql.OpenDB(clickhouse.Connector(o))
		defer db.Close()
		if _, err := db.ExecContext(context.Background(), "DROP DATABASE "+name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return clickHouse.url + "/" + name
}

// startClickHouse starts a server in a separate folder; "" when there is none on this machine.
func startClickHouse() (url string, stop func(), err error) {
	binary, err := exec.LookPath("clickhouse-server")
	if err != nil {
		return "", nil, nil
	}
	dir, err := os.MkdirTemp("", "risso-ch-")
	if err != nil {
		return "", nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return "", nil, err
	}
	config := fmt.Sprintf(`<yandex><logger><level>warning</level><log>%[1]s/log</log><errorlog>%[1]s/errors</errorlog></logger>
<http_port>%[2]d</http_port><tcp_port>%[3]d</tcp_port><listen_host>127.0.0.1</listen_host><path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path>
<users_config>%[1]s/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>5368709</mark_cache_size></yandex>`, dir, ports[0], ports[1])
	users := `<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users><quotas><default></default></quotas></yandex>`
	for name, text := range map[string]string{"config.xml": config, "users.xml": users} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", nil, err
		}
	}
	cmd := exec.Command(binary, "--config-file="+filepath.Join(dir, "config.xml"))
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		os.RemoveAll(dir)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[1])
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return "clickhouse://" + addr, stop, nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "errors"))
			stop()
			return "", nil, fmt.Errorf("clickhouse-server does not start: %s", log)
		}
	}
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// TestClickHouseRefused: errors say what is wrong, and contain no password.
func TestClickHouseRefused(t *testing.T) {
	for _, url := range []string{"clickhouse://risso:geheim@127.0.0.1:1/x", "nonsense://risso:geheim@/", "clickhouse://risso:geheim@127.0.0.1:99999999/x"} {
		_, err := OpenClickHouse(t.Context(), url)
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("got %v; want an error, no \"geheim\" in the error", err)
		}
	}
	url := clickHouseURL(t)
	_, err := OpenClickHouse(t.Context(), strings.Replace(url, "://", "://nobody:geheim@", 1))
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a wrong user: got %v; want an error, no \"geheim\" in the error", err)
	}
}
