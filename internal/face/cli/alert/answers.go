package alert

import (
	"time"

	"github.com/rissodb/risso/internal/watch/alert"
)

// ListAnswer is what is pending and what fires, who is told, and what is silenced.
type ListAnswer struct {
	Alerts    []alert.Standing `json:"alerts"`    // what fires, then what is pending, the worst first
	Silences  []alert.Silence  `json:"silences"`  // that are not over
	Receivers []Receiver       `json:"receivers"` // in the order of the config file
}

// Receiver is how things are with one receiver.
type Receiver struct {
	Name     string    `json:"name"`
	Waiting  int       `json:"waiting"`           // messages that it has not got; at most 1,000 are counted
	Failing  string    `json:"failing,omitempty"` // why it takes no messages at present
	Messages []Message `json:"messages"`          // the newest
}

// Message is a message to a receiver.
type Message struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`              // the message in one line
	Made      time.Time `json:"made"`               // when it was to be sent
	Tries     int       `json:"tries"`              // that failed or succeeded
	Delivered time.Time `json:"delivered,omitzero"` // not there: it is not
	Dropped   time.Time `json:"dropped,omitzero"`   // when it was given up
	Error     string    `json:"error,omitempty"`    // of the last try
}

// HistoryAnswer lists the alerts that rang, the newest first.
type HistoryAnswer struct {
	Alerts []alert.Standing `json:"alerts"`
}

// AckAnswer says which alert was acknowledged.
type AckAnswer struct {
	Acknowledged string `json:"acknowledged"` // its key
}

// SilencedAnswer is a silence that was made.
type SilencedAnswer struct {
	alert.Silence
	Servers []string `json:"servers"` // that it is about, of those that are watched now
}

// EndedAnswer says which silence was ended.
type EndedAnswer struct {
	Ended int64 `json:"ended"` // its number
}

// TestedAnswer says which receiver took a test.
type TestedAnswer struct {
	Delivered string `json:"delivered"` // its name
}

// CheckedAnswer lists rule files that are right.
type CheckedAnswer struct {
	Files []CheckedFile `json:"files"`
}

// CheckedFile is a rule file, and how many rules are in it.
type CheckedFile struct {
	File      string `json:"file"`
	Groups    int    `json:"groups"`    // how many there are
	Alerting  int    `json:"alerting"`  // rules that alert
	Recording int    `json:"recording"` // rules that record
}
