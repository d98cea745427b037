package galera

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// flow says whether writes pause, and for whom.
func (r *Report) flow() {
	for _, m := range r.Members {
		if m.Status != nil {
			r.Flow.Share, r.Flow.SoFar = max(r.Flow.Share, m.Paused), max(r.Flow.SoFar, m.Status.Paused)
		}
	}
	severity, now := wsrep.PausedSeverity(r.Flow.Share)
	soFar := r.Flow.SoFar >= wsrep.PausedSoFar
	if !now && !soFar {
		return
	}
	asks := func(m *Member) float64 { // how much it asked for the pauses that are spoken of
		switch {
		case m.Status == nil:
			return 0
		case now && m.Status.Pausing:
			return max(m.Asked, 1)
		case now:
			return m.Asked
		}
		return m.Status.PausesSent
	}
	top := 0.0
	for i := range r.Members {
		top = max(top, asks(&r.Members[i]))
	}
	// One that asked a tenth as often as the slowest is no cause.
	r.Flow.Causes = r.names(func(m *Member) bool { return top > 0 && asks(m) > top/10 })
	what := wsrep.PausedWords(r.Flow.Share)
	if !now {
		severity, what = fleet.SeverityWarning, "Galera flow control paused writes "+digits.Percent(r.Flow.SoFar)+" of the time since the counters began, and "+digits.Percent(max(r.Flow.Share, 0))+" now"
	}
	f := r.find("galera.flow_control", strings.Join(r.Flow.Causes, ", "), severity, what, "a member that cannot apply fast enough lets all others wait")
	f.Evidence = []string{"wsrep_flow_control_paused = " + digits.Three(r.Flow.SoFar)}
	unseen := r.names(func(m *Member) bool { return m.InView && m.Status == nil && !m.Arbitrator })
	switch {
	case len(r.Flow.Causes) == 0 && len(unseen) > 0:
		f.What += "; no member that was seen asks for it, so it is " + strings.Join(unseen, " or ") + ", which was not seen"
		f.Sure, f.Doubt = fleet.Likely, "a member that left may have asked before"
	case len(r.Flow.Causes) == 0:
		f.What += "; which member asked for it was not seen: it may have left"
		f.Sure, f.Doubt = fleet.Likely, "the counters of a member that was restarted began anew"
	default:
		f.What += "; " + strings.Join(r.Flow.Causes, ", ") + " asks for it"
	}
	for i := range r.Members {
		m := &r.Members[i]
		if !slices.Contains(r.Flow.Causes, m.Name) || m.Status == nil {
			continue
		}
		f.Evidence = append(f.Evidence, r.cause(m)...)
		name, value := m.Status.Appliers()
		if n, err := strconv.Atoi(value); err == nil && n <= 1 && f.Statement == "" {
			f.Statement, f.Undo = "SET GLOBAL "+name+" = "+wsrep.MoreAppliers, "SET GLOBAL "+name+" = "+value
			f.Effect = "on " + m.Name + ": at once; what can be applied side by side is"
		}
	}
	f.Advice = "look at what else the slow member does (backup, long reads, its disk), give large tables primary keys, and split large transactions"
	r.Flow.Words = append(r.Flow.Words, f.What)
	r.Words = append(r.Words, f.What)
}

// cause is what shows why a member is slow.
func (r *Report) cause(m *Member) []string {
	s := m.Status
	name, value := s.Appliers()
	list := []string{fmt.Sprintf("%s: wsrep_flow_control_sent = %s (%s in the look), wsrep_local_recv_queue = %s of %s at which it asks for a pause, %s = %s", m.Name, digits.Count(s.PausesSent), digits.Count(m.Asked),
		digits.Count(s.RecvQueue), digits.Count(s.QueueLimit()), name, value)}
	if len(s.Tables) > 0 {
		list = append(list, m.Name+": tables without a primary key, whose rows are looked for in the whole table: "+some(s.Tables))
	}
	return list
}

// some are the first of a list.
func some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
}

// Lost is how many of its transactions lost against one of another member since the counters began, at least: one that is rolled back while it is certified is in
// both counters.
func (m *Member) Lost() float64 { return max(m.Status.CertFailures, m.Status.BFAborts, 0) }

