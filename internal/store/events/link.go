//go:build cgo && linux

package events

// Go links so that every symbol of C and C++ is there for libraries loaded later. Risso loads none, and the 59,000 of DuckDB are
// 7 MB of the binary and 3 ms of each start.

// #cgo LDFLAGS: -Wl,--no-export-dynamic
import "C"
