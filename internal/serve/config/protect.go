package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/schedule"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/throttle"
)

// Protect says in the config file how a server is protected. There is no secret in it: keys of S3 come from the
// environment or their own file, SFTP's from its key file, and identities are named by their files.
type Protect struct {
	Place        string    `yaml:"place,omitempty"`         // where backups go: a folder, s3://…, sftp://…
	Schedule     string    `yaml:"schedule,omitempty"`      // of backups, such as 'daily at 02:00'
	Kind         string    `yaml:"kind,omitempty"`          // logical (the default) or physical
	Retention    Retention `yaml:"retention,omitempty"`     // what is kept; nothing said: all
	CopyTo       string    `yaml:"copy_to,omitempty"`       // a second place, copied to after each backup
	Drill        string    `yaml:"drill,omitempty"`         // schedule
	Verify       string    `yaml:"verify,omitempty"`        // schedule
	Checksum     string    `yaml:"checksum,omitempty"`      // schedule, of a replica
	Mirror       bool      `yaml:"mirror,omitempty"`        // binary logs are mirrored as they are written
	MirrorKeep   string    `yaml:"mirror_keep,omitempty"`   // how long mirrored logs are kept, such as 35d; default: for good
	MaxAge       string    `yaml:"max_age,omitempty"`       // how old the last backup may be, such as 26h; default: as the schedule says
	EncryptTo    []string  `yaml:"encrypt_to,omitempty"`    // recipients (age1…) or files of them
	IdentityFile string    `yaml:"identity_file,omitempty"` // to read what was encrypted: for drills, verify and copies
	Trust        []string  `yaml:"trust,omitempty"`         // keys (ed25519:…) or files of them whose backups drills and verify read, besides Risso's own
	Unsigned     bool      `yaml:"allow_unsigned,omitempty"`
	Threads      int       `yaml:"threads,omitempty"`
	MaxLag       string    `yaml:"max_lag,omitempty"`             // the backup waits while a replica is further behind
	MaxRunning   int       `yaml:"max_threads_running,omitempty"` // or while more statements run
	MaxRate      string    `yaml:"max_rate,omitempty"`            // bytes a second, such as 50MB
}

// Retention says how many backups are kept: each first of a day, week, month, and the last ones.
type Retention struct {
	Last    int `yaml:"keep_last,omitempty"`
	Daily   int `yaml:"keep_daily,omitempty"`
	Weekly  int `yaml:"keep_weekly,omitempty"`
	Monthly int `yaml:"keep_monthly,omitempty"`
	Yearly  int `yaml:"keep_yearly,omitempty"`
}

// Any reports whether anything is kept by rule; else all is kept.
func (r Retention) Any() bool { return r != Retention{} }

// Policy is what data/repo reads.
func (r Retention) Policy() repo.Retention {
	return repo.Retention{Last: r.Last, Daily: r.Daily, Weekly: r.Weekly, Monthly: r.Monthly, Yearly: r.Yearly}
}

// Protection is a server's protection, read and checked.
type Protection struct {
	Protect
	backup, drill, verify, checksum schedule.Schedule
	maxAge, maxLag                  time.Duration
	RateLimit                       int64 // bytes a second; 0: any
	KeepLogs                        time.Duration
	Recipients                      []string
}

