package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseHours(t *testing.T) {
	for text, want := range map[string]string{
		"22:00-07:00":                     "[] 22h0m0s 7h0m0s Local",
		"mon-fri 22:00-07:00 UTC":         "[Monday Tuesday Wednesday Thursday Friday] 22h0m0s 7h0m0s UTC",
		"Sat,sun 00:00-24:00 Asia/Tokyo":  "[Saturday Sunday] 0s 24h0m0s Asia/Tokyo",
		"fri-mon 10:30-11:00":             "[Friday Saturday Sunday Monday] 10h30m0s 11h0m0s Local",
		"":                                "error",
		"22:00":                           "error",
		"mon":                             "error",
		"moon 22:00-23:00":                "error",
		"22:00-22:00":                     "error",
		"24:00-07:00":                     "error",
		"22:00-25:00":                     "error",
		"22:00-07:00 Atlantis/Everywhere": "error",
		"22:00-07:00 UTC UTC":             "error",
	} {
		h, err := ParseHours(text)
		got := "error"
		if err == nil {
			got = fmt.Sprint(h.Days, " ", h.From, " ", h.To, " ", h.Zone)
		}
		if got != want {
			t.Errorf("%q: got %s (%v), want %s", text, got, err, want)
		}
	}
}

// TestAlertsMistakes: what would never ring, or never reach anybody, is no setting that passes in silence.
func TestAlertsMistakes(t *testing.T) {
	hook := "receivers: [{name: oncall, webhook: {url: 'http://h/'}}]\n  "
	for block, say := range map[string]string{
		"page: 'javascript:alert(1)'":                                    "page: write it as https://",
		"page: risso.example.com":                                        "page: write it as https://",
		hook + "routes: [{severity: critical}]":                          "route 1: to is missing",
		hook + "routes: [{severity: critical, to: [nobody]}]":            `no receiver "nobody"`,
		hook + "routes: [{finding: repl.lagg, to: [oncall]}]":            `route 1: finding: there is no finding "repl.lagg"`,
		"thresholds: [{finding: repl.lagg, off: true}]":                  `threshold 1: finding: there is no finding "repl.lagg"`,
		"thresholds: [{finding: 'repl.[', off: true}]":                   "there is no finding",
		"thresholds: [{}]":                                               "threshold 1: it changes nothing",
		"thresholds: [{finding: repl.lag}]":                              "it changes nothing",
		"thresholds: [{finding: repl.lag, above: -3}]":                   "negative",
		"thresholds: [{finding: repl.lag, above: .nan}]":                 "negative",
		"maintenance: [{finding: nosuch, hours: '22:00-23:00'}]":         "maintenance 1: finding",
		"thresholds:\n    - finding: repl.lag\n      above: hunter2":     "line 4: above: a value of the wrong kind; it takes a number",
		"thresholds:\n    - finding: [hunter2]\n      off: true":         "line 3: finding: a value of the wrong kind; it takes a text",
		"thresholds:\n    - finding: repl.lag\n      off: hunter2":       "line 4: off: a value of the wrong kind; it takes true or false",
		"receivers: hunter2":                                             "receivers: a value of the wrong kind; it takes a list",
		"receivers:\n    - {name: oncall, webhook: {url: [hunter2, x]}}": "line 3: a value of the wrong kind; it takes a text",
	} {
		err := alertsBy(t, block)
		if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v; want %q in the error, and no value", block, err, say)
		}
	}
	for _, block := range []string{
		hook + "routes: [{severity: critical, to: []}]", "page: https://risso.example.com/x/", "thresholds: [{finding: 'repl.*', off: true}, {finding: rule.mine, for: 1m}, {above: 0}]",
	} {
		if err := alertsBy(t, block); err != nil {
			t.Errorf("%q: got %v, want it to be right", block, err)
		}
	}
}

// alertsBy reads a config file with a block of alerts.
func alertsBy(t *testing.T, block string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "risso.yaml")
	if err := os.WriteFile(path, []byte("alerts:\n  "+block+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(path)
	if err == nil {
		_, err = f.CheckAlerts()
	}
	return err
}
