package scenario_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// alertmanager is the real program, which tells a receiver of its own.
type alertmanager struct {
	program, at, conf string

	mu   sync.Mutex
	told []string // what its receiver was told: "firing server.hung db"
}

func newAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		lack.Of(t, "prometheus-alertmanager is not installed: run script/setup")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := &alertmanager{program: program, at: l.Addr().String(), conf: filepath.Join(tempDir(t), "am.yml")}
	end := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got struct {
			Alerts []struct {
				Status string
				Labels map[string]string
			}
		}
		if json.NewDecoder(r.Body).Decode(&got) != nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, a := range got.Alerts {
			m.told = append(m.told, a.Status+" "+a.Labels["alertname"]+" "+a.Labels["instance"])
		}
	}))
	t.Cleanup(end.Close)
	write(t, m.conf, fmt.Sprintf("route: {receiver: end, group_wait: 0s, group_interval: 1s, group_by: [alertname, instance]}\nreceivers: [{name: end, webhook_configs: [{url: %q}]}]\n", end.URL))
	return m
}

// start starts it, with nothing remembered of a run before.
func (m *alertmanager) start(t *testing.T) (stop func()) {
	t.Helper()
	run := exec.Command(m.program, "--config.file="+m.conf, "--storage.path="+tempDir(t), "--web.listen-address="+m.at, "--cluster.listen-address=")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	done := sync.OnceFunc(func() { _ = run.Process.Signal(syscall.SIGTERM); _ = run.Wait() })
	t.Cleanup(done)
	return done
}

// active lists the alerts that it holds.
func (m *alertmanager) active() (list []string) {
	res, err := http.Get("http://" + m.at + "/api/v2/alerts")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var got []struct{ Labels map[string]string }
	if json.NewDecoder(res.Body).Decode(&got) != nil {
		return nil
	}
	for _, a := range got {
		list = append(list, a.Labels["alertname"]+" "+a.Labels["instance"])
	}
	return list
}

func (m *alertmanager) heard(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.told, what)
}

// TestAlertmanagerRestarted: the real Alertmanager is stopped while an alert fires, and started again with nothing remembered: within a minute or so it knows
// again what fires, and it hears of the end.
func TestAlertmanagerRestarted(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	m := newAlertmanager(t)
	stop := m.start(t)
	conf := filepath.Join(tempDir(t), "risso.yaml")
	write(t, conf, fmt.Sprintf("alerts:\n  receivers:\n    - {name: am, alertmanager: {url: \"http://%s\"}}\nservers:\n  - {name: db, dsn: %q}\n", m.at, n.DSN))
	r := serve(t, dataDir(t), "--no-host", "--config", conf)
	r.awaitTicks(t, "db", 3)

	goOn := sandboxtest.Pause(t, n)
	await(t, "Alertmanager's receiver hears of it", func() bool { return m.heard("firing server.hung db") })
	stop()
	if got := m.active(); got != nil {
		t.Errorf("it is stopped: got %q, want no answer", got)
	}
	m.mu.Lock()
	m.told = nil
	m.mu.Unlock()
	m.start(t)
	await(t, "it knows again what fires", func() bool {
		return slices.Equal(m.active(), []string{"server.hung db"}) && m.heard("firing server.hung db")
	})
	goOn()
	await(t, "its receiver hears of the end", func() bool { return m.heard("resolved server.hung db") && len(m.active()) == 0 })
	if list := r.alerts(t).Receivers; len(list) != 1 || list[0].Waiting != 0 {
		t.Errorf("got %+v, want that no message waits", list)
	}
}
