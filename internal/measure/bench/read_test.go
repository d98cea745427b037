package bench

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const oneRun = `{"workload":"point_select","began":"2026-11-21T10:00:00Z","threads":4,"seconds":10,"transactions":5,"timeline":[{"second":-1},{"second":0},{"second":1}],"latency":{"percentiles":[{"percentile":95,"seconds":0.1}]}}`

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		oneRun:                               "",
		oneRun + "\n" + oneRun:               ",",
		"[" + oneRun + "]":                   "",
		`{"runs":[` + oneRun + `]}`:          "",
		" \n[" + oneRun + "," + oneRun + "]": ",",
		`{"a":{"name":"A","what":"before.json","runs":[` + oneRun + `]},"b":{"name":"B","what":"B","runs":[` + oneRun + `,` + oneRun + `]}}`: "A: before.json,B,B",
	} {
		list, err := Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var names []string
		for _, r := range list {
			names = append(names, r.Name)
			if r.Latency.At(95) != 0.1 || r.Threads != 4 {
				t.Errorf("%s: got %+v; want r.Latency.At(95) 0.1, r.Threads 4", text, r.Result)
			}
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%s: names %q, not %q", text, got, want)
		}
	}
}

// TestReadLongRuns: what a run can make is read.
func TestReadLongRuns(t *testing.T) {
	long := fmt.Sprintf(`"seconds":%v`, longestTime.Seconds()+60)
	if list, err := Read(strings.NewReader(strings.Replace(oneRun, `"seconds":10`, long, 1))); err != nil || len(list) != 1 || list[0].WarmupSeconds+list[0].Seconds < longestTime.Seconds() {
		t.Errorf("got %d results, %v; want len(list) 1, list[0].WarmupSeconds + list[0].Seconds at least longestTime.Seconds()", len(list), err)
	}
}

func TestReadRefuses(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(oneRun, old, new, 1) }
	for _, text := range []string{
		"", "{", "null", "[]", "[null]", "3", `"x"`, "{}", `{"runs":[]}`, `{"a":{"runs":[{}]}}`, "<html>",
		with(`"point_select"`, `""`), with("2026", "0001"), with(`"threads":4`, `"threads":0`), with(`"threads":4`, `"threads":99999999`), with(`"seconds":10`, `"seconds":-1`),
		with(`"seconds":10`, `"seconds":1e300`), with(`"transactions":5`, `"transactions":-5`), with(`{"second":1}`, `{"second":0}`), with(`{"second":1}`, `{"second":99999999}`),
		with(`"workload":"`, `"workload":"`+strings.Repeat("x", 300)),
	} {
		if list, err := Read(strings.NewReader(text)); !errors.Is(err, ErrNoResult) {
			t.Errorf("got %.80s: %d results, %v; want ErrNoResult", text, len(list), err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(oneRun)
	f.Add(fmt.Sprintf(`{"a":{"runs":[%s]},"b":{"runs":[%s]}}`, oneRun, oneRun))
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range list {
			if err := r.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
