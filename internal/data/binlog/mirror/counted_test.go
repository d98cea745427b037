package mirror

import (
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
)

// TestCounted: a reader counts no log that no restore would read, wherever in a series it is, and says so; what has no index is
// named and is none of the logs.
func TestCounted(t *testing.T) {
	key := func() ed25519.PrivateKey {
		_, k, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	mine, foreign := key(), key()
	dir := t.TempDir()
	place := keyed(dir, repo.Keys{})
	place.Name = "0123456789abcdef0123456789abcdef"
	series := filepath.Join(dir, root, "s")
	if err := os.MkdirAll(series, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(series, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	index := func(name string, by ed25519.PrivateKey) {
		t.Helper()
		x := binlog.Index{Name: name, Size: 100, SHA256: strings.Repeat("a", 64)}
		if by != nil {
			var err error
			if x.Signature, err = repo.SignLog(by, place.complete("s", x)); err != nil {
				t.Fatal(err)
			}
		}
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		put(name+extIndex, b)
	}
	for i, c := range []struct {
		by    string // of the logs, in order: m mine, f foreign, n none, c changed since
		want  string // the numbers of those that count
		doubt string
	}{
		{"mmm", "123", ""},
		{"nmm", "23", "1 mirrored binary log does not count (series s, the newest b.000001): "},
		{"mmf", "12", "the newest b.000003): "},
		{"mnmm", "34", "the newest b.000002): "},
		{"fnf", "", "3 mirrored binary logs do not count"},
		{"mcm", "3", "the newest b.000002): "},
		{"nmmf", "23", "2 mirrored binary logs do not count (series s, the newest b.000004): "},
	} {
		for n := range 5 {
			os.Remove(filepath.Join(series, "b.00000"+string(rune('1'+n))+extIndex))
		}
		for n, by := range c.by {
			name := "b.00000" + string(rune('1'+n))
			index(name, map[rune]ed25519.PrivateKey{'m': mine, 'c': mine, 'f': foreign}[by])
			if by == 'c' {
				b, err := os.ReadFile(filepath.Join(series, name+extIndex))
				if err != nil {
					t.Fatal(err)
				}
				put(name+extIndex, []byte(strings.Replace(string(b), `"size":100`, `"size":101`, 1)))
			}
		}
		list, err := List(t.Context(), place, dir)
		if err != nil || len(list) != 1 || len(list[0].Logs) != len(c.by) {
			t.Fatalf("%d: got %+v, %v; want len(list) 1, len(list[0].Logs) %v", i, list, err, len(c.by))
		}
		looks := place
		looks.Policy = onlyKey{key: repo.PublicOf(mine)}
		s, doubt, err := list[0].Counted(t.Context(), looks, dir)
		got := ""
		for _, l := range s.Logs {
			got += l.Name[len(l.Name)-1:]
		}
		if err != nil || got != c.want || !strings.Contains(doubt, c.doubt) || (doubt == "") != (c.doubt == "") {
			t.Errorf("%s: %s count, %q, %v", c.by, got, doubt, err)
		}
		if s, doubt, err := list[0].Counted(t.Context(), place, dir); err != nil || doubt != "" || len(s.Logs) != len(c.by) {
			t.Errorf("%s without a policy: %d count, %q, %v; want doubt \"\", len(s.Logs) %d", c.by, len(s.Logs), doubt, err, len(c.by))
		}
	}
	put("b.000009"+extPacked, nil)
	put("b.000010"+extSealed, nil)
	put("b.000001"+extPacked, nil)
	list, err := List(t.Context(), place, dir)
	if err != nil || len(list) != 1 || strings.Join(list[0].Lost, " ") != "b.000009 b.000010" || !strings.Contains(list[0].Lacks(), "2 logs are there (b.000009, b.000010) without an index") {
		t.Errorf("got %+v, %v; want len(list) 1, strings.Join(list[0].Lost, \" \") \"b.000009 b.000010\", \"2 logs are there (b.000009, b.000010) without an index\" in list[0].Lacks()",
			list, err)
	}
}
