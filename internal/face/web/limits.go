package web

import (
	"cmp"
	"time"
)

// Limits bound what questions may cost Risso, so that watching goes first. A field that is zero has its default.
type Limits struct {
	Samples     int           // that one PromQL question may hold at once; default 3,000,000
	Series      int           // that one PromQL question may touch; default 50,000
	Answer      int64         // bytes of one answer, before it is packed; default 64,000,000
	Memory      int64         // bytes that all questions together may take, garbage included; default 200,000,000
	Time        time.Duration // of working on one question; default 30 s
	Write       time.Duration // of sending one answer; default 30 s
	Body        time.Duration // of receiving the body of a request; default 30 s
	AtOnce      int           // questions of one kind (charts, PromQL, statements) at once; default 2
	Wait        time.Duration // for a place among them, before a question is refused with 503; default 5 s
	Connections int           // that are open at once; default 512
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	return Limits{Samples: cmp.Or(l.Samples, 3_000_000), Series: cmp.Or(l.Series, 50_000), Answer: cmp.Or(l.Answer, 64_000_000), Memory: cmp.Or(l.Memory, 200_000_000),
		Time: cmp.Or(l.Time, 30*time.Second), Write: cmp.Or(l.Write, 30*time.Second), Body: cmp.Or(l.Body, 30*time.Second),
		AtOnce: cmp.Or(l.AtOnce, 2), Wait: cmp.Or(l.Wait, 5*time.Second), Connections: cmp.Or(l.Connections, 512)}
}

// What needs no setting.
const (
	headerTime  = 10 * time.Second // of receiving the header of a request
	idleTime    = 2 * time.Minute  // of a connection between two requests
	headerBytes = 64 << 10         // of the line and the fields of a request: a chart of 500 series
	formBytes   = 256 << 10        // of a form with a PromQL question
	smallBody   = 4 << 10          // of a body that holds a token or nothing
	quickAtOnce = 8                // questions about the present, which cost next to nothing
	mostWaiting = 100              // questions of a kind in the queue: one more is refused at once
)
