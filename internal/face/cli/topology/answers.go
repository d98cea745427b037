package topology

import (
	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
)

// Found is a topology, and what is wrong with it.
type Found struct {
	*topology.Topology
	Diagnoses []diagnose.Diagnosis `json:"diagnoses"` // what follows from nothing else first, in it the worst first
}

// CodesAnswer is all that is looked for.
type CodesAnswer struct {
	Codes []diagnose.Code `json:"codes"`
}
