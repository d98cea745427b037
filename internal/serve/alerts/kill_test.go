package alerts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// speed is how much faster the clock of a killed desk goes.
const speed = 600

// clock is a clock that goes faster, from a moment on.
func clock(from time.Time) func() time.Time {
	began := time.Now()
	return func() time.Time { return from.Add(time.Since(began) * speed) }
}

// poster is a receiver that posts to a URL.
type poster string

func (p poster) Send(ctx context.Context, m *alert.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(p), bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// instances are those of the desk that is killed.
var instances = []string{"a", "b", "c"}

// live is one life of a desk: findings begin and end at random, each is printed when it is kept. In the last life all ends.
func live(t *testing.T, dir, url string, life int, last bool) {
	facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	now := clock(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(life) * 24 * time.Hour))
	d, err := New(t.Context(), Options{Facts: facts, Policy: alert.Policy{Receivers: []string{"hook"}}, Receivers: map[string]Receiver{"hook": poster(url)}, Now: now,
		Instances: func() []fleet.Instance { return nil }, Because: func() func(state.FindingRecord) (alert.Cause, bool) { return nil },
		Event: func(fleet.Event) {}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	defer func() { stop(); <-done }()
	r := rand.New(rand.NewPCG(uint64(life), 3))
	holds := map[string][]fleet.Finding{}
	open, err := facts.Findings(t.Context(), state.FindingQuery{Open: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		holds[f.Instance] = append(holds[f.Instance], f.First)
	}
	for n := 0; ; n++ {
		i := instances[r.IntN(len(instances))]
		list := holds[i]
		switch {
		case last && n < len(instances):
			i, list = instances[n], nil
		case last:
			if err := d.Look(t.Context(), now()); err != nil {
				t.Fatal(err)
			}
			over := len(d.Standing()) == 0 // asked first: what ends the last one makes a message
			waiting, err := facts.WaitingMessages(t.Context(), "hook", 1)
			if err != nil {
				t.Fatal(err)
			}
			if over && len(waiting) == 0 {
				return
			}
			time.Sleep(20 * time.Millisecond)
			continue
		case len(list) > 0 && r.IntN(2) == 0:
			list = list[1:]
		case len(list) < 4:
			list = append(list[:len(list):len(list)], fleet.Finding{ID: fmt.Sprint("f", r.IntN(3)), Subject: fmt.Sprintf("%d.%d", life, n), Severity: fleet.SeverityCritical, Since: now()})
		}
		if err := facts.KeepFindings(t.Context(), state.Look{Instance: i, At: now(), Findings: list}); err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			fmt.Println("kept", i, f.ID, f.Subject)
		}
		holds[i] = list
		d.Poke()
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
	}
}

// TestDeskKilled: a process that keeps findings and tells of them is killed at random moments. No finding and no alert is lost, none is there
// twice, each message arrives, and one that arrives twice is the same in each byte. RISSO_KILLS says how often it is killed.
func TestDeskKilled(t *testing.T) {
	if dir := os.Getenv("RISSO_KILL_DIR"); dir != "" {
		life, err := strconv.Atoi(os.Getenv("RISSO_KILL_LIFE"))
		if err != nil {
			t.Fatal(err)
		}
		live(t, dir, os.Getenv("RISSO_KILL_URL"), life, os.Getenv("RISSO_KILL_LAST") != "")
		return
	}
	t.Parallel()
	kills := 12
	if text := os.Getenv("RISSO_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var order []string
	bodies := map[string][]byte{}
	twice := 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var m alert.Message
		if err != nil || json.Unmarshal(body, &m) != nil { // the sender was killed while it sent
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if before, known := bodies[m.ID]; known {
			twice++
			if !bytes.Equal(before, body) {
				t.Errorf("message %s came twice, and differs:\n%s\n%s", m.ID, before, body)
			}
			return
		}
		bodies[m.ID] = body
		order = append(order, m.ID)
	}))
	defer hook.Close()
	dir, kept := t.TempDir(), map[string]bool{}
	r := rand.New(rand.NewPCG(5, 5))
	for life := 0; life <= kills; life++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDeskKilled$")
		cmd.Env = append(os.Environ(), "RISSO_KILL_DIR="+dir, "RISSO_KILL_URL="+hook.URL, fmt.Sprint("RISSO_KILL_LIFE=", life))
		if life == kills {
			cmd.Env = append(cmd.Env, "RISSO_KILL_LAST=1")
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n, most := 0, 1+r.IntN(150); lines.Scan(); n++ {
			if key, ok := strings.CutPrefix(lines.Text(), "kept "); ok {
				kept[key] = true
			}
			if n == most && life < kills {
				cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); life == kills && err != nil {
			t.Fatalf("the last life: %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	judgeKilled(t, filepath.Join(dir, "state.db"), kept, order, bodies)
	if twice > kills {
		t.Errorf("%d messages came twice, with %d kills", twice, kills)
	}
	t.Logf("%d kills: %d findings, %d messages, of which %d came twice, with the same ID", kills, len(kept), len(order), twice)
}

// judgeKilled compares what was kept and told with what is in the store.
func judgeKilled(t *testing.T, path string, kept map[string]bool, order []string, bodies map[string][]byte) {
	facts, err := state.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	findings, err := facts.Findings(t.Context(), state.FindingQuery{Limit: 10000})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range findings {
		key := f.Instance + " " + f.First.ID + " " + f.First.Subject
		if there[key] {
			t.Errorf("finding %s is kept twice", key)
		}
		if there[key] = true; f.Ended.IsZero() {
			t.Errorf("finding %s has no end", key)
		}
	}
	for key := range kept {
		if !there[key] {
			t.Errorf("finding %s is lost", key)
		}
	}
	told := map[string]alert.Phase{}
	for _, id := range order {
		var m alert.Message
		if err := json.Unmarshal(bodies[id], &m); err != nil {
			t.Fatal(err)
		}
		for _, a := range m.Alerts {
			key := a.Key + a.Rang.UTC().Format(time.RFC3339Nano)
			if told[key] == alert.Resolved && a.Phase == alert.Firing && a.Times < 2 {
				t.Errorf("%s fires after its end was told", key)
			}
			told[key] = a.Phase
		}
	}
	rows, err := facts.Alerts(t.Context(), time.Time{}, time.Time{}, 10000)
	if err != nil {
		t.Fatal(err)
	}
	rang := map[string]bool{}
	for _, row := range rows {
		var a alert.Standing
		if err := json.Unmarshal(row.Alert, &a); err != nil {
			t.Fatal(err)
		}
		rang[a.Instance+" "+a.Finding+" "+a.Subject] = true
		if phase := told[a.Key+a.Rang.UTC().Format(time.RFC3339Nano)]; row.Ended.IsZero() || phase != alert.Resolved {
			t.Errorf("alert %s ended %s, and was told last as %q", a.Key, row.Ended, phase)
		}
	}
	for key := range kept {
		if !rang[key] {
			t.Errorf("finding %s never rang", key)
		}
	}
	messages, err := facts.LastMessages(t.Context(), "hook", 100000)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if bodies[m.ID] == nil || m.Delivered.IsZero() {
			t.Errorf("message %s is lost", m.ID)
		}
	}
	if len(messages) != len(order) || len(kept) == 0 {
		t.Errorf("%d messages came, %d were made, of %d findings", len(order), len(messages), len(kept))
	}
}
