// Package differ says in words how two servers differ, the worst first, and why each difference matters. Descriptions in, differences out:
// no IO. Package describe reads a description from a server or a file; package upgrade answers what a newer version would break.
package differ

import (
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/define/alike"
)

// Format is the version of the form in which descriptions are saved.
const Format = 1

// The parts of a description. One that could not be read is in Unread, and is never reported as the same.
const (
	AreaServer    = "server"
	AreaVariables = "variables"
	AreaPlugins   = "plug-ins"
	AreaEngines   = "engines"
	AreaCharsets  = "collations"
	AreaZones     = "time zones"
	AreaAccounts  = "accounts"
	AreaSchemas   = "schemas"
)

// Description is what a server was at one moment, as far as the account that asked may see. It holds no secret: neither passwords nor
// their hashes.
type Description struct {
	Format int       `json:"format"`
	Name   string    `json:"name"` // how the user calls it
	Taken  time.Time `json:"taken"`

	Server fleet.Server      `json:"server"`
	Build  map[string]string `json:"build,omitempty"` // version_comment, version_compile_os …

	Variables map[string]string `json:"variables,omitempty"` // all global ones that do not change by themselves, by name in small letters; secret ones hidden
	// Changed are those that do not have their compiled-in value, each with how it got its value in the server's words; nil: the
	// server does not tell which these are.
	Changed map[string]string `json:"changed,omitempty"`

	Plugins    map[string]string `json:"plugins,omitempty"` // name → type, state and version; components too
	Engines    map[string]string `json:"engines,omitempty"` // name → YES, NO, DEFAULT, DISABLED
	Collations alike.Collations  `json:"collations,omitempty"`
	Zones      string            `json:"zones,omitempty"` // "loaded" or "empty": the tables of named time zones

	Accounts map[string]Account `json:"accounts,omitempty"` // by user@host
	// Schemas are those of users, by name.
	Schemas map[string]Schema `json:"schemas,omitempty"`

	Unread []Unread `json:"unread,omitempty"`
}

// Unread is a part that could not be read, or not all of it, and why.
type Unread struct {
	Area string `json:"area"`
	fleet.Trouble
	Part bool `json:"part,omitempty"` // only some of it is missing: what was read is compared
}

// Account is an account without its secret.
type Account struct {
	Plugins []string `json:"plugins,omitempty"` // ways to log in; none: a role
	Options string   `json:"options,omitempty"` // limits, expiry, lock, TLS
	Grants  []string `json:"grants,omitempty"`

	// Secret is the hash as the server shows it. It is compared and neither shown nor saved; "" is one that is not known.
	Secret string `json:"-"`
}

// Schema is what a schema holds.
type Schema struct {
	Create  string            `json:"create"`
	Tables  map[string]string `json:"tables,omitempty"`  // name → CREATE TABLE
	Objects map[string]Object `json:"objects,omitempty"` // kind and name, such as "view v" → its definition
	Faults  map[string]string `json:"faults,omitempty"`  // what the server could not open, and why
}

// Object is a definition other than a table's.
type Object = define.Definition

// missing says why an area was not read as a whole; nil: it was, or some of it.
func (d *Description) missing(area string) *Unread {
	for i, u := range d.Unread {
		if u.Area == area && !u.Part {
			return &d.Unread[i]
		}
	}
	return nil
}
