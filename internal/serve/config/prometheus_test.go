package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// labelsOf reads a config file with a block prometheus and the labels of a server, and returns the labels that its series get.
func labelsOf(t *testing.T, block, server string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "risso.yaml")
	text := block + "\nservers:\n  - name: db1\n    dsn: root@tcp(far:3306)/\n    labels: " + server + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := Flags{Sources: Sources{ConfigFile: file, NoHost: true}, Listen: DefaultListen}
	s, err := f.Settings()
	if err != nil {
		return "", err
	}
	made := s.Labels.Labels([]fleet.Instance{s.Servers[0].Instance}, "here")
	var out []string
	for _, l := range made["db1"] {
		out = append(out, l.Name+"="+l.Value)
	}
	return strings.Join(out, " "), nil
}

func TestPrometheusBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ block, server, want string }{
		{"", "{}", "cluster=default instance=db1 job=mysql node_name=far node_type=generic service_name=db1"},
		{"prometheus: {labels: {environment: prod, node_type: ''}, server_labels: {instance: '{address}', job: mysqld}}", "{cluster: shop}",
			"cluster=shop environment=prod instance=far:3306 job=mysqld node_name=far service_name=db1"},
		{"prometheus: {labels: {a-b: x}}", "{}", `error: prometheus of the config file: labels: "a-b"`},
		{"prometheus: {host_labels: {a: '{nobody}'}}", "{}", "error: prometheus of the config file: host_labels: a: in braces"},
		{"prometheus: {label: {a: b}}", "{}", "error: config file"},
		{"", "{__name__: x}", `error: server 1 of the config file: labels: "__name__"`},
	} {
		got, err := labelsOf(t, c.block, c.server)
		if err != nil {
			got = fmt.Sprint("error: ", err)
		}
		if want := c.want; got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s with %s: got %s, want %s", c.block, c.server, got, want)
		}
	}
}
