// Package health answers load balancers over HTTP: may this server have clients now? A verdict is a pure function of what was last
// seen of the server, of when that was, and of the question. One prober looks at a server, however many ask.
package health

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// About is what a question asks of a server.
type About string

// The questions.
const (
	Galera  About = "galera"  // clustercheck's: a synced node
	Up      About = "up"      // it answers, and takes clients
	Primary About = "primary" // it takes writes, and replicates from none
	Replica About = "replica" // it replicates, or is a secondary of a group
	Group   About = "group"   // an online member of Group Replication, in a majority
)

// Question is one question about one server.
type Question struct {
	About       About
	Donor       bool          // a donor, or desynced, node is available
	NotReadOnly bool          // a node that is read-only is not available
	MaxLag      time.Duration // of a replica; 0: any
	JSON        bool          // answer as JSON
}

// OfReplication reports whether the answer may depend on how the server replicates, which takes a privilege to see.
func (q Question) OfReplication() bool { return q.About == Primary || q.About == Replica }

// Seen is what was last seen of a server. Its replication is looked at on its own: a server that only stops its appliers keeps that answer back.
type Seen struct {
	Began    time.Time // when the look began: what was seen may be as old, and no newer is claimed
	Health   read.Health
	Err      error // why nothing was seen
	Channels Channels
}

// Channels are the channels by which a server replicates, as they were last seen.
type Channels struct {
	Began time.Time
	List  []read.ReplicaChannel
	Heard map[string]time.Time // by channel: when something of its source was last seen to have come, or when it was first looked at
	Err   error
}

// Answer is what a client is told.
type Answer struct {
	Status    int     `json:"-"`         // of HTTP
	Question  About   `json:"question"`  // what was asked
	Available bool    `json:"available"` // may it have clients?
	Reason    string  `json:"reason"`    // in words
	Age       float64 `json:"age"`       // of what was seen, in seconds; -1: nothing was seen yet
}

// The texts of clustercheck, which monitoring compares.
const (
	synced    = "Percona XtraDB Cluster Node is synced."
	notSynced = "Percona XtraDB Cluster Node is not synced or non-PRIM. "
	readOnly  = "Percona XtraDB Cluster Node is read-only."
)

// Judge answers a question from what was seen. What is older than maxAge says nothing about now: it is never a reason to send clients.
func Judge(q Question, s Seen, now time.Time, maxAge time.Duration) Answer {
	a := Answer{Status: http.StatusServiceUnavailable, Question: q.About, Age: -1}
	if s.Began.IsZero() {
		a.Reason = "The server was not looked at yet."
		return a
	}
	age := max(now.Sub(s.Began), 0)
	switch {
	case age > maxAge && s.Err != nil:
		a.Reason = "The server does not answer: the last attempt, " + digits.Span(age) + " ago, failed (" + kind(s.Err) + ")."
	case age > maxAge:
		a.Reason = "The server does not answer: it was last seen " + digits.Span(age) + " ago."
	case s.Err != nil:
		a.Reason = "The server cannot be asked: " + kind(s.Err) + "."
	default:
		j := judging{q, s.Health, s.Channels, age, now, maxAge}
		a.Available, a.Reason = j.verdict()
		age = j.age
	}
	a.Age = age.Seconds()
	if a.Available {
		a.Status = http.StatusOK
	}
	return a
}

// judging is one question about a server that answers.
type judging struct {
	q      Question
	h      read.Health
	seen   Channels
	age    time.Duration // of the oldest that counts
	now    time.Time
	maxAge time.Duration
}

// channels are those by which the server replicates; unknown says why they are not known.
func (j *judging) channels() (list []read.ReplicaChannel, unknown string) {
	const what = "Whether it replicates is not known: "
	if j.seen.Began.IsZero() {
		return nil, what + "it was not looked at yet."
	}
	age := max(j.now.Sub(j.seen.Began), 0)
	j.age = max(j.age, age)
	switch {
	case age > j.maxAge:
		return nil, what + "the status of replication was last seen " + digits.Span(age) + " ago."
	case j.seen.Err != nil:
		return nil, what + kind(j.seen.Err) + "."
	}
	return j.seen.List, ""
}

