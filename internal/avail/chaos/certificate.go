package chaos

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/release"
)

// Certificate is what a run proved. All of it but the signature can be computed again from the ledger.
type Certificate struct {
	Version int       `json:"version"`
	Risso   string    `json:"risso"` // the version that made it
	Group   string    `json:"group"`
	Members []string  `json:"members"` // of the group
	Began   time.Time `json:"began"`
	Seed    uint64    `json:"seed"`
	Planned int       `json:"planned"` // faults
	About   []Fact    `json:"about,omitempty"`
	Events  []Event   `json:"events"`
	Totals  Totals    `json:"totals"`
	Kinds   []PerKind `json:"kinds"`
	// Writers says whether there ever were two writers.
	Writers ledger.Writers `json:"writers"`
	// Final is what each member has of the ledger at the end, the primary first; none if the run did not get there.
	Final []ledger.Found `json:"final,omitempty"`
	// Violations are the promises that were broken, in words; none: the group passed.
	Violations []string `json:"violations"`
	Passed     bool     `json:"passed"`
	End        string   `json:"end"` // why the run ended
	// Rates are acknowledged writes of the clients in each second of the run.
	Rates []int `json:"rates"`
	// Ledger is the name of its file, which lies beside, and SHA256 the sum of it.
	Ledger string `json:"ledger"`
	SHA256 string `json:"sha256"` // of the ledger
	// Signer is the key that signed all of the above, and Signature is what it says.
	Signer    string `json:"signer,omitempty"`
	Signature string `json:"signature,omitempty"` // of the certificate without this field
}

// Totals are the sums of a run.
type Totals struct {
	Faults         int           `json:"faults"`         // that were caused
	Acknowledged   int           `json:"acknowledged"`   // writes
	Lost           int           `json:"lost"`           // of these
	Doubtful       int           `json:"doubtful"`       // writes of which the answer never came
	Unacknowledged int           `json:"unacknowledged"` // of these, rows that are there
	Doubles        int           `json:"doubles"`        // writes that a second writer took
	FalseAlarms    int           `json:"false_alarms"`   // another primary, though clients could have gone on with the one that they had
	Failovers      int           `json:"failovers"`      // changes of the primary
	Took           time.Duration `json:"took_ns"`        // until the last acknowledgement
}

// PerKind is what one kind of fault cost.
type PerKind struct {
	Kind      Kind          `json:"kind"`
	Count     int           `json:"count"`
	Median    time.Duration `json:"median_ns"` // of the outages
	Worst     time.Duration `json:"worst_ns"`  // of the outages
	Lost      int           `json:"lost"`      // acknowledged writes
	Failovers int           `json:"failovers"` // changes of the primary
}

// certificateVersion is that of its form.
const certificateVersion = 1

// Judge computes a certificate from a ledger: everything but the name of its file, the sum and the signature.
func Judge(b *ledger.Book) (*Certificate, error) {
	c := &Certificate{Version: certificateVersion, Group: b.Head.Group, Members: b.Head.Members, Began: b.Head.Began, Violations: []string{}, Events: []Event{}}
	for _, text := range b.Notes {
		var n note
		if err := json.Unmarshal(text, &n); err != nil {
			return nil, fmt.Errorf("read the ledger: a note: %w", err)
		}
		switch {
		case n.Plan != nil:
			c.Seed, c.Planned, c.About = n.Plan.Seed, len(n.Plan.Faults), n.Plan.About
		case n.Event != nil:
			c.Events = append(c.Events, *n.Event)
		case n.Final != nil:
			c.Final = n.Final
		case n.End != "":
			c.End = n.End
		}
	}
	if c.End == "" {
		c.End = "the run was cut off"
	}
	c.Writers = b.Judge()
	c.totals(b)
	c.perKind()
	c.violations()
	c.Passed = len(c.Violations) == 0
	return c, nil
}

func (c *Certificate) totals(b *ledger.Book) {
	t := &c.Totals
	t.Acknowledged, t.Doubtful, t.Doubles, t.Faults = len(b.Acks), len(b.Doubts), len(c.Writers.Doubles), len(c.Events)
	for _, a := range b.Acks {
		t.Took = max(t.Took, a.Acked)
		if second := int(a.Acked / time.Second); !a.Direct {
			for len(c.Rates) <= second {
				c.Rates = append(c.Rates, 0)
			}
			c.Rates[second]++
		}
	}
	for i := range c.Events {
		e := &c.Events[i]
		// Computed again: the ledger has the acknowledgements.
		e.Outage = b.Outage(e.From, e.Until)
		if e.failover() {
			t.Failovers++
		}
		if e.falseAlarm() {
			t.FalseAlarms++
		}
		t.Lost += len(e.Found.Lost)
	}
	if len(c.Final) > 0 {
		t.Lost, t.Unacknowledged = len(c.Final[0].Lost), c.Final[0].Unacknowledged
	}
}

func (e *Event) failover() bool   { return e.After != "" && e.After != e.Before }
func (e *Event) falseAlarm() bool { return e.failover() && e.Fault.Kind.Harmless() }

func (c *Certificate) perKind() {
	for _, k := range Kinds() {
		p := PerKind{Kind: k}
		var outages []time.Duration
		for i := range c.Events {
			e := &c.Events[i]
			if e.Fault.Kind != k {
				continue
			}
			p.Count, p.Lost = p.Count+1, p.Lost+len(e.Found.Lost)
			outages = append(outages, e.Outage.For)
			if e.failover() {
				p.Failovers++
			}
		}
		if p.Count > 0 {
			slices.Sort(outages)
			p.Median, p.Worst = outages[(len(outages)-1)/2], outages[len(outages)-1]
			c.Kinds = append(c.Kinds, p)
		}
	}
}