// Check reads the block of one server. Errors name the field.
func (c Protect) Check() (*Protection, error) {
	p := &Protection{Protect: c}
	if c.Place == "" {
		return nil, errors.New("place is missing: a folder, s3://bucket/prefix, or sftp://user@host/dir")
	}
	for _, f := range []struct{ name, place string }{{"place", c.Place}, {"copy_to", c.CopyTo}} {
		if err := checkPlace(f.place); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if c.CopyTo == c.Place {
		return nil, errors.New("copy_to is the same place: give another, on another machine")
	}
	for _, f := range []struct {
		name, text string
		into       *schedule.Schedule
	}{{"schedule", c.Schedule, &p.backup}, {"drill", c.Drill, &p.drill}, {"verify", c.Verify, &p.verify}, {"checksum", c.Checksum, &p.checksum}} {
		if f.text == "" {
			continue
		}
		s, err := schedule.Parse(f.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		*f.into = s
	}
	if c.Kind != "" && c.Kind != "logical" && c.Kind != "physical" {
		return nil, fmt.Errorf("kind: %q is neither logical nor physical", c.Kind)
	}
	for _, f := range []struct {
		name, text string
		into       *time.Duration
	}{{"max_age", c.MaxAge, &p.maxAge}, {"max_lag", c.MaxLag, &p.maxLag}, {"mirror_keep", c.MirrorKeep, &p.KeepLogs}} {
		d, err := digits.ParseAge(f.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		*f.into = d
	}
	if r := c.Retention; min(r.Last, r.Daily, r.Weekly, r.Monthly, r.Yearly) < 0 {
		return nil, errors.New("retention: must not be negative")
	}
	if c.Threads < 0 || c.Threads > 64 {
		return nil, fmt.Errorf("threads: %d is not between 1 and 64", c.Threads)
	}
	if c.MaxRunning < 0 {
		return nil, errors.New("max_threads_running: must not be negative")
	}
	if c.MaxRate != "" {
		n, err := digits.ParseBytes(strings.TrimSuffix(c.MaxRate, "/s"))
		if err != nil || n == 0 {
			return nil, fmt.Errorf("max_rate: %q: write it as 50MB or 1GiB", c.MaxRate)
		}
		p.RateLimit = n
	}
	for _, r := range c.EncryptTo {
		list, err := repo.ReadRecipients(r)
		if err != nil {
			return nil, fmt.Errorf("encrypt_to: %w", err)
		}
		p.Recipients = append(p.Recipients, list...)
	}
	if _, err := repo.ReadPublicKeys(c.Trust...); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	return p, c.checkIdentity()
}

// checkPlace reads a place without going there.
func checkPlace(place string) error {
	if place == "" {
		return nil
	}
	if err := blob.Check(place); err != nil {
		return err
	}
	if !strings.Contains(place, "://") && !filepath.IsAbs(place) {
		return fmt.Errorf("%s is not an absolute path: it would depend on the folder from which risso serve is started", place)
	}
	return nil
}

// checkIdentity tells early what a drill at night would find out.
func (c Protect) checkIdentity() error {
	if c.IdentityFile != "" {
		if _, err := repo.ReadIdentities(c.IdentityFile); err != nil {
			return fmt.Errorf("identity_file: %w", err)
		}
		return nil
	}
	if len(c.EncryptTo) > 0 && c.Drill != "" {
		return errors.New("identity_file is missing: a drill must be able to read what is encrypted by encrypt_to")
	}
	return nil
}

// Want is what the verdict of the server is measured by.
func (p *Protection) Want(since time.Time) verdict.Want {
	return verdict.Want{Backup: p.backup, Drill: p.drill, Checksum: p.checksum, Age: verdict.Limits{Late: p.maxAge}, Mirror: p.Mirror, Place: p.Place, Since: since}
}

// Kinds lists what is done for the server, in the order in which the page shows it. What has no schedule is done by hand.
func (p *Protection) Kinds() []state.JobKind {
	list := []state.JobKind{state.JobBackup}
	if p.CopyTo != "" {
		list = append(list, state.JobCopy)
	}
	if p.Retention.Any() {
		list = append(list, state.JobPrune)
	}
	list = append(list, state.JobDrill, state.JobVerify)
	if p.Mirror {
		list = append(list, state.JobMirror)
	}
	if p.Checksum != "" {
		list = append(list, state.JobChecksum)
	}
	return list
}

// OnePlace holds that servers whose backups share a place agree on what becomes of them there: prune judges a place as a whole.
func OnePlace(list []Watched) error {
	for i, a := range list {
		for _, b := range list[:i] {
			if a.Protect == nil || b.Protect == nil || a.Protect.Place != b.Protect.Place {
				continue
			}
			if a.Protect.Retention != b.Protect.Retention || a.Protect.CopyTo != b.Protect.CopyTo {
				return fault.Usagef("%s and %s share the place %s: give them the same retention and copy_to, or separate places", b.Instance.Name, a.Instance.Name, a.Protect.Place)
			}
		}
	}
	return nil
}

// Sessions are the sessions that a job uses.
func (c *Protection) Sessions() int {
	if c.Threads > 0 {
		return c.Threads
	}
	return 2
}

// Limits are what the server can take.
func (c *Protection) Limits() throttle.Limits {
	return throttle.Limits{MaxLag: c.maxLag, MaxThreadsRunning: c.MaxRunning, MaxRate: c.RateLimit, Own: c.Sessions() + 1}
}

// Words says what is kept.
func (r Retention) Words() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{r.Last, "last"}, {r.Daily, "daily"}, {r.Weekly, "weekly"}, {r.Monthly, "monthly"}, {r.Yearly, "yearly"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
