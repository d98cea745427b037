package workload

import "time"

// Recording is what workload replay runs again. The reader of the logs fills it in.
type Recording struct {
	Classes []RecordedClass
	// Statements are the single ones in the order of their begin; none where the recording has only classes.
	Statements []RecordedStatement
	// LeftOut counts the calls that cannot be run again: why → how many.
	LeftOut map[string]int64
}

// RecordedClass is one class of statements with some of them as they were run.
type RecordedClass struct {
	Before
	Samples []RecordedStatement
}

// RecordedStatement is one statement with its literals.
type RecordedStatement struct {
	SQL     string
	Schema  string        // the default schema it was run in; "": not known
	Class   int           // of Recording.Statements: its place in Recording.Classes
	Session int64         // who ran it
	Began   time.Duration // since the first statement began
}

// Planned is a workload that knows how many sessions it wants and how long it takes.
type Planned interface {
	// Plan is called before a run with what the user asked for, zero if that was left open, and returns what will be done.
	Plan(sessions int, time time.Duration) (int, time.Duration)
}
