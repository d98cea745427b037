package doctor

import "github.com/rissodb/risso/internal/mysql"

// GrantsAnswer is what an account needs.
type GrantsAnswer struct {
	Server     string      `json:"server"` // its version
	Account    string      `json:"account"`
	Jobs       []mysql.Job `json:"jobs"`
	Statements []string    `json:"statements"` // GRANTs, without semicolons
}

// DoctorAnswer is what stands in the way.
type DoctorAnswer struct {
	Bad      int       `json:"bad"` // how many findings are bad; the exit code is 1 then
	Findings []Finding `json:"findings"`
}
