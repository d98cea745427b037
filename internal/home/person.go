package home

import (
	"cmp"
	"os"
	"os/user"
	"strings"
)

// nobody is the kernel's word for a login that there was not.
const nobody = "4294967295"

// Person is who is at the keyboard, and where: "root on db1", or "ann as root on db1" of an account that another one became. The kernel keeps who logged in,
// over sudo and su; where it does not, as in many containers, what sudo says counts.
func Person() string {
	was := ""
	if b, err := os.ReadFile("/proc/self/loginuid"); err == nil {
		if id := strings.TrimSpace(string(b)); id != "" && id != nobody {
			if u, err := user.LookupId(id); err == nil {
				was = u.Username
			}
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return personName(AccountName(os.Getuid()), cmp.Or(was, os.Getenv("SUDO_USER")), host)
}

// personName is one line, whatever its parts are.
func personName(account, was, host string) string {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r <= ' ' || r == 0x7f {
				return '_'
			}
			return r
		}, s)
	}
	name := clean(account)
	if was != "" && was != account {
		name = clean(was) + " as " + name
	}
	return name + " on " + clean(host)
}
