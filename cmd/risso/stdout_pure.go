//go:build !cgo

package main

// outputClosed is not known without C: Go's runtime has opened /dev/null in the place of a standard output that was closed, and others start programs with
// the same /dev/null on purpose.
func outputClosed() bool { return false }
