// Package change is how Risso changes anything: first it makes a plan, a value that can be printed and tested before anything
// changes; then it carries the plan out step by step; a journal on disk records what was done and what must be put back.
//
// A Plan holds what is known in advance; Execute carries it out. A Loan is something borrowed from a server, such as a setting or
// a plug-in: it is on disk before the first change, and is given back at the end, or by the next run after a kill. A Diary records
// what a step overwrites for good, before it does so.
package change

import "context"

// Step is one change of a plan.
type Step struct {
	What  string `json:"what"`            // what is done: "remove backup", or a statement
	Where string `json:"where,omitempty"` // to which thing
	Why   string `json:"why,omitempty"`   // why, or how much of it
	// Do does it. An error says by itself what failed.
	Do func(context.Context) error `json:"-"`
}

// String is the step in words.
func (s Step) String() string {
	text := s.What
	if s.Where != "" {
		text += " " + s.Where
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// Plan is what will be done, in this order. Making one changes nothing.
type Plan []Step

// Words is the plan in words, one text for each step.
func (p Plan) Words() []string {
	words := make([]string, len(p))
	for i, s := range p {
		words[i] = s.String()
	}
	return words
}

// Log follows a plan while it is carried out. The zero value notes nothing.
type Log struct {
	// Did says that an earlier run, which was cut off, has done a step: it is skipped.
	Did func(Step) bool
	// Before is called before each step: i of them were done or skipped. An error ends the execution; nothing of the step was done then.
	Before func(i int, s Step) error
	// After is called after each step. An error ends the execution.
	After func(ctx context.Context, s Step) error
}

// Execute carries out a plan, and stops at the first error, or between two steps when ctx ends. It says how many steps were done
// or skipped.
func Execute(ctx context.Context, p Plan, log Log) (done int, err error) {
	for i, s := range p {
		if log.Did != nil && log.Did(s) {
			continue
		}
		if err = context.Cause(ctx); err == nil && log.Before != nil {
			err = log.Before(i, s)
		}
		if err == nil {
			err = s.Do(ctx)
		}
		if err == nil && log.After != nil {
			err = log.After(ctx, s)
		}
		if err != nil {
			return i, err
		}
	}
	return len(p), nil
}