// conflicts say which transactions lose against those of other members, and about which tables.
func (r *Report) conflicts() {
	var busy []string
	logged := 0
	var failed, total float64
	tables := map[string]int{}
	var all []HotTable
	unlogged := r.names(func(m *Member) bool {
		return m.Status != nil && strings.EqualFold(m.Status.Variables["wsrep_log_conflicts"], "OFF")
	})
	for _, m := range r.Members {
		if m.Status == nil {
			continue
		}
		failed += max(m.Failed, 0)
		if n := m.Lost(); n > 0 {
			total += n
			busy = append(busy, fmt.Sprintf("%s: wsrep_local_cert_failures = %s, wsrep_local_bf_aborts = %s (%s in the look)", m.Name, digits.Count(m.Status.CertFailures), digits.Count(m.Status.BFAborts), digits.Count(max(m.Failed, 0))))
		}
		if m.Conflicts == nil {
			continue
		}
		logged += m.Conflicts.Logged
		for _, t := range m.Conflicts.Tables {
			if tables[t.Table] == 0 {
				all = append(all, t)
			}
			tables[t.Table] += t.Conflicts
		}
	}
	if total == 0 && logged == 0 {
		return
	}
	severity := fleet.SeverityInfo
	if r.Looked > 0 && failed/r.Looked >= 1 {
		severity = fleet.SeverityWarning
	}
	what := "at least " + digits.Counted(int64(total), "transaction") + " lost against one of another member since the counters began, " + digits.Thousands(int64(failed)) + " in the look"
	if total == 0 {
		what = "the error logs have " + digits.Counted(logged, "conflict") + ", all from before the counters began"
	}
	f := r.find("galera.conflicts", "", severity, what,
		"two members wrote the same rows at once: the later one gets error 1213 and has to be tried again")
	f.Evidence = busy
	slices.SortStableFunc(all, func(a, b HotTable) int { return tables[b.Table] - tables[a.Table] })
	for i, t := range all {
		if i == mostRows {
			break
		}
		text := "table " + t.Table + ": " + digits.Counted(tables[t.Table], "conflict") + " in the error logs"
		for _, row := range t.Rows {
			text += fmt.Sprintf("; %d × %s", row.Lost, row.Statement)
		}
		f.Evidence = append(f.Evidence, text)
	}
	if len(all) > 0 {
		f.Object = all[0].Table
		f.What += "; most about table " + all[0].Table
		f.Advice = "send what writes to " + all[0].Table + " to one member, keep its transactions short, and let the application try again on error 1213"
	} else {
		f.Advice = "send what writes to the same rows to one member, and let the application try again on error 1213"
	}
	if len(unlogged) > 0 {
		f.Statement, f.Undo = "SET GLOBAL wsrep_log_conflicts = ON", "SET GLOBAL wsrep_log_conflicts = OFF"
		f.Effect = "on " + strings.Join(unlogged, ", ") + ": the error log has the statements of each conflict from then on, with their values"
		if len(all) == 0 {
			f.What += "; about which tables, nothing tells: wsrep_log_conflicts is OFF"
		}
	} else if len(all) == 0 {
		f.What += "; about which tables is not known: " + strings.Join(r.unread(), "; ")
	}
}

// unread says why error logs were not read.
func (r *Report) unread() (list []string) {
	for _, m := range r.Members {
		if m.Status != nil && m.Conflicts == nil {
			list = append(list, m.Name+": "+m.LogUnread)
		}
	}
	if len(list) == 0 {
		return []string{"the last lines of the error logs have no conflict"}
	}
	return list
}

// option is a finding about the provider's options.
type option struct {
	id, name string
	bad      func(v string) bool
	want     string
	severity fleet.Severity
	what     string
	means    string
	doubt    string
}

// The bounds of gcs.fc_limit outside of which it is spoken of: the provider's own default, and a queue that is seconds long.
const (
	shortQueue = 16
	longQueue  = 1000
)

