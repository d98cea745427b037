package serve

import (
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// ConfigAnswer is what a valid config file contains.
type ConfigAnswer struct {
	File    string             `json:"file"`
	Servers []configuredServer `json:"servers"`
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
	Role     state.Role `json:"role"` // look or act
	Created  time.Time  `json:"created"`
	LastUsed *time.Time `json:"last_used"` // null: never
}

// MadeToken is a token just created.
type MadeToken struct {
	Name  string     `json:"name"`
	ID    string     `json:"id"`
	Role  state.Role `json:"role"`  // look or act
	Token string     `json:"token"` // the secret, which is not stored
}

// RevokedAnswer lists the revoked tokens.
type RevokedAnswer struct {
	Revoked []string `json:"revoked"` // the names
}
