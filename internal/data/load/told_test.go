package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestManyFindings: however many things come along in another form, one that does not come along at all is told and refused; that not
// all are told is told, too.
func TestManyFindings(t *testing.T) {
	r := &run{}
	for i := range maxFindings + 50 {
		r.find(fmt.Sprint("table ", i), "engine Aria is not here", "InnoDB")
		r.otherwise(Finding{What: fmt.Sprint("table ", i), Mapped: "text"})
	}
	r.find("table last", "it is odd", "")
	r.plan.Findings = r.findings()
	var no *Incompatible
	if err := r.refuseFindings(); !errors.As(err, &no) || no.Findings[0].What != "table last" {
		t.Errorf("not refused: %v", err)
	}
	if n := len(r.plan.Findings); n != maxFindings+2 || r.plan.Findings[n-1] != moreFindings || len(r.later) != maxFindings+1 || r.later[maxFindings] != moreFindings {
		t.Errorf("%d findings, the last is %+v; %d later", n, r.plan.Findings[n-1], len(r.later))
	}
	for i := range maxFindings + 50 {
		r.notef("note %d", i)
		r.notef("note %d", i) // a run that goes on says it again
	}
	if n := len(r.notes); n != maxFindings+1 || strings.HasPrefix(r.notes[n-1], "note ") {
		t.Errorf("%d notes, the last is %q", n, r.notes[n-1])
	}
}
