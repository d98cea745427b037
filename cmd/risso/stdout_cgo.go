//go:build cgo

package main

/*
#include <fcntl.h>

static int closed;

// Before Go's runtime begins, which opens /dev/null in the place of a standard output that was closed, so that all writing succeeds.
__attribute__((constructor)) static void look(void) { closed = fcntl(1, F_GETFD) == -1; }

static int stdout_closed(void) { return closed; }
*/
import "C"

// outputClosed reports whether the program was started with its standard output closed, as by >&- of a shell.
func outputClosed() bool { return C.stdout_closed() != 0 }
