package publish

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// HAProxyOptions say how a configuration for HAProxy is to be.
type HAProxyOptions struct {
	Writes string // where clients that write connect, such as :3306
	Reads  string // where clients that read connect; empty: nowhere
	// Ask are the addresses of risso serve that checks ask. With Agents, the port at which each database host answers /primary and /replica itself, these are not
	// needed.
	Ask      []string
	Agents   int
	Local    string        // where HAProxy answers its own checks, from the answers of Ask; on this machine only
	Every    time.Duration // between two checks of a server
	Hold     time.Duration // how long servers stay as they are when nobody answers checks; 0: they are down at once
	MaxLag   time.Duration // how far a replica may be behind; 0: any
	Fallback bool          // reads go to the primary when no replica answers them
	Single   bool          // no other HAProxy leads clients to the group: they need not wait for it
}

// What a configuration for HAProxy has where nothing else is said.
const (
	DefaultHAProxyEvery = 500 * time.Millisecond
	DefaultHAProxyHold  = 10 * time.Second
	DefaultHAProxyLocal = "127.0.0.1:8307"
)

// askTime is how long an answer to a check may take.
const askTime = time.Second

// settle is how long all others must have had no before a server is told to be the primary: until each HAProxy has certainly asked again. One alone has no two
// primaries without that: it takes no connections while two are up, and ends those to the old one before.
func (o HAProxyOptions) settle() time.Duration {
	if o.Single {
		return 0
	}
	return o.Every + askTime
}

// check refuses what would make no configuration.
func (o *HAProxyOptions) check(members []group.Member) error {
	o.Every, o.Local = cmp.Or(o.Every, DefaultHAProxyEvery), cmp.Or(o.Local, DefaultHAProxyLocal)
	listen := []string{o.Writes}
	if o.Reads != "" {
		listen = append(listen, o.Reads)
	}
	if o.Agents == 0 {
		listen = append(listen, o.Local)
		if len(o.Ask) == 0 {
			return fault.Usagef("nobody is named who answers checks: the addresses of risso serve, or the port of agents")
		}
	}
	for _, a := range append(listen, o.Ask...) {
		if err := plainAddress(a); err != nil {
			return err
		}
	}
	switch {
	case o.Agents < 0 || o.Agents > math.MaxUint16:
		return fault.Usagef("port %d of agents: 1 to 65535", o.Agents)
	case o.Every < 50*time.Millisecond || o.Every > time.Minute:
		return fault.Usagef("checks each %s: 50ms to 1m", digits.Duration(o.Every))
	case o.Hold < 0:
		return fault.Usagef("hold %s: 0 or more", o.Hold)
	case len(members) == 0:
		return errors.New("the group has no servers")
	}
	for _, m := range members {
		if err := group.CheckName(m.Name); err != nil {
			return err
		}
		if err := plainAddress(m.Address); err != nil {
			return err
		}
	}
	return nil
}

// plainAddress refuses an address that a configuration would read as more than that.
func plainAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"'\#$,@|(){}`, r)
	}) {
		return fault.Usagef("%q: write it as host:port", a)
	}
	return nil
}

// HAProxy is a configuration that sends the clients of a group to its primary and its replicas. It has all members, and checks decide which of them takes
// clients: it need not be written again when the primary changes, only when servers join or leave, or weights change.
func HAProxy(name string, members []group.Member, o HAProxyOptions) (string, error) {
	if err := errors.Join(group.CheckName(name), o.check(members)); err != nil {
		return "", err
	}
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b group.Member) int { return cmp.Compare(a.Name, b.Name) })
	var b strings.Builder
	fmt.Fprintf(&b, "# Clients of group %s, by risso publish haproxy. Checks decide which server takes clients: write this anew only when\n# servers join or leave the group, or weights change.\n", name)
	b.WriteString("defaults\n  timeout connect 5s\n  timeout client 8h\n  timeout server 8h\n  timeout check 1s\n  option clitcpka\n  option srvtcpka\n")
	o.writes(&b, name, members)
	if o.Reads != "" {
		o.reads(&b, name, members)
	}
	if o.Agents == 0 {
		o.controllers(&b, name, members)
	}
	return b.String(), nil
}

// ms is a length as HAProxy reads it.
func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// checks are the lines that say how the servers of a backend are checked.
func (o HAProxyOptions) checks(b *strings.Builder, question string) {
	uri := "uri-lf"
	if o.Agents > 0 {
		uri = "uri"
	}
	fmt.Fprintf(b, "  option httpchk\n  http-check send meth GET %s %s\n  http-check expect status 200\n", uri, question)
	fmt.Fprintf(b, "  default-server inter %s fall 1 rise 1 on-marked-down shutdown-sessions init-addr last,libc,none\n", ms(o.Every))
}

// server is the line of one server; where is who answers its checks.
func (o HAProxyOptions) server(b *strings.Builder, m group.Member, weight int) {
	fmt.Fprintf(b, "  server %s %s check", m.Name, m.Address)
	if o.Agents > 0 {
		fmt.Fprintf(b, " port %d", o.Agents)
	} else {
		host, port, _ := net.SplitHostPort(o.Local) // checked
		fmt.Fprintf(b, " addr %s port %s", cmp.Or(host, "127.0.0.1"), port)
	}
	if weight > 0 {
		fmt.Fprintf(b, " weight %d", weight)
	}
	b.WriteString("\n")
}

