package errant

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Method is how a replica gets rid of errant transactions.
type Method string

// Methods.
const (
	MethodNone    Method = "nothing"            // there is none to get rid of
	MethodEmpty   Method = "empty transactions" // the primary, and so all replicas, get them as empty ones
	MethodForget  Method = "forget"             // the replica forgets that it had them
	MethodBelow   Method = "its replicas first" // those that replicate from it have them, too, and are repaired before it
	MethodRebuild Method = "rebuild"            // only another copy of the primary helps
)

// planVersion is that of Plan's form.
const planVersion = 1

// mostEmpty is how many empty transactions one repair makes.
const mostEmpty = 10_000

// Pin is which server a plan is for.
type Pin struct {
	Name     string `json:"name"`
	Identity string `json:"identity"` // server_uuid; MariaDB: domain, server_id, and where it runs
}

// Step is what is done on one server.
type Step struct {
	Server    string   `json:"server"`
	Statement []string `json:"statements"` // none: both servers are read again
	Because   string   `json:"why,omitempty"`
	Back      string   `json:"back"` // how to go back after it
	gtid      mysql.GTID
	replica   bool
	kind      stepKind
}

// stepKind is what a step is for the one who carries it out.
type stepKind int

const (
	stepPlain stepKind = iota
	stepEmpty          // an empty transaction
	stepAgain          // everything is read again before what cannot be undone
	stepReset          // and that is done, with positions as they are then
)

// Plan is what a repair does. Making one changes nothing.
type Plan struct {
	Version int       `json:"version"`
	Made    time.Time `json:"made"` // when
	Replica Pin       `json:"replica"`
	Source  Pin       `json:"source"`
	Errant  string    `json:"errant"`           // the transactions; MariaDB: of each domain and server the last one
	Behind  string    `json:"behind,omitempty"` // MariaDB: behind which transactions of the same origins they come
	Method  Method    `json:"method"`
	Because string    `json:"why"`
	Tables  []string  `json:"tables"` // whose rows they changed
	Before  []string  `json:"before"` // what can be done first, if it is wanted
	Steps   []Step    `json:"steps"`
	After   []string  `json:"after"`          // what remains to be done, by whom the plan is run
	Lost    string    `json:"lost,omitempty"` // what goes for good
	Equal   bool      `json:"rows_equal"`     // the user says that rows were compared and are equal
	errant  mysql.Errant
	threads []Threads // of the replica's channels, which a way that stops them starts again
	rest    string    // what a replica that forgets is to have had
	direct  bool      // the replica replicates from the source itself
}

// Wanted is what the user asks for beyond the two servers.
type Wanted struct {
	RowsEqual bool      // somebody has compared rows and definitions, and they are equal
	Forget    bool      // the replica is to forget also if the primary could have empty transactions
	Replica   string    // as --dsn takes it, for commands that are printed
	Source    string    // likewise
	Between   []Reading // of a replica in a chain: its source, that one's source, and so on, up to one that replicates from the primary
}

// from is what a replica replicates from itself.
func (w *Wanted) from(source *Reading) *Reading {
	if len(w.Between) > 0 {
		return &w.Between[0]
	}
	return source
}

// chained reports whether the replica is below the source.
func (w *Wanted) chained(replica, source *Reading) bool {
	at := replica
	for i := range w.Between {
		if !at.Follows(&w.Between[i]) {
			return false
		}
		at = &w.Between[i]
	}
	return at.Follows(source)
}

// ErrRefused is what every error wraps that says why there is no plan.
var ErrRefused = errors.New("no plan")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// MakePlan plans the repair of a replica by a verdict in which the transactions' changes are known. It is pure.
func MakePlan(v *Verdict, replica, source *Reading, w Wanted, now time.Time) (Plan, error) {
	p := Plan{Version: planVersion, Made: now.UTC().Truncate(time.Second), Replica: Pin{replica.Name, replica.Identity}, Source: Pin{source.Name, source.Identity}, Method: MethodNone, Tables: []string{}, Before: []string{}, Steps: []Step{}, After: []string{}, Equal: w.RowsEqual}
	switch {
	case v.Unknown != "":
		return p, refused("%s", v.Unknown)
	case len(v.Errant()) == 0:
		p.Because = replica.Name + " has no transaction that " + source.Name + " has not"
		return p, nil
	case len(replica.Channels) > 1:
		return p, refused("%s replicates from %d servers: what is errant there is not for one of them to have", replica.Name, len(replica.Channels))
	case !w.chained(replica, source):
		return p, refused("%s does not replicate from %s", replica.Name, source.Name)
	}
	p.errant, p.direct = v.ErrantOf(), len(w.Between) == 0
	p.Errant = p.errant.String()
	var behind []string
	for _, g := range p.errant.State.List() {
		if n, ok := p.errant.Theirs[mysql.Origin{Domain: g.Domain, Server: g.Server}]; ok {
			behind = append(behind, mysql.GTID{Domain: g.Domain, Server: g.Server, Number: n}.String())
		}
	}
	p.Behind = strings.Join(behind, ",")
	for _, part := range v.Errant() {
		if part.Sure != Certain {
			return p, refused("that they are errant is not certain: %s: %s", part.GTIDs, part.Because)
		}
	}
	if lost, _ := p.errant.Split(source.own); !lost.Empty() {
		p.Method, p.Because = MethodRebuild, fmt.Sprintf("only a rebuild helps, because %s committed %s itself and has lost them: it gives their numbers, and those before them, to other transactions, which %s passes over without a sign", source.Name, lost, replica.Name)
		p.After = append(p.After, rebuild(replica, source))
		return p, nil
	}
	if why := p.harm(v); why != "" && !w.RowsEqual {
		p.Method, p.Because = MethodRebuild, why+"; if the rows and definitions of both were compared and are equal (risso checksum, risso diff), say so by --rows-equal"
		p.After = append(p.After, rebuild(replica, source))
		return p, nil
	}
	p.undo(v, replica, w)
	if w.Forget || replica.Server.ByDomain() {
		return p, p.forget(replica, source, w)
	}
	return p, p.empty(replica, source)
}

