package bench

import "github.com/rissodb/risso/internal/measure/compare"

// ComparisonPlan is what a comparison would do.
type ComparisonPlan struct {
	A        string        `json:"a"` // the first side
	B        string        `json:"b"` // the second side
	Workload string        `json:"workload"`
	Order    string        `json:"order"`    // order of the runs, such as ABBA…
	Seconds  float64       `json:"seconds"`  // how long it will take
	Settings *compare.Plan `json:"settings"` // settings that would be changed; null: none
}

// WorkloadAnswer is a workload of bench.
type WorkloadAnswer struct {
	Name    string `json:"name"`
	Summary string `json:"summary"` // what it does, in one line
}