// The names of the backends of a group.
func primaries(name string) string { return name + "_primary" }
func replicas(name string) string  { return name + "_replicas" }

// writes is the part for those who write.
func (o HAProxyOptions) writes(b *strings.Builder, name string, members []group.Member) {
	b.WriteString("\n# Writes. Sessions to a server that is the primary no longer are ended.\n")
	if o.Agents == 0 && !o.Single {
		fmt.Fprintf(b, "# A new primary is told %s after the old one was told for the last time: every check of that one has failed by then.\n", digits.Duration(o.settle()))
	}
	fmt.Fprintf(b, "frontend %s_writes\n  mode tcp\n  bind %s\n  tcp-request connection reject if { nbsrv(%s) gt 1 } # as before the first checks\n", name, o.Writes, primaries(name))
	fmt.Fprintf(b, "  default_backend %s\n\nbackend %s\n  mode tcp\n", primaries(name), primaries(name))
	if o.Agents > 0 {
		o.checks(b, "/primary")
	} else {
		o.checks(b, fmt.Sprintf("/primary/%%[srv_name]?group=%s&settle=%s", name, ms(o.settle())))
	}
	for _, m := range members {
		o.server(b, m, 0)
	}
}

// reads is the part for those who read.
func (o HAProxyOptions) reads(b *strings.Builder, name string, members []group.Member) {
	fmt.Fprintf(b, "\n# Reads.\nfrontend %s_reads\n  mode tcp\n  bind %s\n", name, o.Reads)
	if o.Fallback {
		fmt.Fprintf(b, "  use_backend %s if { nbsrv(%s) eq 0 }\n", primaries(name), replicas(name))
	}
	fmt.Fprintf(b, "  default_backend %s\n\nbackend %s\n  mode tcp\n  balance leastconn\n", replicas(name), replicas(name))
	question, lag := "/replica", "max-lag"
	if o.Agents == 0 {
		question, lag = fmt.Sprintf("/replica/%%[srv_name]?group=%s", name), "&max_lag"
	}
	if o.MaxLag > 0 {
		if o.Agents > 0 {
			question += "?"
		}
		question += lag + "=" + ms(o.MaxLag)
	}
	o.checks(b, question)
	most := 0.0
	for _, m := range members {
		most = max(most, m.Weight)
	}
	for _, m := range members {
		if m.Weight > 0 {
			o.server(b, m, max(1, int(math.Round(100*m.Weight/most))))
		}
	}
}

// controllers is the part that asks risso serve. Checks come to a frontend of HAProxy's own: it asks the next one when one does not answer or does not know, and
// where nobody answers it says of each server what it was.
func (o HAProxyOptions) controllers(b *strings.Builder, name string, members []group.Member) {
	fmt.Fprintf(b, "\n# Checks are asked of risso serve from here, of another one where one does not answer.")
	fmt.Fprintf(b, "\nfrontend %s_checks\n  mode http\n  bind %s\n  timeout client 5s\n  http-request set-var(txn.path) path\n  default_backend %s_controllers\n", name, o.Local, name)
	each := ms(askTime / time.Duration(len(o.Ask)+1)) // so that all are asked in time
	fmt.Fprintf(b, "\nbackend %s_controllers\n  mode http\n  balance first\n  timeout connect %s\n  timeout server %s\n", name, each, each)
	fmt.Fprintf(b, "  option httpchk\n  http-check send meth GET uri /group/%s\n  http-check expect status 200\n", name)
	fmt.Fprintf(b, "  retries %d\n  option redispatch 1\n  retry-on conn-failure empty-response junk-response response-timeout 500 502 503 504\n", len(o.Ask)-1)
	second := time.Second
	fall := max(1, int((o.Hold+second-1)/second))
	fmt.Fprintf(b, "  default-server inter %s fall %d rise 1 init-addr last,libc,none\n", ms(second), fall)
	for i, a := range o.Ask {
		fmt.Fprintf(b, "  server risso%d %s check\n", i+1, a)
	}
	if o.Hold <= 0 {
		return
	}
	fmt.Fprintf(b, "  # As long as nobody answers, for at most %s, each server stays what it was.\n", digits.Duration(time.Duration(fall)*second))
	for _, m := range members {
		o.held(b, "/primary/"+m.Name, primaries(name)+"/"+m.Name, fmt.Sprintf(" { nbsrv(%s) eq 1 }", primaries(name))) // before the first checks all are up
		if o.Reads != "" && m.Weight > 0 {
			o.held(b, "/replica/"+m.Name, replicas(name)+"/"+m.Name, "")
		}
	}
}

// held answers the check at a path with yes where a server is up and no answer came from Risso: HAProxy itself says 503 where it reaches nobody, 504 where nobody
// answers in time, and 502 where who was asked died before he answered.
func (o HAProxyOptions) held(b *strings.Builder, path, server, only string) {
	fmt.Fprintf(b, "  http-after-response set-status 200 if { status 500:504 } !{ res.hdr(Risso-Age) -m found } { nbsrv gt 0 } { var(txn.path) -m str %s } { srv_is_up(%s) }%s\n", path, server, only)
}
