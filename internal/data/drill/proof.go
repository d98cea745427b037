package drill

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/store/state"
)

// ProofFormat is the version of Proof's form.
const ProofFormat = 1

// Proof is what a drill found: that a backup can be restored, how long it takes, and what is wrong with it.
type Proof struct {
	Format int       `json:"format"`
	Backup string    `json:"backup"`
	Kind   string    `json:"kind"`   // logical or physical
	Server string    `json:"server"` // the server that was backed up, by its usual name
	Taken  time.Time `json:"taken"`  // the time of the backup's snapshot
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`

	Passed   bool     `json:"passed"`
	Failures []string `json:"failures"` // why it did not pass; empty if it did
	Notes    []string `json:"notes"`    // what a person should know

	LeftOut []string `json:"left_out,omitempty"` // tables whose rows are not in the backup because its tool cannot copy them, with their engines; tables that cannot be read are marked

	Host string `json:"host"` // the host of the drill
	On   string `json:"on"`   // the server it was restored into: mariadb 10.11.19
	Of   string `json:"of"`   // the server it was taken from

	Stages   []Stage `json:"stages"`
	Recovery float64 `json:"recovery"` // recovery time: seconds from the beginning until a server with all data answered
	Bytes    int64   `json:"bytes"`    // bytes restored, before compression

	Rolled  *Rolled  `json:"rolled,omitempty"`  // nil: not rolled forward
	Compare Compare  `json:"compare"`           // comparison with the manifest
	Counted *Counted `json:"counted,omitempty"` // for a physical backup, whose manifest does not count rows; nil: not counted
	Check   Checked  `json:"check_table"`
	Queries []Query  `json:"queries"`

	Doubt string `json:"-"` // why it counts for nothing, as Proofs read it; "": it counts

	sealed bool // only what was signed is known: whether it passed
}

// Stage is one part of the work and how long it took.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Check   bool    `json:"check,omitempty"` // it is a check, and not part of the recovery
}

// Compare is the comparison of the restored rows with the manifest.
type Compare struct {
	Tables    int64    `json:"tables"` // 0: the backup has no checksums, like all physical ones
	Rows      int64    `json:"rows"`
	Different []string `json:"different"`
}

// Counted is the number of rows in a physical backup, before it is rolled forward.
type Counted struct {
	Tables    int64            `json:"tables"`
	Rows      int64            `json:"rows"`
	Each      map[string]int64 `json:"each,omitempty"`  // rows by table, names quoted; empty if there are very many tables
	Since     *time.Time       `json:"since,omitempty"` // the earlier drill of this backup that the rows were compared with; nil: this is the first
	Different []string         `json:"different"`       // tables with a different number of rows than then, or that could not be counted
}

// Checked is what CHECK TABLE said.
type Checked struct {
	Tables   int64    `json:"tables"`
	Problems []string `json:"problems"`
}

// Query is one of the user's own queries and its result.
type Query struct {
	SQL    string `json:"sql"`
	Expect string `json:"expect"`
	Got    string `json:"got"`
	Passed bool   `json:"passed"`
}

// fail notes a reason why the backup is not proven.
func (p *Proof) fail(format string, args ...any) {
	p.Failures = append(p.Failures, fmt.Sprintf(format, args...))
}

// Reached is the moment that the data was rolled forward to; the zero time if it was not.
func (p *Proof) Reached() time.Time {
	if p.Rolled == nil {
		return time.Time{}
	}
	return p.Rolled.Time
}

// Summary is one sentence.
func (p *Proof) Summary() string {
	if !p.Passed {
		return fmt.Sprintf("backup %s is not proven: %s", p.Backup, strings.Join(p.Failures, "; "))
	}
	if p.sealed {
		return fmt.Sprintf("backup %s is proven, according to a trusted signature; how long that took and what was found cannot be read without an identity", p.Backup)
	}
	s := fmt.Sprintf("backup %s is proven: restored in %s", p.Backup, digits.Seconds(p.Recovery))
	if p.Rolled != nil {
		s += ", rolled forward by " + digits.Counted(p.Rolled.Transactions, "transaction")
	}
	if p.Compare.Tables > 0 {
		s += fmt.Sprintf(", %s with %s %s as they were", digits.Counted(p.Compare.Tables, "table"), digits.Counted(p.Compare.Rows, "row"), are(p.Compare.Tables))
	}
	if c := p.Counted; c != nil {
		s += fmt.Sprintf(", %s with %s", digits.Counted(c.Tables, "table"), digits.Counted(c.Rows, "row"))
		if c.Since != nil {
			s += " as in the drill of " + c.Since.Format("2006-01-02")
		}
	}
	if p.Check.Tables > 0 {
		s += fmt.Sprintf(", CHECK TABLE found %s whole", digits.Counted(p.Check.Tables, "table"))
	}
	if n := len(p.Queries); n > 0 {
		s += ", " + digits.Plural(n, "answer is", "answers are") + " as expected"
	}
	if n := len(p.LeftOut); n > 0 {
		s += fmt.Sprintf("; BUT the rows of %s not in it, so these are empty or unreadable in the copy: %s", digits.Plural(n, "table are", "tables are"), strings.Join(p.LeftOut[:min(n, 5)], ", "))
	}
	return s
}

func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Fact is the proof as the store of facts keeps it; place and instance are whose backup it is of.
func (p Proof) Fact(place, instance string) (state.Drill, error) {
	b, err := json.Marshal(p)
	return state.Drill{Place: place, Backup: p.Backup, Instance: instance, Began: p.Began, Ended: p.Ended, Passed: p.Passed, Recovery: p.Recovery, Reached: p.Reached(), Text: p.Summary(), Proof: b}, err
}
