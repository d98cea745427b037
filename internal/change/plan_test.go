package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// recorded are steps of which each writes its name.
func recorded(done *[]string, names ...string) (p Plan) {
	for _, name := range names {
		p = append(p, Step{What: "do", Where: name, Do: func(context.Context) error {
			*done = append(*done, name)
			if strings.HasPrefix(name, "bad") {
				return errors.New(name)
			}
			return nil
		}})
	}
	return p
}

// TestExecute: steps are done in their order until one fails, and Before and After are called.
func TestExecute(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps string
		had   string // a step that an earlier run did, with all before it
		cut   string // the step before which ctx ends
		no    string // the step that Before refuses
		lost  string // the step that After cannot note
		want  string // what is done
		n     int
		err   string
	}{
		{name: "nothing"},
		{name: "all", steps: "a b c", want: "a b c", n: 3},
		{name: "a step fails", steps: "a bad c", want: "a bad", n: 1, err: "bad"},
		{name: "goes on", steps: "a b c", had: "b", want: "c", n: 3},
		{name: "was done", steps: "a b", had: "b", n: 2},
		{name: "goes on and fails", steps: "a bad c", had: "a", want: "bad", n: 1, err: "bad"},
		{name: "cut", steps: "a b c", cut: "b", want: "a", n: 1, err: "cut"},
		{name: "refused", steps: "a b c", no: "c", want: "a b", n: 2, err: "no"},
		{name: "not noted", steps: "a b c", lost: "b", want: "a b", n: 1, err: "lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var done, before []string
			ctx, cancel := context.WithCancelCause(t.Context())
			had := c.had != ""
			log := Log{
				Did: func(s Step) bool {
					was := had
					had = had && s.Where != c.had
					if s.Where == c.cut {
						cancel(errors.New("cut"))
					}
					return was
				},
				Before: func(i int, s Step) error {
					before = append(before, fmt.Sprint(i, s.Where))
					if s.Where == c.no {
						return errors.New("no")
					}
					return nil
				},
				After: func(_ context.Context, s Step) error {
					if s.Where == c.lost {
						return errors.New("lost")
					}
					return nil
				},
			}
			n, err := Execute(ctx, recorded(&done, strings.Fields(c.steps)...), log)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got := strings.Join(done, " "); got != c.want || n != c.n || text != c.err {
				t.Errorf("did %q, %d steps, error %q; want %q, %d, %q", got, n, text, c.want, c.n, c.err)
			}
			if len(before) < len(done) || c.name == "goes on" && before[0] != "2c" {
				t.Errorf("told before steps: %q; want each of %q with its place", before, done)
			}
		})
	}
}

// TestPlanPrints: a plan is text and JSON, and printing it does nothing.
func TestPlanPrints(t *testing.T) {
	var done []string
	p := append(recorded(&done, "a"), Step{What: "SET x = 1"}, Step{What: "remove", Where: "b", Why: "nobody needs it"})
	if got, want := strings.Join(p.Words(), "\n"), "do a\nSET x = 1\nremove b: nobody needs it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b, err := json.Marshal(p)
	if want := `[{"what":"do","where":"a"},{"what":"SET x = 1"},{"what":"remove","where":"b","why":"nobody needs it"}]`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
	if len(done) > 0 {
		t.Errorf("printing did %q, want none", done)
	}
}
