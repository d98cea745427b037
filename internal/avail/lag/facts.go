// Package lag says why a replica is late, how late it really is, and when it will be level: facts of two moments and of some looks in between
// go in, causes come out, worst first, each with what speaks for it and what to do. It does no input or output.
package lag

import (
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Facts are what was learned of one channel of a replica. Numbers that are not known are -1.
type Facts struct {
	Server        mysql.Server
	Before, After read.ReplicaMoment
	Span          float64 // seconds between the two
	Looks         []Look
	Source        *Source // nil: it was not asked
	NotAsked      string  // why not
	Stuck         Stuck
	Settings      map[string]string // of the replica
	Gaps          []fleet.Trouble   // what the servers did not show
}

// Look is what was seen of the channel at one moment in between.
type Look struct {
	Appliers []read.Applier
	Locks    []read.LockWait // all waits of the server, if an applier was in one
}

// Source is how the channel stood against its source.
type Source struct {
	Missing                      int64   // transactions of the source that were not applied here, at the second moment
	Unapplied, UnappliedBefore   int64   // bytes of the source's log that were not applied
	Unreceived, UnreceivedBefore int64   // and those not even received
	Written                      int64   // bytes that the source wrote between the moments
	FirstAge                     float64 // seconds since the first transaction that is not applied was committed, by the source's clock
	FirstRows                    int64   // that this transaction changes
	FirstUnseen                  string  // why it could not be read
	Level                        bool    // all that the source had was applied here
	Silent                       bool    // it had more to send at the first moment, and nothing of that came
}

// Stuck is the transaction at which the applier is at the second moment.
type Stuck struct {
	Same      bool // it was at the same one at the first moment
	Tables    []Table
	Statement string
}

// Table is one that the transaction changes.
type Table struct {
	Name string // schema.table
	Keys read.TableKeys
}

// appliers are the threads of a look that apply: workers, where there are any, and not the coordinator, which hands out.
func (l Look) appliers() (list []read.Applier) {
	role := read.ApplierCoordinates
	for _, a := range l.Appliers {
		if a.Role == read.ApplierWorks {
			role = a.Role
		}
	}
	for _, a := range l.Appliers {
		if a.Role == role {
			list = append(list, a)
		}
	}
	return list
}

// share is in which part of the looks something was seen.
func (f *Facts) share(seen func(Look) bool) float64 {
	n := 0
	for _, l := range f.Looks {
		if seen(l) {
			n++
		}
	}
	if len(f.Looks) == 0 {
		return 0
	}
	return float64(n) / float64(len(f.Looks))
}

// doing is in which part of the looks an applier, or the receiver, was found doing something.
func (f *Facts) doing(what ...read.ApplierDoing) float64 {
	return f.share(func(l Look) bool {
		for _, a := range l.Appliers {
			for _, w := range what {
				if a.Doing == w {
					return true
				}
			}
		}
		return false
	})
}

// busy is the mean number of threads that apply, and how many there are.
func (f *Facts) busy() (mean float64, threads int) {
	for _, l := range f.Looks {
		list := l.appliers()
		for _, a := range list {
			if active(a.Doing) {
				mean++
			}
		}
		threads = max(threads, len(list), 1)
	}
	if len(f.Looks) > 0 {
		mean /= float64(len(f.Looks))
	}
	return mean, threads
}

// active reports whether a thread has something to apply.
func active(doing read.ApplierDoing) bool {
	switch doing {
	case read.ApplierBusy, read.ApplierCommits, read.ApplierInOrder, read.ApplierLocked, read.ApplierSemiSync:
		return true
	}
	return false
}

func (f *Facts) setting(name string) string { return f.Settings[name] }
