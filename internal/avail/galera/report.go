package galera

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// Member is a member of the cluster, seen or not.
type Member struct {
	Name       string         `json:"name"`
	Address    string         `json:"address"`
	Seen       bool           `json:"seen"` // it answered
	NotSeen    *fleet.Trouble `json:"not_seen,omitempty"`
	Arbitrator bool           `json:"arbitrator,omitempty"` // it votes, and has no data
	Votes      int            `json:"votes"`                // -1: unknown
	InView     bool           `json:"in_view"`              // it is of the component that was asked
	Status     *wsrep.Status  `json:"status"`               // null if it was not seen
	Paused     float64        `json:"paused"`               // share of the look for which flow control paused it; -1: unknown
	Asked      float64        `json:"asked"`                // how often it asked the others to pause in the look
	Failed     float64        `json:"failed"`               // transactions of its that lost in the look
	BytesRate  float64        `json:"bytes_rate"`           // of write sets, a second; -1: unknown
	Conflicts  *Conflicts     `json:"conflicts"`            // of its error log; null if that was not read
	LogUnread  string         `json:"log_unread"`           // why it was not
}

// Flow is whether flow control pauses writes, and who asks for it.
type Flow struct {
	Share  float64  `json:"share"`  // of the look, on the member that was paused most; -1: unknown
	SoFar  float64  `json:"so_far"` // since the counters began, likewise
	Causes []string `json:"causes"` // members that ask the others to pause
	Words  []string `json:"words"`  // what there is to say, in sentences
}

// Report is a cluster as it was found.
type Report struct {
	At        time.Time       `json:"at"`      // when the last reading was made
	Cluster   string          `json:"cluster"` // wsrep_cluster_name
	UUID      string          `json:"uuid"`    // of its history: wsrep_cluster_state_uuid
	Looked    float64         `json:"looked"`  // seconds between the two readings of the counters
	Words     []string        `json:"words"`
	Members   []Member        `json:"members"`
	Quorum    *Plan           `json:"quorum"` // null if there is no primary component
	Flow      Flow            `json:"flow"`
	Transfers []Transfer      `json:"transfers"` // of the nodes that are down, whose data directories were given
	Findings  []fleet.Advice  `json:"findings"`
	Unknown   []fleet.Trouble `json:"unknown"`
}

// Reading is a server that was asked, or could not be.
type Reading struct {
	Address string
	Before  *wsrep.Status   // nil: not seen
	After   *wsrep.Status   // a moment later; nil: not any more
	Trouble fleet.Trouble   // why it was not seen
	Log     []string        // of its error log
	Logged  bool            // that was read
	NoLog   string          // why not
	Unknown []fleet.Trouble // what the account may not read
}

// Judge makes a report of what was read. The first reading is of the server that was named.
func Judge(at time.Time, looked time.Duration, readings []Reading, down []Node) *Report {
	r := &Report{At: at, Looked: looked.Seconds(), Flow: Flow{Share: -1, SoFar: -1}}
	for i := range readings {
		r.member(&readings[i], looked)
	}
	lead := r.lead()
	if lead == nil {
		return r
	}
	r.Cluster, r.UUID = lead.Cluster, lead.ClusterUUID
	r.others(lead)
	r.votes(lead)
	r.state(lead)
	r.flow()
	r.forecasts(lead, down)
	r.conflicts()
	r.settings()
	r.quorum(lead)
	slices.SortStableFunc(r.Findings, func(a, b fleet.Advice) int { return int(b.Severity - a.Severity) })
	return r
}

