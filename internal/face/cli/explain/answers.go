package explain

import "github.com/rissodb/risso/internal/explain/trace"

// StatementsAnswer lists the statements that a trace would run.
type StatementsAnswer struct {
	Statements []string `json:"statements"`
}

// ConnectionsAnswer lists the connections that can be traced.
type ConnectionsAnswer struct {
	Connections []trace.Connection `json:"connections"`
}
