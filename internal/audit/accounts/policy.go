package accounts

// Policy is the rules that accounts have to keep. A rule that is 0 demands nothing.
type Policy struct {
	Name      string   `yaml:"name" json:"name"`
	MaxAge    int      `yaml:"max_age_days" json:"max_age_days"` // days after which a password has to be changed
	Attempts  int      `yaml:"max_attempts" json:"max_attempts"` // wrong passwords in a row before the account is locked
	Unused    int      `yaml:"unused_days" json:"unused_days"`   // days after which an account that nobody uses has to go
	Passwords []string `yaml:"-" json:"-"`                       // to try; nil: the built-in list
}

// PCI is the built-in policy: PCI-DSS v4, requirements 8.2.6 (accounts unused for 90 days), 8.3.4 (at most 10 attempts) and 8.3.9 (passwords
// change every 90 days).
func PCI() Policy { return Policy{Name: "PCI-DSS v4", MaxAge: 90, Attempts: 10, Unused: 90} }

// why says which policy demands something.
func (p Policy) why(rule string) string { return p.Name + ": " + rule }