// member adds a server that was read.
func (r *Report) member(d *Reading, looked time.Duration) {
	m := Member{Address: d.Address, Name: d.Address, Votes: -1, Paused: -1, Asked: -1, Failed: -1, BytesRate: -1, LogUnread: d.NoLog}
	if d.Before == nil {
		trouble := d.Trouble
		m.NotSeen = &trouble
		r.Members = append(r.Members, m)
		return
	}
	now := d.Before
	if d.After != nil {
		now = d.After
	}
	m.Seen, m.Status, m.Votes = true, now, now.Votes()
	if now.Name != "" {
		m.Name = now.Name
	}
	if before, after := d.Before, d.After; after != nil && looked > 0 && after.PausedNS >= before.PausedNS && before.PausedNS >= 0 {
		m.Paused = min((after.PausedNS-before.PausedNS)/float64(looked.Nanoseconds()), 1)
		m.Asked = max(after.PausesSent-before.PausesSent, 0)
		m.Failed = max(after.CertFailures-before.CertFailures, after.BFAborts-before.BFAborts, 0)
		m.BytesRate = max(after.Bytes-before.Bytes, 0) / looked.Seconds()
	}
	if d.Logged {
		c := ReadConflicts(d.Log)
		m.Conflicts = &c
	}
	for _, u := range d.Unknown {
		u.What = m.Name + ": " + u.What
		r.Unknown = append(r.Unknown, u)
	}
	r.Members = append(r.Members, m)
}

// lead is the status that tells of the cluster: of a member of the primary component if one was seen, else the first.
func (r *Report) lead() (lead *wsrep.Status) {
	for i := range r.Members {
		if s := r.Members[i].Status; s != nil && (lead == nil || s.Primary() && !lead.Primary()) {
			lead = s
		}
	}
	return lead
}

// others adds the members that the leading one knows and that were not asked, and names those that did not answer.
func (r *Report) others(lead *wsrep.Status) {
	for i := range r.Members {
		m := &r.Members[i]
		if s := m.Status; s != nil {
			m.InView = s.ClusterUUID == lead.ClusterUUID && s.View == lead.View && s.Primary() == lead.Primary()
			continue
		}
		m.InView = slices.Contains(lead.Peers, m.Address)
		for _, p := range lead.Members {
			if p.Address == m.Address && p.Name != "" {
				m.Name = p.Name
			}
		}
	}
	var arbitrators []string // garbd gives its name, and no address
	for _, p := range lead.Members {
		if p.Address == "" && p.Name != "" {
			arbitrators = append(arbitrators, p.Name)
		}
	}
	for i, a := range lead.Peers {
		if a == "" {
			name := "arbitrator" + fmt.Sprint(i+1)
			if len(arbitrators) > 0 {
				name, arbitrators = arbitrators[0], arbitrators[1:]
			}
			r.Members = append(r.Members, Member{Name: name, Arbitrator: true, InView: true, Votes: -1, Paused: -1, Asked: -1, Failed: -1, BytesRate: -1,
				NotSeen: &fleet.Trouble{What: "it has no data and takes no connections"}})
		}
	}
	known := func(group string) bool {
		return slices.ContainsFunc(r.Members, func(m Member) bool {
			if m.Status != nil {
				return m.Status.Group() == group || host(m.Status.Group()) == group || hostOnly(group) && host(m.Status.Address) == group
			}
			return hostOnly(group) && host(m.Address) == group
		})
	}
	var none []string
	for _, group := range lead.GroupAddresses() {
		if !known(group) {
			none = append(none, group)
		}
	}
	// A member that was not seen may have any of them.
	unseen := len(r.names(func(m *Member) bool { return !m.Seen }))
	if len(none) <= unseen {
		return
	}
	if unseen > 0 {
		none = []string{digits.Thousands(len(none)-unseen) + " of " + strings.Join(none, ", ")}
	}
	for _, group := range none {
		r.Members = append(r.Members, Member{Name: group, Address: group, Votes: -1, Paused: -1, Asked: -1, Failed: -1, BytesRate: -1,
			NotSeen: &fleet.Trouble{What: "wsrep_cluster_address names it, and no member has it", Why: "it is down, or cut off, or the address has another name"}})
	}
}

func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

func hostOnly(address string) bool { return host(address) == address }

