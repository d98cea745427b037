package rules

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// restartTold is for how long a restart is reported: it is over when it is seen, and must not be missed.
const restartTold = 5 * time.Minute

// restarted reports that a server was started again, and why it had ended, if its error log or the kernel says.
func restarted(r *round) {
	r.kills()
	if r.Restarted.IsZero() || r.Now.Sub(r.Restarted) > restartTold {
		return
	}
	c := candidate{id: "server.restarted", severity: fleet.SeverityWarning, chart: "throughput", at: r.Restarted, now: true, head: "the server has been up"}
	why := read.StopCause(r.Log)
	if at := r.j.counts["killed at"]; at != 0 && math.Abs(float64(r.Restarted.Unix())-at) < restartTold.Seconds() {
		c.severity = fleet.SeverityCritical
		why = "the kernel killed a process of its host for want of memory"
	} else if strings.HasPrefix(why, read.Crashed) {
		c.severity = fleet.SeverityCritical
	}
	if why == "" {
		why = "why it had ended is not known: its error log cannot be read here"
	}
	c.tail = ", after a restart: " + why
	r.add(c)
}

// kills notes when the kernel of the server's host killed a process last.
func (r *round) kills() {
	n, ok := r.Host.value("node_vmstat_oom_kill")
	if !ok {
		return
	}
	if before, known := r.j.counts["oom kills of host"]; known && n > before {
		r.j.counts["killed at"] = float64(r.Now.Unix())
	}
	r.j.counts["oom kills of host"] = n
}

// lastWords are the last lines of an error log as the end of a sentence.
func lastWords(log []string) string {
	const most, width = 2, 200
	if len(log) == 0 {
		return ""
	}
	var parts []string
	for _, line := range log[max(len(log)-most, 0):] {
		parts = append(parts, oneline.Cut(oneline.Of(line), width))
	}
	return "; its error log ends with: " + strings.Join(parts, " | ")
}

// The ages at which a transaction is spoken of.
const (
	longTransaction     = 10 * time.Minute
	veryLongTransaction = 4 * time.Hour
)

// longTransactions finds transactions that stay open: what they have changed cannot be purged, and what they have locked nobody gets.
func longTransactions(r *round) {
	for _, x := range r.Old {
		age := time.Duration(x.Session.Open * float64(time.Second))
		if age < longTransaction {
			continue
		}
		b := x.Session
		b.Statement = string(sqltext.Redact(nil, []byte(b.Statement))) // a finding is kept, and sent
		began := r.Now.Add(-age)
		if before, ok := r.j.counts["began "+fmt.Sprint(b.ID)]; ok && math.Abs(before-float64(began.Unix())) < 5 {
			began = time.Unix(int64(before), 0)
		}
		r.j.counts["began "+fmt.Sprint(b.ID)] = float64(began.Unix())
		c := candidate{id: "trx.long", subject: blockers.Session(&b), severity: fleet.SeverityWarning, value: x.Session.Open, chart: "history", at: began, hold: -1,
			head: blockers.Session(&b) + " has had a transaction open", remedy: blockers.Kill(&read.LockWait{Blocker: b})}
		b.Open = 0
		c.tail = ": " + blockers.Doing(&b)
		switch holds := holding(x); {
		case holds != "":
			c.tail += "; it holds " + holds
			if age >= veryLongTransaction {
				c.severity = fleet.SeverityCritical
			}
		default:
			c.tail += "; as long as it stays open, old versions of rows may be kept for it"
		}
		r.add(c)
	}
}

// holding says what a transaction holds, in words.
func holding(x read.OldTransaction) string {
	var parts []string
	if x.Modified > 0 {
		parts = append(parts, "undo of "+plural(x.Modified, "row", "rows"))
	}
	if x.Locked > 0 {
		parts = append(parts, "locks of about "+plural(x.Locked, "row", "rows"))
	}
	return strings.Join(parts, " and ")
}

