package splice

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of these calls the scheduler does not know: they wait for some milliseconds at most.

func read(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func write(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

// epollWait waits some milliseconds at most.
func epollWait(fd int, events []unix.EpollEvent, patience int) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(patience), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}
