package explain

import "github.com/rissodb/risso/internal/explain/trace"

// StatementsAnswer is what a trace would run.
type StatementsAnswer struct {
	Statements []string `json:"statements"`
}

// ConnectionsAnswer is which connections could be traced.
type ConnectionsAnswer struct {
	Connections []trace.Connection `json:"connections"`
}
