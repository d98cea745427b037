package doctor

import "github.com/rissodb/risso/internal/mysql"

// GrantsAnswer is the privileges that an account needs.
type GrantsAnswer struct {
	Server     string      `json:"server"` // its version
	Account    string      `json:"account"`
	Jobs       []mysql.Job `json:"jobs"`
	Statements []string    `json:"statements"` // GRANTs, without semicolons
}

// DoctorAnswer is what the doctor found.
type DoctorAnswer struct {
	Bad      int       `json:"bad"` // how many findings are bad; if any, the exit code is 1
	Findings []Finding `json:"findings"`
}
