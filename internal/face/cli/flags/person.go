package flags

import (
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/store/state"
)

// Person is who gives a command. Whoever runs commands over the data folder may do everything; what they do says who they were. call is the command, as in
// "risso token create".
func Person(call string) state.Actor {
	return state.Actor{Name: home.Person(), Role: state.RoleAdmin, Via: "shell", Call: call}
}
