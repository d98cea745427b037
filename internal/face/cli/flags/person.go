package flags

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/store/state"
)

// Person is who gives a command: the account that it runs as, who became that account where that is known, and on which host. Whoever runs commands over the
// data folder may do everything; what they do says who they were. call is the command, as in "risso token create".
func Person(call string) state.Actor {
	me := "user " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		me = u.Username
	}
	// The kernel keeps who logged in, over sudo and su; without it sudo's word is all there is.
	was := ""
	if b, err := os.ReadFile("/proc/self/loginuid"); err == nil {
		if id := strings.TrimSpace(string(b)); id != "4294967295" {
			if u, err := user.LookupId(id); err == nil {
				was = u.Username
			}
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return state.Actor{Name: personName(me, cmp.Or(was, os.Getenv("SUDO_USER")), host), Role: state.RoleAdmin, Via: "shell", Call: call}
}

// personName is how events call somebody: "ann as root on db1".
func personName(me, was, host string) string {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r <= ' ' || r == 0x7f {
				return '_'
			}
			return r
		}, s)
	}
	name := clean(me)
	if was != "" && was != me {
		name = clean(was) + " as " + name
	}
	return name + " on " + clean(host)
}
