package load

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRefusedByFile: MySQL 8.0.15 refuses a POINT NOT NULL in LOAD DATA and takes it in INSERT. Each session whose chunk is under
// way has to go on by INSERT, not only the one that finds it out; and where INSERT cannot be, it ends with the server's words.
func TestRefusedByFile(t *testing.T) {
	node := sandboxtest.Lend(t, "mysql-8.0", LentSettings...)
	into, err := mysql.ParseTarget(node.DSN)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{o: Options{Into: into}, localFiles: true, maxPacket: 1 << 20}
	s, err := r.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := r.findSetup(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), "CREATE TABLE test.geo (id INT PRIMARY KEY, g POINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	point := append([]byte{0, 0, 0, 0, 1, 1, 0, 0, 0}, make([]byte, 16)...) // SRID 0, little endian, POINT(0 0)
	rows := rawOf([][][]byte{{[]byte("1"), point}, {[]byte("2"), point}})
	rowsOf := func() *feed {
		f := feedReader(io.Reader(bytes.NewReader(rows)), 2)
		if more, err := f.next(batchBytes); err != nil || !more {
			t.Fatalf("got %v, %v; want more true", more, err)
		}
		return f
	}
	tab := &table{schema: "test", name: "geo", Table: repo.Table{Columns: []repo.Column{{Name: "id", Type: "int"}, {Name: "g", Type: "point"}}}}
	tab.statements()
	for _, session := range []string{"the first", "one that was under way meanwhile"} {
		if err := r.loadRows(t.Context(), s, tab, rowsOf()); !errors.Is(err, errAgain) {
			t.Errorf("%s: %v, not %v", session, err, errAgain)
		}
		if !tab.inserts.Load() {
			t.Errorf("%s: INSERT is not chosen", session)
		}
	}
	if err := s.Exec(t.Context(), "DELETE FROM test.geo"); err != nil { // by a warning or by an error
		t.Fatal(err)
	}
	if err := r.sendRows(t.Context(), s, tab, repo.Chunk{Bytes: int64(len(rows))}, rowsOf()); err != nil {
		t.Errorf("by INSERT: %v", err)
	}
	tab.large.Store(true)
	var w *warned
	if err := r.loadRows(t.Context(), s, tab, rowsOf()); mysql.ErrorNumber(err) != 1364 && !(errors.As(err, &w) && errors.Is(err, ErrNotKept)) {
		t.Errorf("a row that is too large for INSERT: %v", err)
	}
}
