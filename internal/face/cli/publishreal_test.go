package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestClientsFollow: a group of real servers, a real risso serve, the real HAProxy with the configuration that risso writes, and DNS: all of them follow a switchover
// and a failover, and what an application wrote is there.
func TestClientsFollow(t *testing.T) {
	const program = "/usr/sbin/haproxy"
	if _, err := os.Stat(program); err != nil {
		lack.Of(t, "HAProxy is not installed: run script/setup")
	}
	pair := sandboxtest.Pair(t, "mariadb")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	create := []string{"group", "create", "shop", "--data", data}
	for i, n := range pair.Nodes {
		cfg, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		create = append(create, "--dsn", fmt.Sprintf("db%d=%s:%s@tcp(127.0.0.1:%d)/", i+1, cfg.User, cfg.Passwd, n.Port))
	}
	mustRun(t, create...)
	primary := openNode(t, pair.Nodes[0])
	mustExec(t, primary, "CREATE TABLE test.written (id INT PRIMARY KEY)")
	mustExec(t, primary, "CREATE USER app@'%' IDENTIFIED BY 'app'")
	mustExec(t, primary, "GRANT SELECT, INSERT ON test.* TO app@'%'")
	ran := filepath.Join(dir, "ran")
	config, dns := filepath.Join(dir, "risso.yaml"), sandboxtest.FreeAddress(t)
	if err := os.WriteFile(config, []byte("publish:\n  max_age: 1m\n  dns: {listen: '"+dns+"', zone: db.test}\n  hooks:\n"+
		"    - {name: note, at: [before_switchover, before_failover, fence, after_promotion, after_switchover, after_failover, failed], run: [/bin/sh, -c, 'echo $RISSO_EVENT $RISSO_OLD_PRIMARY-$RISSO_NEW_PRIMARY $RISSO_EPOCH $RISSO_LOST >>"+ran+"']}\n"+
		"    - {name: veto, at: [before_switchover], run: [/usr/bin/test, -e, "+ran+".may]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var said heard
	var serving sync.WaitGroup
	serving.Go(func() {
		Main(ctx, []string{"serve", "--config", config, "--data", data, "--no-host", "--listen", "127.0.0.1:0"}, screen.Streams{In: strings.NewReader(""), Out: &said, Err: &said})
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	url := ""
	await.Until(t, func() bool {
		said.mu.Lock()
		defer said.mu.Unlock()
		m := regexp.MustCompile(`ready on (http://\S+)`).FindStringSubmatch(said.text.String())
		if m != nil {
			url = m[1]
		}
		return m != nil
	}, "risso serve is not ready")
	told := func(epoch uint64, server string) publish.Told {
		t.Helper()
		var got publish.Told
		await.Until(t, func() bool {
			resp, err := http.Get(url + "/primary?group=shop")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			got = publish.Told{}
			return resp.StatusCode == http.StatusOK && json.Unmarshal(body, &got) == nil && got.Server == server && got.Epoch >= epoch
		}, "%s is not told to be the primary", server)
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, dns)
		}}
		_, list, err := resolver.LookupSRV(t.Context(), "mysql", "tcp", "primary.shop.db.test.")
		if _, port, _ := net.SplitHostPort(got.Address); err != nil || len(list) != 1 || fmt.Sprint(list[0].Port) != port || !strings.HasPrefix(list[0].Target, server+".") {
			t.Errorf("DNS: %+v, %v; want %s", list, err, got.Address)
		}
		return got
	}
	first := told(0, "db1")

	front := sandboxtest.FreeAddress(t)
	text := mustRun(t, "publish", "haproxy", "--group", "shop", "--url", url, "--listen", front, "--listen-reads", sandboxtest.FreeAddress(t), "--local", sandboxtest.FreeAddress(t), "--every", "200ms")
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	haproxy := exec.Command(program, "-db", "-f", path)
	haproxy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := haproxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = haproxy.Process.Kill(); _ = haproxy.Wait() })
	cfg, err := driver.ParseDSN("app:app@tcp(" + front + ")/test?timeout=2s&readTimeout=10s")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = &driver.NopLogger{} // connections break here
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	app := sql.OpenDB(connector)
	defer app.Close()
	app.SetMaxOpenConns(1) // one session, as long as it lasts
	next := 0
	var acknowledged []string
	writes := func(port int) {
		t.Helper()
		await.Until(t, func() bool {
			next++
			if _, err := app.ExecContext(t.Context(), "INSERT INTO written VALUES (?)", next); err != nil {
				return false
			}
			acknowledged = append(acknowledged, strconv.Itoa(next))
			var got int
			return app.QueryRowContext(t.Context(), "SELECT @@port").Scan(&got) == nil && got == port
		}, "no writes through HAProxy to port %d", port)
	}
	writes(pair.Nodes[0].Port)
	kept := func(n *sandbox.Node) bool {
		r, err := n.Query(t.Context(), "SELECT COUNT(*) FROM test.written WHERE id IN ("+strings.Join(acknowledged, ",")+")")
		return err == nil && *r[0].Rows[0][0] == strconv.Itoa(len(acknowledged))
	}

	if code, out, said := call(t, "switchover", "--group", "shop", "--to", "db2", "--data", data, "--yes", "--config", config); code != fault.Failed || !strings.Contains(said, "hook veto") {
		t.Errorf("a hook does not want it: %d %s %s", code, out, said)
	}
	writes(pair.Nodes[0].Port)
	if err := os.WriteFile(ran+".may", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "switchover", "--group", "shop", "--to", "db2", "--data", data, "--yes", "--config", config)
	second := told(first.Epoch+1, "db2")
	writes(pair.Nodes[1].Port)
	sqlText := mustRun(t, "publish", "proxysql", "--group", "shop", "--url", url, "--epoch", fmt.Sprint(second.Epoch))
	if !strings.Contains(sqlText, fmt.Sprintf("port=%d);", pair.Nodes[1].Port)) {
		t.Errorf("ProxySQL's writer: %s", sqlText)
	}

	await.Until(t, func() bool { return kept(pair.Nodes[0]) }, "db1 does not follow") // it is no semi-synchronous replication
	if err := pair.Nodes[1].Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "failover", "--group", "shop", "--data", data, "--yes", "--config", config)
	third := told(second.Epoch+1, "db1")
	writes(pair.Nodes[0].Port)
	if !kept(pair.Nodes[0]) {
		t.Errorf("%d acknowledged writes, and not all are there", len(acknowledged))
	}
	text2, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	veto := second.Epoch - 1
	// No fence: where connections are refused nothing listens, and nothing writes.
	want := fmt.Sprintf("before_switchover db1-db2 %d unknown; failed db1-db2 %d unknown; before_switchover db1-db2 %d unknown; after_promotion db1-db2 %[3]d unknown; after_switchover db1-db2 %[3]d none; "+
		"before_failover db2- %d unknown; after_promotion db2-db1 %[4]d unknown; after_failover db2-db1 %[4]d ", veto, veto, second.Epoch, third.Epoch)
	if got := strings.ReplaceAll(strings.TrimSpace(string(text2)), "\n", "; "); !strings.HasPrefix(got, want) {
		t.Errorf("hooks ran:\n%s\nwant\n%s", got, want)
	}
}