// votes works out the votes of members that were not seen: they are what is missing from those of all.
func (r *Report) votes(lead *wsrep.Status) {
	if !lead.Primary() || lead.Weight < 1 {
		return
	}
	rest, unseen := lead.Weight, 0
	for _, m := range r.Members {
		if m.InView && m.Votes >= 0 {
			rest -= m.Votes
		} else if m.InView {
			unseen++
		}
	}
	for i := range r.Members {
		if m := &r.Members[i]; m.InView && m.Votes < 0 && (unseen == 1 || rest == unseen) && rest >= 0 {
			m.Votes = rest / unseen
		}
	}
}

func (r *Report) find(id, object string, severity fleet.Severity, what, why string) *fleet.Advice {
	r.Findings = append(r.Findings, fleet.Advice{ID: id, Object: object, Severity: severity, What: what, Why: why, Sure: fleet.Certain})
	return &r.Findings[len(r.Findings)-1]
}

// names are those of the members that a test takes.
func (r *Report) names(take func(*Member) bool) (list []string) {
	for i := range r.Members {
		if take(&r.Members[i]) {
			list = append(list, r.Members[i].Name)
		}
	}
	return list
}

// state says who takes part.
func (r *Report) state(lead *wsrep.Status) {
	seen := r.names(func(m *Member) bool { return m.Seen })
	if !slices.ContainsFunc(r.Members, func(m Member) bool { return m.Status != nil && m.Status.Primary() }) {
		r.Words = append(r.Words, "no member that was seen is in a primary component: "+strings.Join(seen, ", ")+" "+are(len(seen))+" "+lead.ClusterStatus)
	} else {
		r.Words = append(r.Words, fmt.Sprintf("the primary component has %s, of which %d were seen", digits.Counted(lead.Size, "member"), len(r.names(func(m *Member) bool { return m.Seen && m.InView }))))
	}
	r.split()
	if lead.Primary() && lead.ClusterUUID == wsrep.Undefined {
		f := r.find("galera.no_history", "", fleet.SeverityCritical, "the primary component has no history (wsrep_cluster_state_uuid is all zeros): its members were started after a crash without their positions, and nothing was copied between them",
			"they say that they are synced, and their data may differ; the next crash cannot be repaired by sequence numbers")
		f.Advice = "find the member whose data are to be kept (risso checksum compares two); shut down all in order, that one last; start it as the first of a cluster (galera_new_cluster, systemctl start mysql@bootstrap.service, or mariadbd --wsrep-new-cluster), which begins a history; then the others as usual: they take a copy of all its data"
	}
	for i := range r.Members {
		m := &r.Members[i]
		switch s := m.Status; {
		case s == nil && m.Arbitrator:
		case s == nil && m.InView:
			r.find("galera.not_seen", m.Name, fleet.SeverityWarning, m.Name+" is a member, and was not seen: "+m.NotSeen.What+": "+m.NotSeen.Why, "what it does is not known: the others hear from it").Advice = m.NotSeen.Remedy
		case s == nil:
			r.find("galera.not_member", m.Name, fleet.SeverityWarning, m.Name+" is no member: "+m.NotSeen.What, m.NotSeen.Why).Advice = "start it as usual; if it does not come, its error log says why"
		case s.State == wsrep.Inconsistent:
			f := r.find("galera.inconsistent", m.Name, fleet.SeverityCritical, m.Name+": "+wsrep.InconsistentWords, "something was written on it, or on the others, that was not replicated: with wsrep_on = OFF, by a filter, in a table of another engine")
			f.Evidence = []string{fmt.Sprintf("wsrep_local_state = %d (%s)", s.State, s.StateComment)}
			f.Advice = "its error log has the statement that failed; keep a copy of what only it has, then restart it: it takes a copy of all data"
		case !s.Primary():
			r.nonPrimary(m)
		case s.State != wsrep.Synced:
			f := r.find("galera.not_synced", m.Name, fleet.SeverityWarning, m.Name+": "+wsrep.UnsyncedWords(s.StateComment), "reads on it may be old, and it may not give a state to others")
			f.Evidence = []string{fmt.Sprintf("wsrep_local_state = %d", s.State), fmt.Sprintf("wsrep_desync_count = %d", s.Desynced)}
			if strings.EqualFold(s.Variables["wsrep_desync"], "ON") {
				f.Statement, f.Undo, f.Effect = "SET GLOBAL wsrep_desync = OFF", "SET GLOBAL wsrep_desync = ON", "the cluster waits for it again, once it has caught up"
			} else {
				f.Advice = "it gives its state to another, takes one, or is backed up: wait until it has finished"
			}
		}
	}
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// nonPrimary says that a member refuses statements, and what to do.
func (r *Report) nonPrimary(m *Member) {
	s := m.Status
	f := r.find("galera.non_primary", m.Name, fleet.SeverityCritical, m.Name+": "+wsrep.NonPrimaryWords(s.ClusterStatus), "it cannot know whether the others go on without it")
	f.Evidence = []string{fmt.Sprintf("wsrep_cluster_size = %d", s.Size), fmt.Sprintf("wsrep_last_committed = %d", s.Committed)}
	if slices.ContainsFunc(r.Members, func(o Member) bool { return o.Status != nil && o.Status.Primary() }) {
		f.Advice = "a primary component lives: mend the network between them, and it joins again by itself; do not bootstrap it"
		return
	}
	var lost []string
	for _, p := range s.Members {
		if p.ID != s.ID && p.Address != "" && !slices.ContainsFunc(r.Members, func(o Member) bool { return o.Status != nil && o.Status.ID == p.ID }) {
			lost = append(lost, p.Name)
		}
	}
	if len(lost) > 0 {
		f.Evidence = append(f.Evidence, "of its last primary component not seen: "+strings.Join(lost, ", "))
	}
	if best := r.furthest(); best != m {
		f.Advice = "if one has to be bootstrapped, then " + best.Name + fmt.Sprintf(", which is at %d, and not this", best.Status.Committed)
		return
	}
	unseen := r.names(func(o *Member) bool { return !o.Seen && !o.Arbitrator })
	if len(lost) > 0 || len(unseen) > 0 || len(s.Members) == 0 {
		f.Advice = "start the nodes that are down: with a majority of the last primary component it is primary again by itself. If they cannot come, risso galera bootstrap, with their data directories, says which node, if any, may be bootstrapped: "
		switch {
		case len(lost)+len(unseen) == 0:
			f.Advice += "who else was in its last primary component is not known (GRANT SELECT ON mysql.wsrep_cluster_members)"
		default:
			f.Advice += "one that was not seen may live, or have gone further"
		}
		return
	}
	f.Statement, f.Effect, f.Sure = wsrep.Bootstrap, wsrep.BootstrapOnly, fleet.Likely
	f.Doubt = "a node that nobody knows of may live, or have gone further: two primary components are a split brain"
	f.Advice = "mend the network between them: with a majority of the last primary component it is primary again by itself"
}

// furthest is the member that was seen with the highest number, the first of several; there is one.
func (r *Report) furthest() (best *Member) {
	for i := range r.Members {
		if m := &r.Members[i]; m.Status != nil && m.Status.State != wsrep.Inconsistent && (best == nil || m.Status.Committed > best.Status.Committed) {
			best = m
		}
	}
	return best
}

// split finds two primary components.
func (r *Report) split() {
	type part struct {
		uuid string
		view int64
	}
	parts := map[part][]string{}
	for _, m := range r.Members {
		if s := m.Status; s != nil && s.Primary() {
			p := part{s.ClusterUUID, s.View}
			parts[p] = append(parts[p], m.Name)
		}
	}
	if len(parts) < 2 {
		return
	}
	var list []string
	for p, names := range parts {
		list = append(list, fmt.Sprintf("%s (history %s, view %d)", strings.Join(names, ", "), p.uuid, p.view))
	}
	slices.Sort(list)
	f := r.find("galera.split_brain", "", fleet.SeverityCritical, "there are "+digits.Thousands(len(parts))+" primary components: "+strings.Join(list, "; "), "both take writes that the other never gets")
	f.Sure, f.Doubt = fleet.Likely, "a view that changed between two readings looks alike: ask again"
	f.Advice = "stop the applications on all but one at once; what was written on the others has to be carried over by hand before they join, since that replaces their data"
}

// quorum says what the primary component survives.
func (r *Report) quorum(lead *wsrep.Status) {
	if !lead.Primary() {
		return
	}
	var voters []Voter
	assumed := 0
	for _, m := range r.Members {
		if !m.InView {
			continue
		}
		v := Voter{Name: m.Name, Votes: m.Votes, Arbitrator: m.Arbitrator}
		if v.Votes < 0 {
			v.Votes = 1
			assumed++
		}
		if m.Status != nil && m.Status.Options["gmcast.segment"] != "" {
			v.DC = "segment " + m.Status.Options["gmcast.segment"]
		}
		voters = append(voters, v)
	}
	if len(voters) != lead.Size {
		r.Unknown = append(r.Unknown, fleet.Trouble{What: "quorum", Why: fmt.Sprintf("the component has %d members, and %d are known", lead.Size, len(voters)), Remedy: "set wsrep_node_incoming_address on each node, or GRANT SELECT ON mysql.wsrep_cluster_members"})
		return
	}
	if assumed > 0 {
		r.Unknown = append(r.Unknown, fleet.Trouble{What: "the votes of " + digits.Counted(assumed, "member"), Why: "they were not seen; taken for 1 each"})
	}
	if votesOf(voters) == 0 || dataOf(voters) == 0 || len(voters) > MostVoters {
		return
	}
	if len(Centres(voters)) < 2 {
		for i := range voters {
			voters[i].DC = ""
		}
	}
	p := Make(voters)
	r.Quorum = &p
	r.Words = append(r.Words, p.Words[0])
	if p.Crashes == 0 && len(voters) > 1 {
		f := r.find("galera.quorum", "", fleet.SeverityWarning, "the next crash stops the cluster: "+p.Words[0], "those that are left would have no majority, and refuse statements")
		f.Advice = "start the nodes that are down"
		if len(p.Better) > 0 {
			f.Advice += "; or add " + p.Better[0]
		}
	}
}

// forecasts tell what nodes that are down will get.
func (r *Report) forecasts(lead *wsrep.Status, down []Node) {
	var members []wsrep.Status
	for _, m := range r.Members {
		if m.Status != nil && m.InView && m.Status.Primary() {
			members = append(members, *m.Status)
		}
	}
	all := len(members) == lead.Size-len(r.names(func(m *Member) bool { return m.Arbitrator }))
	for _, n := range down {
		t := Forecast(n, members, all)
		t.Words += r.lasts(t)
		r.Transfers = append(r.Transfers, t)
	}
}

// lasts says how long the gcache holds what is written, at the rate of the look.
func (r *Report) lasts(t Transfer) string {
	window := r.window()
	if t.Kind != IST || window <= 0 {
		return ""
	}
	return "; at the present rate of writes the gcache holds about " + digits.Age(window)
}

// window is for how many seconds of writing at the present rate the smallest gcache has room; 0: unknown, or nothing is written.
func (r *Report) window() (seconds float64) {
	for _, m := range r.Members {
		if m.Status == nil || m.BytesRate <= 0 {
			continue
		}
		if size, ok := wsrep.Size(m.Status.Options["gcache.size"]); ok && (seconds == 0 || size/m.BytesRate < seconds) {
			seconds = size / m.BytesRate
		}
	}
	return seconds
}
