//go:build !cgo

package events

import "context"

// OpenEmbedded returns ErrNotBuilt: DuckDB is a library in C++, and this program was built without cgo.
func OpenEmbedded(context.Context, string) (Store, error) { return nil, ErrNotBuilt }

// Embedded says whether this build has the embedded store.
const Embedded = false
