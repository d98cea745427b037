package mirror

import (
	"os"
	"syscall"
)

// dataSync puts a file's bytes and its length on disk, and no times.
func dataSync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return err
		}
	}
}
