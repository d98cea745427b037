//go:build !linux

package mirror

import "os"

// dataSync puts a file on disk.
func dataSync(f *os.File) error { return f.Sync() }

// dropCached does nothing here.
func dropCached(_ *os.File, _, to int64) int64 { return to }
