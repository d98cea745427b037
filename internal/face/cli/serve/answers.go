package serve

import (
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// ConfigAnswer is what a valid config file contains.
type ConfigAnswer struct {
	File    string             `json:"file"`
	Servers []configuredServer `json:"servers"`
	Notes   []string           `json:"notes,omitempty"` // what would not work on this machine
}

// configuredServer is a server of the config file.
type configuredServer struct {
	Name      string `json:"name"`
	Address   string `json:"address"`
	Protected bool   `json:"protected"` // it has a protect block
}

// TokensAnswer lists the tokens.
type TokensAnswer struct {
	Tokens []tokenAnswer `json:"tokens"`
}

// tokenAnswer is a token; its secret is shown only once, when it is created.
type tokenAnswer struct {
	Name     string     `json:"name"`
	ID       string     `json:"id"`
	Role     state.Role `json:"role"` // look, change, failover or admin
	Only     []string   `json:"only"` // what it may change; none: everything that the role allows
	User     string     `json:"user"` // whose it is; empty: a program's
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires"`   // null: never
	Expired  bool       `json:"expired"`   // it has ended
	LastUsed *time.Time `json:"last_used"` // null: never
}

// MadeToken is a token just created.
type MadeToken struct {
	Name    string     `json:"name"`
	ID      string     `json:"id"`
	Role    state.Role `json:"role"`    // look, change, failover or admin
	Only    []string   `json:"only"`    // what it may change; none: everything that the role allows
	User    string     `json:"user"`    // whose it is; empty: a program's
	Expires *time.Time `json:"expires"` // null: never
	Token   string     `json:"token"`   // the secret, which is not stored
}

// UsersAnswer lists the users.
type UsersAnswer struct {
	Users []userAnswer `json:"users"`
}

// userAnswer is a user.
type userAnswer struct {
	Name     string     `json:"name"`
	Role     state.Role `json:"role"` // look, change, failover or admin
	Only     []string   `json:"only"` // what he may change; none: everything that the role allows
	Created  time.Time  `json:"created"`
	Changed  time.Time  `json:"changed"`  // the password
	Seen     *time.Time `json:"seen"`     // when he last signed in; null: never
	Tokens   int        `json:"tokens"`   // that have not expired
	Sessions int        `json:"sessions"` // that have not ended
}

// ChangedUser is what was done with a user.
type ChangedUser struct {
	User string `json:"user"`
	Done string `json:"done"` // a sentence
}

// ActionsAnswer lists who did what, by time.
type ActionsAnswer struct {
	Actions []state.Action `json:"actions"`
}

// RevokedAnswer lists the revoked tokens.
type RevokedAnswer struct {
	Revoked []string `json:"revoked"` // the names
}
