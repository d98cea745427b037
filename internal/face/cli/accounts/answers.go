package accounts

import (
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/fleet"
)

// Answer is a report about the accounts of one or several servers.
type Answer struct {
	Made     time.Time       `json:"made"`   // when it was made
	Policy   accounts.Policy `json:"policy"` // the rules that were applied
	Servers  []Server        `json:"servers"`
	Findings []fleet.Advice  `json:"findings"` // the worst first
}

// Server is a server whose accounts were looked at.
type Server struct {
	Name     string          `json:"name"`
	Version  string          `json:"version,omitempty"`
	Accounts []Account       `json:"accounts"`
	Tried    int             `json:"tried"`             // accounts whose passwords were tried
	Unknown  []fleet.Trouble `json:"unknown,omitempty"` // what could not be read or tried, so that nothing is known of it
	Error    string          `json:"error,omitempty"`   // why nothing is known of it
}

// Account is one account, without anything of its password.
type Account struct {
	Name     string    `json:"name"`             // user@host
	Role     bool      `json:"role"`             // it is a role, by which nobody logs in
	Plugins  []string  `json:"plugins"`          // by which one logs in
	Locked   bool      `json:"locked"`           // nobody can log in by it
	Expired  bool      `json:"expired"`          // its password has to be changed first
	Changed  time.Time `json:"changed,omitzero"` // when its password was set; zero: unknown
	Used     string    `json:"used"`             // since the server was started: yes, no or unknown
	Findings []string  `json:"findings"`         // their IDs
}