// kind says what kind of trouble an error is, without names, addresses and accounts: whoever asks need not be known.
func kind(err error) string {
	switch mysql.ClassOf(err) {
	case mysql.ClassRefused:
		return "it refuses connections"
	case mysql.ClassTimeout:
		return "no answer in time"
	case mysql.ClassUnreachable:
		return "it cannot be reached"
	case mysql.ClassDropped:
		return "it dropped the connection"
	case mysql.ClassLogin:
		return "the login was refused"
	case mysql.ClassFull:
		return "too many connections"
	case mysql.ClassTLS:
		return "TLS failed"
	case mysql.ClassPrivilege:
		return "the account may not see it"
	}
	return "an error that Risso's log names"
}

func (j *judging) verdict() (available bool, reason string) {
	q, h := j.q, j.h
	if h.Offline {
		return false, "The server is in offline mode."
	}
	if h.Galera != nil && h.Galera.Rejects {
		return false, "The node refuses statements: wsrep_reject_queries is set."
	}
	switch q.About {
	case Galera:
		return ofGalera(q, h)
	case Up:
		if h.Galera != nil && !h.Galera.Ready {
			return false, "The node refuses statements."
		}
		return true, "The server answers."
	case Primary:
		return j.ofPrimary()
	case Replica:
		return j.ofReplica()
	case Group:
		return ofGroup(h)
	}
	return false, "Nothing is known of this question."
}

// ofGalera is clustercheck's answer, and counts further what Galera says: a node that is not ready refuses statements, one with wsrep_on off
// does not replicate what it writes.
func ofGalera(q Question, h read.Health) (bool, string) {
	g := h.Galera
	switch {
	case g == nil:
		return false, "The server is no node of a Galera cluster."
	case !g.Primary || !g.Ready || g.State != 4 && !(g.State == 2 && q.Donor):
		return false, notSynced
	case g.Desired != "" && g.Desired != "DISABLED":
		return false, notSynced
	case !g.On:
		return false, "The node replicates nothing: wsrep_on is off."
	case h.ReadOnly && q.NotReadOnly:
		return false, readOnly
	}
	return true, synced
}

func (j *judging) ofPrimary() (bool, string) {
	h := j.h
	switch {
	case h.ReadOnly:
		return false, "The server is read-only."
	case h.Galera != nil:
		return ofGalera(j.q, h)
	case h.GroupErr != nil:
		return false, "Whether it is a member of a group is not known: " + kind(h.GroupErr) + "."
	case h.Group != nil:
		if ok, why := ofGroup(h); !ok {
			return false, why
		}
		if !h.Group.Primary {
			return false, "The server is a secondary of its group."
		}
		return true, "The server is a primary of its group."
	}
	channels, unknown := j.channels()
	switch {
	case unknown != "":
		return false, unknown
	case len(channels) > 0 && !slices.ContainsFunc(channels, func(ch read.ReplicaChannel) bool { return ch.IORunning || ch.SQLRunning }):
		return false, "The server is a replica of which replication is stopped: it is a primary after RESET REPLICA ALL."
	case len(channels) > 0:
		return false, "The server is a replica."
	}
	return true, "The server is a primary."
}

func (j *judging) ofReplica() (bool, string) {
	h := j.h
	channels, unknown := j.channels()
	switch {
	case h.GroupErr != nil:
		return false, "Whether it is a member of a group is not known: " + kind(h.GroupErr) + "."
	case h.Group != nil && len(channels) == 0 && unknown == "":
		return ofSecondary(j.q, h)
	case unknown != "":
		return false, unknown
	case len(channels) == 0:
		return false, "The server is no replica."
	}
	worst := 0
	for _, ch := range channels {
		switch {
		case !ch.IORunning || !ch.SQLRunning:
			return false, "Replication does not run."
		case ch.Behind < 0 && j.q.MaxLag > 0:
			return false, "How far the replica is behind is not known."
		}
		if silent := j.silent(&ch); j.q.MaxLag > 0 && silent > 0 {
			return false, "How far the replica is behind is not known: nothing came from its source for " + digits.Span(silent) + "."
		}
		worst = max(worst, ch.Behind)
	}
	lag := time.Duration(worst) * time.Second
	if j.q.MaxLag > 0 && lag > j.q.MaxLag {
		return false, "The replica is " + digits.Span(lag) + " behind."
	}
	return true, "The replica replicates."
}

