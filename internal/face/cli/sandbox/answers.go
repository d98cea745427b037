package sandbox

import "github.com/rissodb/risso/internal/sandbox"

// SandboxesAnswer lists the sandboxes.
type SandboxesAnswer struct {
	Sandboxes []*sandbox.Sandbox `json:"sandboxes"`
}

// ServersAnswer lists the installed servers.
type ServersAnswer struct {
	Servers []sandbox.Server `json:"servers"`
	Looked  []string         `json:"looked"` // where Risso looked for them
}

// ResultsAnswer holds the results of statements, in order.
type ResultsAnswer struct {
	Results []sandbox.Result `json:"results"`
}

// RemovedAnswer lists the sandboxes that were removed.
type RemovedAnswer struct {
	Removed []string `json:"removed"` // their names
}

// NodeAnswer is a node that was stopped, started, restarted or killed.
type NodeAnswer struct {
	Sandbox string        `json:"sandbox"`
	Was     sandbox.State `json:"was"` // its state before
	Node    *sandbox.Node `json:"node"`
}
