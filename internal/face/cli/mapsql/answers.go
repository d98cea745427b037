package mapsql

import (
	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/fleet"
)

// CheckAnswer is what is wrong with geometry columns and the statements that search them.
type CheckAnswer struct {
	Columns    int             `json:"columns"`    // that were looked at
	Statements int             `json:"statements"` // that were looked at
	Findings   []geo.Finding   `json:"findings"`
	Unknown    []fleet.Trouble `json:"unknown"` // what could not be looked at
}