// silent is for how long nothing came over a channel, if that is longer than it should be: a source that has nothing else to send says that it lives. 0: all is well,
// or the source is not meant to say so. A replica that does not notice that its source is gone calls itself level.
func (j *judging) silent(ch *read.ReplicaChannel) time.Duration {
	heard, known := j.seen.Heard[ch.Name]
	if !known || ch.BeatEvery <= 0 {
		return 0
	}
	if silent := j.now.Sub(heard); silent > j.q.MaxLag+time.Duration(ch.BeatEvery*float64(time.Second)) {
		return silent
	}
	return 0
}

// ofSecondary is the answer of a group's member that replicates from nobody else.
func ofSecondary(q Question, h read.Health) (bool, string) {
	ok, why := ofGroup(h)
	switch {
	case !ok:
		return false, why
	case h.Group.Primary:
		return false, "The server is a primary of its group."
	case q.MaxLag > 0:
		return false, "How far a member of a group is behind is not known in seconds: ask without max-lag."
	}
	return true, "The server is a secondary of its group."
}

func ofGroup(h read.Health) (bool, string) {
	g := h.Group
	switch {
	case h.GroupErr != nil:
		return false, "Whether it is a member of a group is not known: " + kind(h.GroupErr) + "."
	case g == nil:
		return false, "The server is no member of a group."
	case g.State != "ONLINE":
		return false, "The member is not online."
	case 2*g.Reachable <= g.Members:
		return false, "The member sees no majority of its group."
	}
	return true, "The member is online."
}

// Ask reads a question out of the target of a request, such as /replica?max-lag=5. base has what holds where the question says nothing.
func Ask(target string, base Question) (Question, error) {
	q := base
	path, query, _ := strings.Cut(target, "?")
	switch strings.Trim(path, "/") {
	case "", "*", "clustercheck", string(Galera):
		q.About = Galera
	case string(Up), string(Primary), string(Replica), string(Group):
		q.About = About(strings.Trim(path, "/"))
	default:
		return q, fmt.Errorf("there is no such question: ask /, /galera, /up, /primary, /replica or /group")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, fmt.Errorf("the question cannot be read: %q", query)
	}
	for name, list := range values {
		value := list[len(list)-1]
		switch strings.ReplaceAll(strings.ToLower(name), "_", "-") {
		case "available-when-donor":
			q.Donor, err = strconv.ParseBool(value)
		case "available-when-readonly":
			var yes bool
			yes, err = strconv.ParseBool(value)
			q.NotReadOnly = !yes
		case "max-lag":
			q.MaxLag, err = ParseLag(value)
		case "output":
			if q.JSON = value == "json"; !q.JSON && value != "text" {
				err = fmt.Errorf("there are text and json")
			}
		default:
			return q, fmt.Errorf("there is no option %q: there are available-when-donor, available-when-readonly, max-lag and output", name)
		}
		if err != nil {
			return q, fmt.Errorf("%s=%q cannot be read", name, value)
		}
	}
	if q.MaxLag > 0 && q.About != Replica && base.MaxLag == 0 {
		return q, fmt.Errorf("max-lag is for /replica")
	}
	return q, nil
}

// ParseLag reads a lag: seconds, or a length of time such as 2m; 0 is any.
func ParseLag(text string) (time.Duration, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		text = strconv.FormatUint(n, 10) + "s"
	}
	d, err := digits.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("less than 0")
	}
	return d, err
}
