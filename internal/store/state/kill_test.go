package state

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// A process that writes without a break is killed: what was reported as stored is
// there, and the file is whole.
func TestKilled(t *testing.T) {
	if path := os.Getenv("RISSO_KILL"); path != "" {
		s := openStore(t, path)
		for {
			e, err := s.AddEvents(t.Context(), fleet.Event{Instance: "db1", Text: "t"})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(e[0].ID)
		}
	}
	path := filepath.Join(t.TempDir(), "state.db")
	last := int64(0)
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "RISSO_KILL="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 50+70*round && lines.Scan(); n++ {
			fmt.Sscan(lines.Text(), &last)
		}
		cmd.Process.Kill()
		for lines.Scan() { // what was still confirmed before the end
			var id int64
			if n, _ := fmt.Sscan(lines.Text(), &id); n == 1 && id == last+1 {
				last = id
			}
		}
		cmd.Wait()

		s := openStore(t, path)
		if s.Damage() != nil {
			t.Fatalf("damage: got %+v, want nil", s.Damage())
		}
		got, err := s.Events(t.Context(), EventQuery{Limit: 10000})
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(got)) < last || last == 0 {
			t.Fatalf("%d events are there, %d were confirmed; want int64(len(got)) at least %v, last not 0", len(got), last, last)
		}
		for i, e := range got {
			if e.ID != int64(i+1) || time.Since(e.Time) > time.Hour {
				t.Fatalf("event %d: got %+v; want ID %v, time.Since(e.Time) at most time.Hour", i, e, int64(i+1))
			}
		}
		last = int64(len(got))
		s.Close()
	}
}
