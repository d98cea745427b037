package read

import (
	"slices"
	"strings"
	"time"
)

// OldTransaction is one that has been open for long, whose it is, and what it holds.
type OldTransaction struct {
	Session  Blocker // its Open is the age in seconds
	Modified float64 // rows, whose old versions stay in the undo log
	Locked   float64 // rows, about
}

// mostTransactions is how many of the oldest transactions are told.
const mostTransactions = 5

// Old tells the oldest transactions of clients that have been open for a time, the oldest first, as they were read last.
func (r *Reader) Old(age time.Duration) (list []OldTransaction) {
	for _, t := range r.open.last {
		if t.Seconds < age.Seconds() || t.Session <= 0 || len(list) == mostTransactions {
			continue
		}
		b := t.Idle
		if b == nil {
			i := slices.IndexFunc(r.waits.sessions, func(s Session) bool { return s.ID == t.Session })
			if i < 0 {
				continue // it has ended, or is not described yet
			}
			s := &r.waits.sessions[i]
			b = &Blocker{ID: s.ID, User: s.User, Host: s.Host, Command: "Query", State: s.State, Seconds: s.Seconds, Statement: s.Text}
		}
		if b.Command == "" || b.User == systemUser || strings.HasPrefix(b.Command, "Slave") { // it has no client, or is an applier
			continue
		}
		x := OldTransaction{Session: *b, Modified: float64(t.RowsModified), Locked: float64(t.RowsLocked)}
		x.Session.Open = t.Seconds
		list = append(list, x)
	}
	return list
}
