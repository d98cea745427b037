// Package channels says in words what is wrong with a channel of replication: why it stopped and how it goes on, how late is late, and when
// it will be level. It does no input or output.
package channels

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// The delays at which a replica is spoken of, in seconds beyond the configured delay.
const (
	Late     = 30
	VeryLate = 600
)

// Failure says at what a channel stopped: the error's number, the transaction, the table and key, the server's words.
func Failure(e fleet.ReplicaError) string {
	text := ": "
	if words := e.Words(); words != "" {
		text += words + ": "
	}
	return text + oneline.Cut(strings.TrimRight(oneline.Of(e.Text), "."), 400)
}

// MoreAppliers is how a replica that applies with one thread applies with several; "" if it has several, or that is not known.
func MoreAppliers(server mysql.Server, setting func(name string) string) string {
	const workers = 4
	for _, v := range server.Appliers() {
		n, err := strconv.ParseInt(setting(v.Variable), 10, 64)
		switch {
		case err != nil:
			continue
		case n <= 1:
			kind := ""
			if setting("slave_parallel_type") == "DATABASE" { // the default before MySQL 8.0.27: only transactions of different schemas at once
				kind = "; SET GLOBAL slave_parallel_type = 'LOGICAL_CLOCK'"
			}
			return fmt.Sprintf("STOP %s SQL_THREAD; SET GLOBAL %s = %d%s; START %s SQL_THREAD", v.Word, v.Variable, workers, kind, v.Word)
		}
		return ""
	}
	return ""
}

// Way is where a delay goes.
type Way string

// The ways.
const (
	Unsettled  Way = "" // it neither grows nor shrinks so much that it could be told
	CatchesUp  Way = "catches up"
	FallsBack  Way = "falls behind"
	StandsFast Way = "stands" // nothing of the backlog was worked off
)

// Course is where a delay goes, and how long until it is over.
type Course struct {
	Way   Way     `json:"way,omitempty"`
	Level float64 `json:"level_seconds,omitempty"` // that it still takes, if it catches up
}

// noise is how much of a rate is no trend.
const noise = 0.05

// CourseOf is the course of a backlog that changes by gain each second, where rate is what one second brings: 1 for a backlog in seconds.
func CourseOf(backlog, gain, rate float64) Course {
	switch {
	case gain < -noise*rate:
		return Course{CatchesUp, backlog / -gain}
	case gain > noise*rate:
		return Course{Way: FallsBack}
	}
	return Course{}
}

// String is the course in words.
func (c Course) String() string {
	switch c.Way {
	case CatchesUp:
		return "it catches up in about " + digits.Age(c.Level)
	case FallsBack:
		return "it is still falling behind"
	case StandsFast:
		return "it works nothing off"
	}
	return "it neither catches up nor falls further behind"
}