// aborted finds clients that do not get in, or leave without a word.
func aborted(r *round) {
	const few, many = 60, 1200 // a minute
	connects, ok := r.rate(statusPrefix + "aborted_connects")
	clients, ok2 := r.rate(statusPrefix + "aborted_clients")
	if !ok && !ok2 {
		return
	}
	refused, broken := r.within("aborted connects", connects, time.Minute), r.within("aborted clients", clients, time.Minute)
	worse := max(refused, broken)
	if worse < few {
		return
	}
	c := candidate{id: "conn.aborted", severity: fleet.SeverityWarning, value: worse, chart: "connections", remedy: "SHOW GLOBAL STATUS LIKE '%abort%'"}
	if r.text("performance_schema") == "ON" {
		c.remedy = "SELECT IP, HOST, SUM_CONNECT_ERRORS, COUNT_AUTHENTICATION_ERRORS, COUNT_HANDSHAKE_ERRORS, LAST_SEEN FROM performance_schema.host_cache ORDER BY LAST_SEEN DESC LIMIT 20"
	}
	if worse >= many {
		c.severity = fleet.SeverityCritical
	}
	if refused >= broken {
		c.head = fmt.Sprintf("about %s connections a minute fail before they are established", digits.Number(math.Round(refused)))
		c.tail = ": wrong passwords, port scans, broken health checks, or clients without the right TLS"
	} else {
		c.head = fmt.Sprintf("about %s clients a minute leave without closing their connection", digits.Number(math.Round(broken)))
		c.tail = ": they die, time out, or are cut off by a firewall"
	}
	r.add(c)
}

// certificateEnd is the metric of when a server's TLS certificate ends, in unix seconds, if that takes a connection to find out.
const certificateEnd = "risso_certificate_not_after_seconds"

// certificate finds a server whose TLS certificate ends soon, or has ended.
func certificate(r *round) {
	end, ok := r.first(certificateEnd, statusPrefix+"ssl_server_not_after")
	if !ok {
		return
	}
	at := time.Unix(int64(end), 0)
	left := at.Sub(r.Now)
	const warning, critical = 21 * 24 * time.Hour, 3 * 24 * time.Hour
	if left >= warning {
		return
	}
	// The value grows as the days run out.
	c := candidate{id: "cert.server", severity: fleet.SeverityWarning, value: max(warning-left, time.Second).Hours() / 24, chart: "connections", whole: true,
		head: "the server's TLS certificate ends on " + at.In(r.Now.Location()).Format("2006-01-02 15:04") + ", in " + digits.Age(max(left.Seconds(), 0))}
	if left < critical {
		c.severity = fleet.SeverityCritical
	}
	if left <= 0 {
		c.head = "the server's TLS certificate ended on " + at.In(r.Now.Location()).Format("2006-01-02 15:04") + ": clients that verify it are refused"
	}
	file := "the file that ssl_cert names"
	if f := r.text("ssl_cert"); f != "" {
		file = oneline.Of(f)
	}
	if c.remedy = r.server().ReloadCertificate(); c.remedy != "" {
		c.head += "; the remedy reads it anew, once a new one is in " + file
	} else {
		c.head += "; put a new one into " + file + " and restart the server"
	}
	r.add(c)
}

// clockSkew finds a server whose clock is not that of Risso's machine.
func clockSkew(r *round) {
	skew, ok := r.value(read.ClockSkew)
	const warning, critical = 2, 300
	if !ok || math.Abs(skew) < warning {
		return
	}
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	c := candidate{id: "clock.skew", severity: fleet.SeverityWarning, value: math.Abs(skew), chart: "throughput", head: "the server's clock is wrong, or Risso's",
		tail: fmt.Sprintf(": it is %s %s that of Risso's machine; let NTP (chrony) set both", digits.Age(math.Abs(skew)), way)}
	if math.Abs(skew) >= critical {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// blind finds what could be read before and is refused now: Risso would be silent about it.
func blind(r *round) {
	now := map[string]bool{}
	for _, g := range r.Gaps {
		if !strings.HasSuffix(g.Why, read.Denied) {
			continue
		}
		key := "blind to " + g.What
		now[g.What] = true
		_, before := r.j.held["observer.blind\x00"+g.What]
		if before || r.j.blindTo != nil && !r.j.blindTo[g.What] {
			r.j.flags[key] = true
		}
		if !r.j.flags[key] {
			continue
		}
		r.add(candidate{id: "observer.blind", subject: g.What, severity: fleet.SeverityWarning, chart: "cost_time", remedy: g.Remedy,
			head: "Risso can no longer read: " + g.What, tail: ": " + cut(g.Why, 200)})
	}
	for what := range r.j.blindTo {
		if !now[what] {
			delete(r.j.flags, "blind to "+what)
		}
	}
	r.j.blindTo = now
}
