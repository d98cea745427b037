package sandboxtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
)

// lowestPort is where free ports are looked for, up to those that the kernel gives to outgoing connections.
const lowestPort = 10000

// FreeAddress is an address of this machine where nobody listens, for a program that has to be told where: no outgoing connection takes its port meanwhile, as one does of
// a port of the kernel's choice where tests of several packages run beside.
func FreeAddress(t testing.TB) string {
	t.Helper()
	low := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(b), &low)
	}
	for range 64 {
		port := 0 // the kernel's choice, where it leaves no others
		if low > lowestPort+1000 {
			port = lowestPort + rand.IntN(low-lowestPort)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}
