package dump_test

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

// TestCutsOfAnotherOrder: where the order of a key has changed since the backup before, by another collation or type, each row is in the
// backup once nevertheless; what changed nothing of the order costs no new chunks.
func TestCutsOfAnotherOrder(t *testing.T) {
	for _, flavour := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			to := target(t, sandboxtest.Up(t, flavour).DSN)
			s := stream(t, to)
			exec(t, s, "CREATE DATABASE d", "USE d", "CREATE TABLE n (n INT PRIMARY KEY)", "INSERT INTO n SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits+" a, "+digits+" b, "+digits+" c",
				"CREATE TABLE words (w VARCHAR(20) PRIMARY KEY, x CHAR(20) DEFAULT 'x') CHARSET=utf8mb4 COLLATE=utf8mb4_bin", "INSERT INTO words (w) SELECT CONCAT(CHAR(65 + n % 26 + 32 * (n % 2)), n) FROM n",
				"CREATE TABLE named (w VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, x CHAR(20) DEFAULT 'x') CHARSET=utf8mb4", "INSERT INTO named SELECT w, x FROM words",
				"CREATE TABLE numbers (w VARCHAR(20) PRIMARY KEY, x CHAR(20) DEFAULT 'x')", "INSERT INTO numbers (w) SELECT n FROM n",
				"CREATE TABLE kept (w INT PRIMARY KEY, x CHAR(20) DEFAULT 'x')", "INSERT INTO kept (w) SELECT n FROM n")
			r := place(t)
			o := dump.Options{Target: to, Name: "s", Threads: 2, ChunkAim: 2 << 10}
			first, err := dump.Run(t.Context(), r, o)
			if err != nil {
				t.Fatal(err)
			}
			exec(t, s, "ALTER TABLE words CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "ALTER TABLE named MODIFY w VARCHAR(20) COLLATE utf8mb4_general_ci", "ALTER TABLE numbers MODIFY w INT", "ALTER TABLE kept MODIFY w BIGINT")
			time.Sleep(1100 * time.Millisecond) // names of backups sort by the second
			second, err := dump.Run(t.Context(), r, o)
			if err != nil {
				t.Fatal(err)
			}
			if second.Header.Rows != first.Header.Rows || first.Header.Rows != 5000 {
				t.Errorf("%d rows, then %d: some are in the backup twice; want second.Header.Rows %d, first.Header.Rows 5000",
					first.Header.Rows, second.Header.Rows, first.Header.Rows)
			}
			chunks := map[string]map[string]bool{}
			for _, id := range []string{first.Header.ID, second.Header.ID} {
				m, err := r.Manifest(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				chunks[id] = map[string]bool{}
				err = m.Each(func(l repo.Line) error {
					if l.Table != nil && l.Table.Name == "kept" {
						for _, c := range l.Table.Chunks {
							chunks[id][c.Hash] = true
						}
					}
					return nil
				})
				m.Close()
				if err != nil {
					t.Fatal(err)
				}
			}
			for hash := range chunks[second.Header.ID] {
				if !chunks[first.Header.ID][hash] {
					t.Errorf("a table whose order is the same was cut in another way: %d chunks, then %d", len(chunks[first.Header.ID]), len(chunks[second.Header.ID]))
					break
				}
			}
		})
	}
}

// TestCutsOfStrangers: a backup that somebody else put there decides nothing about those that this account takes.
func TestCutsOfStrangers(t *testing.T) {
	to := target(t, sandboxtest.Up(t, "mariadb").DSN)
	s := stream(t, to)
	exec(t, s, "CREATE DATABASE d", "USE d", "CREATE TABLE n (n INT PRIMARY KEY, x CHAR(20) DEFAULT 'x')", "INSERT INTO n (n) SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits+" a, "+digits+" b, "+digits+" c")
	dir := t.TempDir()
	open := func(k repo.Keys) *repo.Repo {
		t.Helper()
		b, err := blob.Open(t.Context(), dir, blob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		r, err := repo.CreateWith(t.Context(), repo.On(b), k)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	key, err := repo.SigningKey(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	mine, stranger := open(repo.Keys{Signer: key}), open(repo.Keys{})
	o := dump.Options{Target: to, Name: "s", Threads: 1, ChunkAim: 2 << 10}
	first, err := dump.Run(t.Context(), mine, o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mine.Manifest(t.Context(), first.Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h, d := m.Header, repo.NewDraft()
	defer d.Close()
	h.Began = h.Began.Add(time.Second)
	h.ID = repo.NewID(h.Began)
	err = m.Each(func(l repo.Line) error {
		if l.Table != nil && l.Table.Name == "n" {
			for i := range l.Table.Chunks {
				l.Table.Chunks[i].Upper = []string{[]string{"900", "100"}[i%2]}
			}
		}
		return d.Add(l)
	})
	if err == nil {
		err = stranger.Begin(t.Context(), h, nil)
	}
	if err == nil {
		err = stranger.Finish(t.Context(), h, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2100 * time.Millisecond) // names of backups sort by the second
	second, err := dump.Run(t.Context(), mine, o)
	if err != nil {
		t.Fatal(err)
	}
	if second.Header.Rows != first.Header.Rows || second.Header.Parent != first.Header.ID {
		t.Errorf("%d rows by the cuts of %s, %d by those of %s", second.Header.Rows, second.Header.Parent, first.Header.Rows, first.Header.ID)
	}
}
