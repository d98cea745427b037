package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/repo"
)

// protectedBy reads a config file with a protect block for db1, and one for db2 if there is a second.
func protectedBy(t *testing.T, blocks ...string) ([]Watched, error) {
	t.Helper()
	text := "servers:\n"
	for i, b := range blocks {
		text += "  - name: db" + string(rune('1'+i)) + "\n    dsn: root@tcp(127.0.0.1:1)/\n    protect:\n"
		for line := range strings.Lines(b) {
			text += "      " + line
		}
		text += "\n"
	}
	file := filepath.Join(t.TempDir(), "risso.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(file)
	if err != nil {
		return nil, err
	}
	return Resolve(nil, filepath.Join(t.TempDir(), "none.cnf"), c)
}

func TestProtectBlock(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := protectedBy(t, `place: s3://bucket/db1?endpoint=127.0.0.1:7070
schedule: daily at 02:00
kind: physical
retention: {keep_last: 2, keep_daily: 7, keep_weekly: 4, keep_monthly: 12}
copy_to: sftp://risso@host/backup
drill: weekly on sunday at 04:00
verify: monthly
checksum: every 2 days at 05:00
mirror: true
mirror_keep: 35d
max_age: 26h
encrypt_to: [`+identity.Recipient().String()+`]
identity_file: `+keyFile+`
threads: 3
max_lag: 10s
max_threads_running: 40
max_rate: 50MB`)
	if err != nil {
		t.Fatal(err)
	}
	p := list[0].Protect
	if p == nil || p.maxAge != 26*time.Hour || p.maxLag != 10*time.Second || p.RateLimit != 50_000_000 || p.KeepLogs != 35*24*time.Hour || p.Recipients[0] != identity.Recipient().String() {
		t.Fatalf("got %+v; want p not nil, maxAge 26 * time.Hour, maxLag 10 * time.Second, RateLimit 50_000_000, KeepLogs 35 * 24 * time.Hour, Recipients[0] identity.Recipient().String()",
			p)
	}
	if got := p.Retention.Policy(); got != (repo.Retention{Last: 2, Daily: 7, Weekly: 4, Monthly: 12}) || p.Retention.Words() != "2 last, 7 daily, 4 weekly, 12 monthly" {
		t.Errorf("%+v %s", got, p.Retention.Words())
	}
	if kinds := p.Kinds(); len(kinds) != 7 {
		t.Errorf("got %v, want length 7", kinds)
	}
	if at := p.backup.Next(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)); at.Day() != 22 || at.Hour() != 2 {
		t.Errorf("got %v; want Day() 22, Hour() 2", at)
	}
	// The least: a place, all by hand.
	if list, err = protectedBy(t, "place: /backup"); err != nil || len(list[0].Protect.Kinds()) != 3 {
		t.Errorf("got %v; want len(list[0].Protect.Kinds()) 3", err)
	}
}

// TestProtectBlockRefused: one line each, and no secret in it.
func TestProtectBlockRefused(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for block, say := range map[string]string{
		"schedule: daily":                                    "place is missing",
		"place: backups/db1":                                 "not an absolute path",
		"place: sftp://u:hunter2@host/dir":                   "password",
		"place: ftp://host/dir":                              "not a kind of place",
		"place: /b\ncopy_to: /b":                             "same place",
		"place: /b\nschedule: nightly":                       "schedule: not a schedule",
		"place: /b\ndrill: '0 0 30 2 *'":                     "drill: not a schedule",
		"place: /b\nkind: both":                              "neither logical nor physical",
		"place: /b\nretention: {keep_daily: -1}":             "must not be negative",
		"place: /b\nretention: 7":                            "a value of the wrong kind",
		"place: /b\nkeep: 7":                                 "unknown field keep",
		"place: /b\nmax_age: soon":                           `max_age: "soon" is no duration`,
		"place: /b\nmax_rate: fast":                          `max_rate: "fast": write it as 50MB`,
		"place: /b\nthreads: 200":                            "threads: 200",
		"place: /b\nencrypt_to: [nobody]":                    "encrypt_to",
		"place: /b\nencrypt_to: [" + identity.String() + "]": "encrypt_to",
		"place: /b\nidentity_file: /nowhere":                 "identity_file",
		"place: /b\ndrill: daily\nencrypt_to: [" + identity.Recipient().String() + "]": "identity_file is missing",
	} {
		_, err := protectedBy(t, block)
		if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v; want an error, %q in the error, no \"\\n\" in the error", block, err, say)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), identity.String()) {
			t.Errorf("a secret stands in: got %v; want no \"hunter2\" in the error, no %q in the error", err, identity.String())
		}
	}
	_, err = protectedBy(t, "place: /b\nretention: {keep_daily: 7}", "place: /b\nretention: {keep_daily: 8}")
	if err == nil || !strings.Contains(err.Error(), "db1 and db2 share the place /b") {
		t.Errorf("got %v; want an error, \"db1 and db2 share the place /b\" in the error", err)
	}
	if _, err = protectedBy(t, "place: /b", "place: /b"); err != nil {
		t.Error(err)
	}
}
