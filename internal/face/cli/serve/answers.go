package serve

import (
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// ConfigAnswer is what stands in a config file that is right.
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

// TokensAnswer is who has a token.
type TokensAnswer struct {
	Tokens []tokenAnswer `json:"tokens"`
}

// tokenAnswer is a token; its secret is told once, when it is made.
type tokenAnswer struct {
	Name     string     `json:"name"`
	ID       string     `json:"id"`
	Role     state.Role `json:"role"` // look or act
	Created  time.Time  `json:"created"`
	LastUsed *time.Time `json:"last_used"` // null: never
}

// MadeToken is a token that was just made.
type MadeToken struct {
	Name  string     `json:"name"`
	ID    string     `json:"id"`
	Role  state.Role `json:"role"`  // look or act
	Token string     `json:"token"` // the secret: it is stored nowhere
}

// RevokedAnswer is whose token does not count any more.
type RevokedAnswer struct {
	Revoked []string `json:"revoked"` // the names
}
