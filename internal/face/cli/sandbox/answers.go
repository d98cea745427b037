package sandbox

import "github.com/rissodb/risso/internal/sandbox"

// SandboxesAnswer is which sandboxes there are.
type SandboxesAnswer struct {
	Sandboxes []*sandbox.Sandbox `json:"sandboxes"`
}

// ServersAnswer is which servers are installed here.
type ServersAnswer struct {
	Servers []sandbox.Server `json:"servers"`
	Looked  []string         `json:"looked"` // where they were looked for
}

// ResultsAnswer is what statements gave, one after the other.
type ResultsAnswer struct {
	Results []sandbox.Result `json:"results"`
}

// RemovedAnswer is which sandboxes are gone.
type RemovedAnswer struct {
	Removed []string `json:"removed"` // their names
}
