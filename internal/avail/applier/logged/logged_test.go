package logged

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/applier"
	"github.com/rissodb/risso/internal/binlogevent"
)

// recorded is one of the logs that servers wrote for package binlogevent.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "binlogevent", "testdata", name+".binlog.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t *testing.T, o Options, logs ...[]byte) Result {
	t.Helper()
	r := New(o)
	for i, b := range logs {
		if err := r.Read(t.Context(), "binlog.00000"+string(rune('1'+i)), bytes.NewReader(b), i+1 == len(logs)); err != nil {
			t.Fatal(err)
		}
	}
	return r.Result()
}

// TestRecorded: logs of all servers, whose statements are in the README beside them: as many transactions as GTIDs, rows as the statements say.
func TestRecorded(t *testing.T) {
	for name, want := range map[string]struct {
		server                            string
		transactions, rows, text, unkeyed int64
		modes                             string
		guessed                           string
	}{
		"mariadb-10.11":            {"MariaDB 10.11", 26, 23, 3, 1, "optimistic aggressive conservative", ""},
		"mariadb-10.11-compressed": {"MariaDB 10.11", 5, 4, 1, 0, "optimistic aggressive conservative", ""},
		"mysql-9.7":                {"MySQL 9.7", 29, 27, 3, 1, "logged logged database", ""},
		"mysql-9.7-compressed":     {"MySQL 9.7", 2, 13, 0, 0, "logged logged database", ""},
		"mysql-8.0":                {"MySQL 8.0", 14, 20, 0, 0, "logged logged writeset database", "shop.js shop.nums shop.texts shop.times"},
		"mysql-5.7":                {"MySQL 5.7", 25, 31, 0, 0, "logged logged writeset database", "shop.a shop.nums shop.texts shop.times"},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, Options{}, recorded(t, name))
			var modes []string
			for _, c := range r.Curves {
				modes = append(modes, string(c.Mode))
			}
			if !strings.HasPrefix(r.Server, want.server) || r.Transactions != want.transactions || r.Rows != want.rows || r.Statements != want.text || r.Unkeyed != want.unkeyed || strings.Join(modes, " ") != want.modes || strings.Join(r.Guessed, " ") != want.guessed || r.Incomplete {
				t.Errorf("got %s, %d transactions, %d rows, %d as text, %d without keys, %v, guessed %v, %v; want %+v", r.Server, r.Transactions, r.Rows, r.Statements, r.Unkeyed, modes, r.Guessed, r.Notes, want)
			}
		})
	}
}

// TestCut: of a log that ends anywhere, what is whole counts, and what is not is said.
func TestCut(t *testing.T) {
	for _, name := range []string{"mariadb-10.11", "mysql-9.7-compressed", "mysql-8.0"} {
		whole := recorded(t, name)
		all := read(t, Options{}, whole)
		most := int64(0)
		for n := 300; n < len(whole); n += len(whole)/40 + 7 {
			r := read(t, Options{}, whole[:n])
			if r.Transactions < most || r.Transactions > all.Transactions {
				t.Fatalf("%s: %d bytes have %d transactions, fewer had %d, all %d", name, n, r.Transactions, most, all.Transactions)
			}
			most = r.Transactions
			if r.Incomplete {
				t.Errorf("%s: %d bytes of the last log: got that it is incomplete: %v", name, n, r.Notes)
			}
			if two := read(t, Options{}, whole[:n], whole); len(r.Notes) > 0 != two.Incomplete || two.Transactions != r.Transactions+all.Transactions {
				t.Fatalf("%s: %d bytes, and another log: got %d transactions, incomplete %v, %v; alone %v", name, n, two.Transactions, two.Incomplete, two.Notes, r.Notes)
			}
		}
		damaged := bytes.Clone(whole)
		damaged[len(damaged)/2] ^= 0x55
		if r := read(t, Options{}, damaged); !r.Incomplete || len(r.Notes) == 0 {
			t.Errorf("%s with a wrong byte: got no word of it", name)
		}
	}
	r := New(Options{})
	if err := r.Read(t.Context(), "x", strings.NewReader("\xfdbin and what is encrypted"), true); err == nil || !strings.Contains(err.Error(), "--dsn") {
		t.Errorf("encrypted: got %v", err)
	}
	if err := r.Read(t.Context(), "x", strings.NewReader("no log"), true); err == nil {
		t.Error("no log: got no error")
	}
	if got := r.Result(); got.Transactions != 0 || len(got.Curves) != 0 {
		t.Errorf("nothing was read: got %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Read(ctx, "x", bytes.NewReader(recorded(t, "mysql-8.0")), true); err == nil {
		t.Error("interrupted: got no error")
	}
}

// TestKeys: what tells rows apart: the key that the log names, the one that is filled in, or the first column.
func TestKeys(t *testing.T) {
	log := recorded(t, "mysql-8.0") // it names none
	first := read(t, Options{}, log)
	filled := read(t, Options{Fill: func(t *binlogevent.Table) {
		t.Named = true // and has no key
	}}, log)
	if len(first.Guessed) == 0 || len(filled.Guessed) > 0 || filled.Unkeyed == 0 || first.Unkeyed > 0 || first.Rows != filled.Rows {
		t.Errorf("got guessed %v, %d without a key; filled in: guessed %v, %d without", first.Guessed, first.Unkeyed, filled.Guessed, filled.Unkeyed)
	}
	late := read(t, Options{From: first.To}, log)
	if late.Before == 0 || late.Transactions == 0 || late.Before+late.Transactions != first.Transactions {
		t.Errorf("from %v: got %d before and %d, of %d", first.To, late.Before, late.Transactions, first.Transactions)
	}
}

// TestHotKeys: keys that occur often are found among many that do not, in bounded memory.
func TestHotKeys(t *testing.T) {
	h := hotKeys{counts: map[uint64]int{}, names: map[uint64]hotName{}}
	for i := range uint64(200_000) {
		k := i + 1000
		if i%100 == 0 {
			k = 1 + i/100%7
		}
		if h.again(k) {
			h.names[k] = hotName{applier.Table{Schema: "s", Name: "t"}, "id"}
		}
		if len(h.counts) > mostHot || len(h.names) > mostNamed {
			t.Fatalf("%d counts, %d names", len(h.counts), len(h.names))
		}
	}
	for k := uint64(1); k <= 7; k++ {
		if _, name := h.name(k); name == "" {
			t.Errorf("key %d is one of a hundred, and has no name", k)
		}
	}
	if len(h.names) > 20 {
		t.Errorf("got %d names, want those of the seven", len(h.names))
	}
}
