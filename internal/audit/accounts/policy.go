package accounts

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Policy is what accounts are held against. Numbers of 0 switch a rule off.
type Policy struct {
	Name string `yaml:"name" json:"name"` // of the policy
	// PasswordDays is how old a password may be.
	PasswordDays int `yaml:"password_days" json:"password_days"`
	// PasswordLength is how long a new password has to be, in characters.
	PasswordLength int `yaml:"password_length" json:"password_length"`
	// LockAfter is after how many wrong passwords in a row an account has to be locked.
	LockAfter int `yaml:"lock_after" json:"lock_after"`
	// InactiveDays is for how long an account may be unused.
	InactiveDays int `yaml:"inactive_days" json:"inactive_days"`
	// RequireTLS: accounts of other machines have to use TLS.
	RequireTLS bool `yaml:"require_tls" json:"require_tls"`
	// FirstUse: a password that somebody else has set has to be changed at its first use.
	FirstUse bool `yaml:"first_use" json:"first_use"`
	// OldPlugins are plug-ins that may not be used any more.
	OldPlugins []string `yaml:"old_plugins" json:"old_plugins"`
	// Exempt are accounts of which rules do not hold: user@host, each with the rules and the reason.
	Exempt []Exemption `yaml:"exempt" json:"exempt"`
}

// Exemption says why rules do not hold of an account.
type Exemption struct {
	Account string   `yaml:"account" json:"account"` // user@host
	Rules   []string `yaml:"rules" json:"rules"`     // IDs of rules
	Because string   `yaml:"reason" json:"reason"`   // why it is exempt
}

//go:embed policy.yaml
var builtIn []byte

// BuiltIn is the text of the policy that holds if no other is given.
func BuiltIn() string { return string(builtIn) }

// Default is that policy.
func Default() (Policy, error) { return ReadPolicy(builtIn) }

// ReadPolicy reads a policy; keys and rules that are not known are refused.
func ReadPolicy(text []byte) (Policy, error) {
	var p Policy
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return p, fmt.Errorf("read the policy: %s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "in type accounts.Policy", "in a policy"))
	}
	if p.Name == "" {
		return p, errors.New("read the policy: it has no name")
	}
	if min(p.PasswordDays, p.PasswordLength, p.LockAfter, p.InactiveDays) < 0 {
		return p, errors.New("read the policy: a number is below 0")
	}
	for _, e := range p.Exempt {
		if e.Account == "" || e.Because == "" || len(e.Rules) == 0 {
			return p, errors.New("read the policy: an exemption needs account, rules and reason")
		}
		for _, r := range e.Rules {
			if !slices.ContainsFunc(rules, func(k rule) bool { return k.id == r }) {
				return p, fmt.Errorf("read the policy: there is no rule %q", r)
			}
		}
	}
	return p, nil
}

// exempt is the reason why a rule does not hold of an account; "" if it does.
func (p Policy) exempt(a *Account, id string) string {
	for _, e := range p.Exempt {
		if e.Account == a.Object() && slices.Contains(e.Rules, id) {
			return e.Because
		}
	}
	return ""
}
