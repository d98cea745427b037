package events

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestRowAsJSON reads rows as they are kept, and as older versions kept them.
func TestRowAsJSON(t *testing.T) {
	want := Row{Class: "C", Schema: "s", User: "u", Cost: fleet.Cost{Calls: 1, Seconds: 2, LockSeconds: 3, RowsSent: 4, RowsExamined: 5, RowsAffected: 6, Errors: 7, Warnings: 8, TmpTables: 9,
		TmpDiskTables: 10, NoIndex: 11, SortRows: 12, MaxSeconds: 13}, Latency: []Bucket{{Number: 14, Calls: 15}}}
	now, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(now), `{"Class":"C","Schema":"s","User":"u","Calls":1,"Seconds":2,"LockSeconds":3,"RowsSent":4,"RowsExamined":5,"RowsAffected":6,"Errors":7,` +
		`"Warnings":8,"TmpTables":9,"TmpDiskTables":10,"NoIndex":11,"SortRows":12,"MaxSeconds":13,"Latency":[{"Number":14,"Calls":15}]}`} {
		var got Row
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}