func options() []option {
	number := func(f func(v float64) bool) func(string) bool {
		return func(text string) bool {
			v, err := strconv.ParseFloat(text, 64)
			return err == nil && f(v)
		}
	}
	yes := func(v string) bool { return strings.EqualFold(v, "yes") || strings.EqualFold(v, "true") || v == "1" }
	no := func(v string) bool { return v != "" && !yes(v) }
	return []option{
		{id: "galera.ignore_sb", name: "pc.ignore_sb", bad: yes, want: "no", severity: fleet.SeverityCritical, what: "each half of a cluster that falls apart goes on", means: "both take writes that the other never gets: a split brain"},
		{id: "galera.ignore_quorum", name: "pc.ignore_quorum", bad: yes, want: "no", severity: fleet.SeverityCritical, what: "each part of a cluster that falls apart goes on", means: "all take writes that the others never get: a split brain"},
		{id: "galera.recovery", name: "pc.recovery", bad: no, severity: fleet.SeverityInfo, what: "after a power failure of all nodes the cluster does not come back by itself", means: "somebody has to find the node to bootstrap"},
		{id: "galera.fc_limit", name: "gcs.fc_limit", bad: number(func(v float64) bool { return v < shortQueue }), want: "16", severity: fleet.SeverityWarning, what: "so few waiting write sets let all members pause", means: "a moment's queue stops the writes of the whole cluster"},
		{id: "galera.fc_limit", name: "gcs.fc_limit", bad: number(func(v float64) bool { return v > longQueue }), want: "100", severity: fleet.SeverityInfo, what: "a member may be so many write sets behind before the others wait", means: "reads on it are old, and more transactions lose against earlier ones", doubt: "where one member takes all writes, it costs little"},
	}
}

// shortWindow is for how many seconds of writing the gcache should have room: a restart, or a short repair.
const shortWindow = 30 * 60

// settings finds what endangers the cluster, on all members that were seen.
func (r *Report) settings() {
	found := map[string]int{}
	add := func(m *Member, f fleet.Advice) {
		key := f.ID + "\x00" + f.Object + "\x00" + f.What
		if i, ok := found[key]; ok {
			r.Findings[i].Servers = append(r.Findings[i].Servers, m.Name)
			return
		}
		f.Servers = []string{m.Name}
		found[key] = len(r.Findings)
		r.Findings = append(r.Findings, f)
	}
	for i := range r.Members {
		m := &r.Members[i]
		if m.Status == nil {
			continue
		}
		if v := m.Status.Variables["wsrep_reject_queries"]; wsrep.Rejects(v) {
			add(m, fleet.Advice{ID: "galera.rejects", Object: "wsrep_reject_queries", Severity: fleet.SeverityCritical, Sure: fleet.Certain, What: wsrep.RejectsWords(v), Why: "clients get error 1047; for wsrep_ready and wsrep_local_state the member is well",
				Evidence: []string{"wsrep_reject_queries = " + v}, Statement: wsrep.AcceptQueries, Undo: "SET GLOBAL wsrep_reject_queries = " + v, Effect: "at once"})
		}
		for _, w := range wsrep.Settings() {
			if f, bad := variable(m.Status, w); bad {
				add(m, f)
			}
		}
		for _, o := range options() {
			v, ok := m.Status.Options[o.name]
			if !ok || !o.bad(v) {
				continue
			}
			f := fleet.Advice{ID: o.id, Object: o.name, Severity: o.severity, What: o.name + " is " + v + ": " + o.what, Why: o.means, Sure: fleet.Certain, Evidence: []string{o.name + " = " + v}}
			if o.want != "" {
				f.Statement, f.Undo = setOption(o.name, o.want), setOption(o.name, v)
				f.Effect = "at once; also change wsrep_provider_options in the option file, or the next restart takes it back"
			} else {
				f.Advice = "set pc.recovery=yes in wsrep_provider_options in the option file, and restart the server"
			}
			if o.doubt != "" {
				f.Sure, f.Doubt = fleet.Likely, o.doubt
			}
			add(m, f)
		}
		r.copies(m, add)
	}
}

func setOption(name, value string) string {
	return "SET GLOBAL wsrep_provider_options = '" + name + "=" + value + "'"
}

