//go:build !linux

package mirror

import "os"

// dataSync puts a file on disk.
func dataSync(f *os.File) error { return f.Sync() }
