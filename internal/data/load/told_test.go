package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestManyFindings: however many things are restored in another form, one that cannot be restored at all is reported and refused; that not
// all are listed is reported, too.
func TestManyFindings(t *testing.T) {
	r := &run{}
	for i := range maxFindings + 50 {
		r.find(fmt.Sprint("table ", i), "engine Aria is not here", "InnoDB")
		r.otherwise(Finding{Trouble: fleet.Trouble{What: fmt.Sprint("table ", i)}, Mapped: "text"})
	}
	r.find("table last", "it is odd", "")
	r.plan.Findings = r.findings()
	var no *Incompatible
	if err := r.refuseFindings(); !errors.As(err, &no) || no.Findings[0].What != "table last" {
		t.Errorf("not refused: %v", err)
	}
	if n := len(r.plan.Findings); n != maxFindings+2 || r.plan.Findings[n-1] != moreFindings || len(r.later) != maxFindings+1 || r.later[maxFindings] != moreFindings {
		t.Errorf("%d findings, the last is %+v; %d later; want n %d, r.plan.Findings[n-1] %+v, len(r.later) %d, r.later[maxFindings] %v",
			n, r.plan.Findings[n-1], len(r.later), maxFindings+2, moreFindings, maxFindings+1, moreFindings)
	}
	for i := range maxFindings + 50 {
		r.notef("note %d", i)
		r.notef("note %d", i) // a run that goes on says it again
	}
	if n := len(r.notes); n != maxFindings+1 || strings.HasPrefix(r.notes[n-1], "note ") {
		t.Errorf("%d notes, the last is %q; want n %d, strings.HasPrefix(r.notes[n-1], \"note \") false", n, r.notes[n-1], maxFindings+1)
	}
}

// TestFindingOfEarlierVersions reads a journal that was begun when the field why was named reason.
func TestFindingOfEarlierVersions(t *testing.T) {
	want := Finding{Trouble: fleet.Trouble{What: "view v", Why: "no table"}, Mapped: "m"}
	for _, text := range []string{`{"what":"view v","reason":"no table","mapped":"m"}`, `{"what":"view v","why":"no table","mapped":"m"}`} {
		var got Finding
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}