// variable judges one of the shared settings.
func variable(s *wsrep.Status, w wsrep.Setting) (fleet.Advice, bool) {
	for _, name := range w.Names {
		v, ok := s.Variables[strings.ToLower(name)]
		if !ok {
			continue
		}
		if !w.Bad(v) {
			return fleet.Advice{}, false
		}
		f := fleet.Advice{ID: "galera.config", Object: strings.ToLower(name), Severity: w.Severity, What: strings.ToLower(name) + " is " + v + ": " + w.What, Why: w.Means, Sure: fleet.Certain, Cost: fleet.AdviceCost{Risk: w.Risk},
			Evidence: []string{strings.ToLower(name) + " = " + v}}
		if w.Doubt != "" {
			f.Sure, f.Doubt = fleet.Likely, w.Doubt
		}
		switch {
		case w.Start:
			f.Advice = "set " + strings.ToLower(name) + " = " + w.Want + " below [mysqld] in the option file, and restart the server"
		case w.Want != "":
			quote := "'"
			if _, err := strconv.Atoi(w.Want); err == nil {
				quote = ""
			}
			f.Statement = "SET GLOBAL " + strings.ToLower(name) + " = " + quote + w.Want + quote
			f.Effect = "at once; also set it in the option file, or the next restart takes it back"
			if w.Sessions {
				f.Effect += "; sessions that are open keep the value that they have"
			}
		}
		return f, true
	}
	return fleet.Advice{}, false
}

// copies finds what makes state transfers long, or members differ.
func (r *Report) copies(m *Member, add func(*Member, fleet.Advice)) {
	s := m.Status
	switch method := s.Variables["wsrep_sst_method"]; method {
	case "rsync", "rsync_wan", "mysqldump":
		add(m, fleet.Advice{ID: "galera.sst_method", Object: "wsrep_sst_method", Severity: fleet.SeverityWarning, Sure: fleet.Certain, What: "wsrep_sst_method is " + method + ": the donor takes no writes while it copies its data",
			Why: "each node that comes back after too long takes another one out of service", Evidence: []string{"wsrep_sst_method = " + method},
			Statement: "SET GLOBAL wsrep_sst_method = '" + s.FreeSST + "'", Undo: "SET GLOBAL wsrep_sst_method = '" + method + "'",
			Advice: "its program has to be installed on all nodes, and wsrep_sst_auth to name an account that may back up", Effect: "from the next copy on that this node takes; also set it in the option file"})
	}
	if size, ok := wsrep.Size(s.Options["gcache.size"]); ok && m.BytesRate > 0 && size/m.BytesRate < shortWindow {
		add(m, fleet.Advice{ID: "galera.gcache", Object: "gcache.size", Severity: fleet.SeverityInfo, Sure: fleet.Likely, What: "gcache.size is " + s.Options["gcache.size"] + ": room for " + digits.Age(size/m.BytesRate) + " of writes at the rate of the look",
			Why: "a node that is away for longer takes a copy of all data (SST) when it comes back", Evidence: []string{"gcache.size = " + s.Options["gcache.size"], "write sets of " + digits.Bytes(m.BytesRate) + " a second"},
			Advice: "set gcache.size=" + gcacheFor(m.BytesRate) + " in wsrep_provider_options in the option file, and restart the node; it needs that much disk", Doubt: "the rate is that of a moment"})
	}
	if len(s.Tables) > 0 {
		add(m, fleet.Advice{ID: "galera.tables", Object: "", Severity: fleet.SeverityWarning, Sure: fleet.Certain, What: digits.Counted(len(s.Tables), "table") + " without a primary key, or not of InnoDB: " + some(s.Tables),
			Why: "Galera does not replicate other engines; without a primary key each changed row is looked for in the whole table on every other member, and DELETE may not be replicated", Evidence: s.Tables,
			Advice: "risso advise has the statement for each of them"})
	}
}

// gcacheFor is a size with room for shortWindow at a rate, as the option takes it.
func gcacheFor(rate float64) string {
	const gib = 1 << 30
	return fmt.Sprintf("%dG", int(rate*shortWindow/gib)+1)
}