// rebuild is what makes a replica a copy of its source again.
func rebuild(replica, source *Reading) string {
	return "risso replica rebuild " + fleet.ShellWord(replica.Name) + ", with --dsn of both, makes it a copy of " + source.Name + " again"
}

// harm says why nothing but a rebuild makes a replica equal to its primary again; "" if rows at most differ, which can be mended.
func (p *Plan) harm(v *Verdict) string {
	for _, part := range v.Errant() {
		for _, t := range part.Transactions {
			if len(t.Changes) == 0 && slices.ContainsFunc(t.Statements, commitsPrepared) {
				return fmt.Sprintf("only a rebuild helps for certain, because %s committed what another transaction had prepared (%s), and nobody can say here what that changed", t.GTID, t.Statements[0])
			}
			for _, c := range t.Changes {
				name := c.Table
				if c.Other != "" {
					name = c.Other + " " + name
				}
				switch {
				case c.OfRows():
					if !slices.Contains(p.Tables, c.Table) {
						p.Tables = append(p.Tables, c.Table)
					}
				case c.Kind == "other" && c.Table != "" && tends(t.Statements):
				default:
					what := strings.TrimSpace(c.Kind + " " + name)
					if c.Kind == "other" && len(t.Statements) > 0 {
						what = t.Statements[0]
					}
					return fmt.Sprintf("only a rebuild helps, because %s changed more than rows (%s), and nothing here puts that back", t.GTID, what)
				}
			}
		}
		if part.Unseen != "" {
			return "only a rebuild helps for certain, because nobody can say what all of them changed: " + part.Unseen
		}
	}
	slices.Sort(p.Tables)
	return ""
}

// commitsPrepared reports whether a statement commits an XA transaction.
func commitsPrepared(statement string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.Join(strings.Fields(statement), " ")), "XA COMMIT")
}

// prepared is what a transaction's statements have that was only prepared.
const prepared = "XA PREPARE"

// tends reports whether statements only look after tables, and change neither rows nor definitions nor accounts.
func tends(statements []string) bool {
	return len(statements) > 0 && !slices.ContainsFunc(statements, func(s string) bool {
		return !slices.Contains([]string{"ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "FLUSH"}, sqltext.Verb([]byte(s)))
	})
}

// checkRows says what is left to do about rows.
func (p *Plan) checkRows(replica *Reading) {
	if len(p.Tables) == 0 || p.Equal {
		return
	}
	p.After = append(p.After, fmt.Sprintf("the rows that they changed stay as they are on %s: compare both servers by risso checksum, which mends them with --mend: %s", replica.Name, strings.Join(p.Tables, ", ")))
}

// Same says in what a plan that was made earlier differs from one that was made now. Nothing: it can be run.
func (p *Plan) Same(now *Plan) (differs []string) {
	for _, c := range []struct{ what, was, is string }{
		{"the replica", p.Replica.Name + " " + p.Replica.Identity, now.Replica.Name + " " + now.Replica.Identity}, {"the source", p.Source.Name + " " + p.Source.Identity, now.Source.Name + " " + now.Source.Identity},
		{"what is errant", p.Errant, now.Errant}, {"what that comes behind", p.Behind, now.Behind}, {"the way to mend it", string(p.Method), string(now.Method)},
		{"the tables that they changed", strings.Join(p.Tables, ", "), strings.Join(now.Tables, ", ")}, {"whether rows are equal", fmt.Sprint(p.Equal), fmt.Sprint(now.Equal)},
	} {
		if c.was != c.is {
			differs = append(differs, fmt.Sprintf("%s was %q and is %q", c.what, c.was, c.is))
		}
	}
	if len(differs) == 0 && p.shape() != now.shape() {
		differs = append(differs, "the steps are others")
	}
	return differs
}

// shape is the steps without the positions, which go on while a replica replicates.
func (p *Plan) shape() string {
	var b strings.Builder
	for _, s := range p.Steps {
		for _, text := range s.Statement {
			if p.Method == MethodForget {
				text, _, _ = strings.Cut(text, " = ")
			}
			b.WriteString(s.Server + ": " + text + "; ")
		}
	}
	return b.String()
}

// ReadPlan reads one that was saved.
func ReadPlan(text []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	if p.Version != planVersion {
		return p, fmt.Errorf("the plan has version %d, this risso reads version %d", p.Version, planVersion)
	}
	return p, nil
}
