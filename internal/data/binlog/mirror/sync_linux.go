package mirror

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// dropCached takes what is on disk out of the system's cache, and returns where it ended. A mirror only writes: the memory belongs to
// others, such as a server on the same machine, and pages that are used again and again cost a third of the processor time of
// new ones.
func dropCached(f *os.File, from, to int64) int64 {
	to &^= int64(os.Getpagesize() - 1)                               // the last page is written to again
	_ = unix.Fadvise(int(f.Fd()), from, to-from, unix.FADV_DONTNEED) // an advice
	return to
}