func (c *Certificate) violations() {
	say := func(format string, args ...any) { c.Violations = append(c.Violations, fmt.Sprintf(format, args...)) }
	for i := range c.Events {
		e := &c.Events[i]
		if why := e.violation(); why != "" {
			say("fault %d (%s on %s): %s", e.Fault.Number, e.Fault.Kind, e.Target, why)
		}
		if e.falseAlarm() {
			say("fault %d (%s on %s): a false alarm: the group failed over from %s to %s", e.Fault.Number, e.Fault.Kind, e.Target, e.Before, e.After)
		}
	}
	for i, d := range c.Writers.Doubles {
		if i == 5 {
			say("and %s", digits.Counted(int64(len(c.Writers.Doubles)-5), "further write of a second writer"))
			break
		}
		say("two writers: %s", d)
	}
	for _, f := range c.Final {
		if len(f.Lost) > 0 {
			say("at the end %s lacks %s of %d, the first: %s, taken by %s", f.Server, digits.Counted(int64(len(f.Lost)), "acknowledged write"), f.Acknowledged, f.Lost[0].Row(), f.Lost[0].Server)
		}
		if p := c.Final[0]; len(f.Lost) == 0 && len(p.Lost) == 0 && f.Unacknowledged == p.Unacknowledged && f.Which != p.Which {
			say("at the end %s and the primary %s have %s each that were never acknowledged, and not the same: they differ", f.Server, p.Server, digits.Counted(int64(f.Unacknowledged), "row"))
		} else if len(f.Lost) == 0 && len(p.Lost) == 0 && f.Unacknowledged != p.Unacknowledged {
			say("at the end %s has %s that were never acknowledged, and the primary %s has %d: they differ", f.Server, digits.Counted(int64(f.Unacknowledged), "row"), p.Server, p.Unacknowledged)
		}
		if f.Unknown > 0 {
			say("at the end %s has %s of this run that no writer wrote", f.Server, digits.Counted(int64(f.Unknown), "row"))
		}
	}
	switch {
	case c.Totals.Faults < c.Planned:
		say("only %d of %s were caused: %s", c.Totals.Faults, digits.Counted(int64(c.Planned), "planned fault"), c.End)
	case len(c.Final) < len(c.Members):
		say("%d of %s were looked at in the end: %s", len(c.Final), digits.Counted(int64(len(c.Members)), "member"), c.End)
	}
}

// signed is what the signature is of.
func (c *Certificate) signed() ([]byte, error) {
	plain := *c
	plain.Signature = ""
	return json.Marshal(plain)
}

// keyScheme begins a public key as text, as risso backup key prints it.
const keyScheme = "ed25519:"

// Sign names the ledger's file and its sum, and signs all with a key.
func (c *Certificate) Sign(file, sum string, key ed25519.PrivateKey) error {
	c.Ledger, c.SHA256, c.Risso = filepath.Base(file), sum, release.Version()
	c.Signer = keyScheme + base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey)) // of an ed25519 key it is no other
	message, err := c.signed()
	if err != nil {
		return err
	}
	c.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, message))
	return nil
}

// checkSignature says whether it is what its signer signed.
func (c *Certificate) checkSignature() error {
	text, ok := strings.CutPrefix(c.Signer, keyScheme)
	key, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(key) != ed25519.PublicKeySize {
		return errors.New("the certificate is not signed")
	}
	signature, err := base64.RawURLEncoding.DecodeString(c.Signature)
	if err != nil {
		return errors.New("the certificate is not signed")
	}
	message, err := c.signed()
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, message, signature) {
		return errors.New("the certificate is not what was signed: somebody changed it")
	}
	return nil
}

// Verify reads a certificate, as JSON or as its page, and the ledger beside it, and computes everything again. It returns the certificate, and an error for the first thing
// that does not hold. That the signer is somebody to be trusted is for the reader to say.
func Verify(path string) (*Certificate, error) {
	c, err := ReadCertificate(path)
	if err != nil {
		return nil, err
	}
	if err := c.checkSignature(); err != nil {
		return c, err
	}
	if c.Ledger == "" || c.Ledger != filepath.Base(c.Ledger) {
		return c, fmt.Errorf("the certificate names %q as its ledger", c.Ledger)
	}
	book, sum, err := ledger.Read(filepath.Join(filepath.Dir(path), c.Ledger))
	if err != nil {
		return c, err
	}
	if sum != c.SHA256 {
		return c, fmt.Errorf("%s is not the ledger of this certificate: its SHA-256 is %s", c.Ledger, sum)
	}
	again, err := Judge(book)
	if err != nil {
		return c, err
	}
	again.Ledger, again.SHA256, again.Signer, again.Signature, again.Risso = c.Ledger, c.SHA256, c.Signer, c.Signature, c.Risso
	a, err := json.Marshal(again)
	if err != nil {
		return c, err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	if !bytes.Equal(a, b) {
		return c, errors.New("the certificate says something else than its ledger")
	}
	return c, nil
}

// The marks in a page between which the certificate stands.
const (
	pageBegin = `<script type="application/json" id="certificate">`
	pageEnd   = `</script>`
)

// ReadCertificate reads one, as JSON or from its page.
func ReadCertificate(path string) (*Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	if _, after, ok := bytes.Cut(text, []byte(pageBegin)); ok {
		text, _, _ = bytes.Cut(after, []byte(pageEnd))
	}
	var c Certificate
	if err := json.Unmarshal(text, &c); err != nil || c.Version != certificateVersion {
		return nil, fmt.Errorf("%s is no certificate of risso chaos: %w", path, errors.Join(err, fmt.Errorf("version %d", c.Version)))
	}
	return &c, nil
}
