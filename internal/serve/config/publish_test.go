package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/publish"
)

// TestPublish reads the block publish, and what is wrong in one.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	read := func(block string) (Settings, error) {
		path := filepath.Join(dir, "risso.yaml")
		if err := os.WriteFile(path, []byte("publish:\n  "+block+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return Flags{Sources: Sources{ConfigFile: path, DSNs: []string{"u@tcp(h)/"}}, Listen: DefaultListen}.Settings()
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := read(`max_age: 3s
  http: off
  dns: {listen: '127.0.0.1:5353', zone: db.example.com, nameservers: [risso1.example.com]}
  consul: {url: 'http://127.0.0.1:8500', token_file: ` + token + `, prefix: db/, service: mysql-, services: off}
  hooks:
    - {name: power, at: [fence], groups: ['shop*'], run: [/usr/local/sbin/power-off, --now], timeout: 30s, again: true}
    - {name: tell, at: [after_failover, after_switchover], run: [/bin/true]}
    - {name: try, at: [before_failover], run: [/bin/true], required: false}`)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Publish
	if p.MaxAge != 3*time.Second || !p.NoHTTP || p.DNS.Zone != "db.example.com" || p.Consul.Token != "t0ken" || p.Consul.Prefix != "db" || !p.Consul.NoServices || len(p.Hooks) != 3 {
		t.Errorf("%+v %+v %+v", p, p.DNS, p.Consul)
	}
	if h := p.Hooks[0]; !h.Required || !h.Again || h.Timeout != 30*time.Second || !slices.Equal(h.Command, []string{"/usr/local/sbin/power-off", "--now"}) || !slices.Equal(h.At, []publish.Moment{publish.Fence}) {
		t.Errorf("%+v", h)
	}
	if p.Hooks[1].Required || p.Hooks[1].Timeout != publish.DefaultHookTimeout || p.Hooks[2].Required {
		t.Errorf("%+v", p.Hooks[1:])
	}
	for block, says := range map[string]string{
		"max_age: 1ms":                                                                "max_age",
		"http: maybe":                                                                 "on or off",
		"dns: {listen: x, zone: a.b}":                                                 "host:port",
		"dns: {listen: ':53', zone: ''}":                                              "a zone is needed",
		"consul: {url: '127.0.0.1:8500'}":                                             "write it as http://",
		"consul: {url: 'http://u:p4ss@h'}":                                            "token_file",
		"consul: {url: 'http://h', token_env: NOSUCH_RISSO}":                          "no NOSUCH_RISSO",
		"hooks: [{at: [fence], run: [x]}]":                                            "hook 1: name",
		"hooks: [{name: a/b, at: [fence], run: [x]}]":                                 "without blanks and slashes",
		"hooks: [{name: a, run: [x]}]":                                                "it needs at:",
		"hooks: [{name: a, at: [never], run: [x]}]":                                   `there is no "never"`,
		"hooks: [{name: a, at: [fence]}]":                                             "it needs run:",
		"hooks: [{name: a, at: [fence], run: [x], timeout: 1h}]":                      "timeout",
		"hooks: [{name: a, at: [fence], run: [x]}, {name: a, at: [fence], run: [y]}]": "two of the name",
		"hooks: [{name: a, at: [fence], run: [x], shell: yes}]":                       "unknown field shell",
	} {
		if _, err := read(block); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: %v, want %q", block, err, says)
		}
	}
}
