package drive

import "sync/atomic"

// Stop tells all sessions of a run to give up what they wait for.
type Stop struct{ set atomic.Bool }

// Set ends every wait, also those to come.
func (s *Stop) Set() { s.set.Store(true) }

// IsSet reports whether Set was called.
func (s *Stop) IsSet() bool { return s.set.Load() }
