package advise

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
)

// Member is a server as it is compared with the others that are asked together with it.
type Member struct {
	Name, Group string // as the user calls them; the group may be ""
	mysql.Server
	Settings *differ.Description // its settings; nil: not known
	Channels []Channel

	UUID, ID, Port string // server_uuid, server_id, and the port that it listens on
	Cluster        string // of Galera, or of Group Replication; "": none
	// Executed is which transactions its binary log has had, in the server's words; Later the same, read after Executed was read of all members.
	Executed, Later string
}

// TogetherChecks are what Together looks for.
func TogetherChecks() []Check {
	return []Check{{errantID, "transactions that a replica has and its source has not; of servers that are asked together", ""}, {driftID, "settings that the next start takes back, or that differ from those of most servers of the group", "variables_info; SYSTEM_VARIABLES"}}
}

// Together looks at servers beside each other; what it finds is by the order of the members.
func Together(list []Member) [][]Finding {
	found := make([][]Finding, len(list))
	for i := range list {
		for _, ch := range list[i].Channels {
			if j := sourceOf(list, i, ch); j >= 0 {
				found[i] = append(found[i], named(errantID, errant(&list[i], &list[j]))...)
			}
		}
	}
	for _, group := range groupsOf(list) {
		drifts(list, group, found)
	}
	return found
}

// sourceOf is the member that a channel replicates from, or -1; see follow.Source.
func sourceOf(list []Member, of int, ch Channel) int {
	known := make([]follow.Server, len(list))
	for i, m := range list {
		known[i] = follow.Server{UUID: m.UUID, NoUUID: m.UUID == "", ID: m.ID}
		known[i].Port, _ = strconv.Atoi(m.Port)
	}
	return follow.Source(known, of, follow.Channel{Source: ch.Source, SourceUUID: ch.SourceUUID, SourceID: ch.SourceID})
}

// groupsOf are the members that belong together: by the config file, by a cluster, or because one replicates from the other.
func groupsOf(list []Member) (groups [][]int) {
	of := make([]int, len(list))
	for i := range of {
		of[i] = i
	}
	join := func(a, b int) {
		from, to := of[a], of[b]
		for i := range of {
			if of[i] == from {
				of[i] = to
			}
		}
	}
	for i := range list {
		for j := range i {
			if a, b := &list[i], &list[j]; a.Group != "" && a.Group == b.Group || a.Cluster != "" && a.Cluster == b.Cluster {
				join(i, j)
			}
		}
		for _, ch := range list[i].Channels {
			if j := sourceOf(list, i, ch); j >= 0 {
				join(i, j)
			}
		}
	}
	by := map[int][]int{}
	for i, g := range of {
		by[g] = append(by[g], i)
	}
	for _, g := range slices.Sorted(maps.Keys(by)) {
		if len(by[g]) > 1 {
			groups = append(groups, by[g])
		}
	}
	return groups
}

// roles are settings in which a source and its replicas differ on purpose.
var roles = map[string]bool{"read_only": true, "super_read_only": true, "event_scheduler": true, "auto_increment_offset": true, "skip_replica_start": true, "skip_slave_start": true, "offline_mode": true,
	"rpl_semi_sync_source_enabled": true, "rpl_semi_sync_replica_enabled": true, "rpl_semi_sync_master_enabled": true, "rpl_semi_sync_slave_enabled": true, "wsrep_desync": true}

// drifts compares the settings of a group: with what most of them have, or of two each with the other.
func drifts(list []Member, group []int, found [][]Finding) {
	var at []int
	var descriptions []*differ.Description
	for _, i := range group {
		if list[i].Settings != nil {
			at, descriptions = append(at, i), append(descriptions, list[i].Settings)
		}
	}
	split := map[string]bool{}
	switch len(at) {
	case 0, 1:
		return
	case 2:
		for _, d := range differ.Compare(descriptions[0], descriptions[1], false).Differences {
			if drifting(&d) {
				split[d.Name] = true
			}
		}
	default:
		drift := differ.Group(descriptions, false)
		for _, name := range drift.Split {
			if d := (differ.Difference{Area: differ.AreaVariables, Name: name}); drifting(&d) {
				split[name] = true
			}
		}
		for k, report := range drift.Servers {
			for _, d := range report.Differences {
				if drifting(&d) && !split[d.Name] {
					found[at[k]] = append(found[at[k]], named(driftID, []Finding{driftFrom(&list[at[k]], &d, len(at))})...)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(split)) {
		for _, i := range at {
			found[i] = append(found[i], named(driftID, []Finding{driftAmong(list, at, name)})...)
		}
	}
}

// drifting reports whether a difference is one of a setting of which it is known that it matters, and that is not meant to differ.
func drifting(d *differ.Difference) bool {
	if d.Area != differ.AreaVariables || roles[d.Name] || strings.Contains(d.Name, " / ") || !differ.Known(d.Name) {
		return false
	}
	return !slices.Contains([]differ.Rank{differ.RankVersion, differ.RankNames}, d.Rank)
}

const driftDoubt = "it may be meant so, as on a replica for reports; which value is right, people know"

// driftFrom says that a member has another value than most.
func driftFrom(m *Member, d *differ.Difference, all int) Finding {
	own, most := m.Settings.Variables[d.Name], d.A
	f := Finding{Object: d.Name, Severity: severityOfRank(d.Rank), Why: d.Why, Sure: Likely, Doubt: driftDoubt, Cost: Cost{Risk: "servers of a group behave differently"},
		What:     fmt.Sprintf("%s is %s; most of the %d servers of its group have %s", d.Name, shown(own), all, shown(most)),
		Evidence: []string{d.Name + " = " + shown(own)}}
	if len(d.What) > 0 { // words of a list
		f.What = fmt.Sprintf("%s is not what most of the %d servers of its group have: %s", d.Name, all, strings.Join(d.What, "; "))
		f.Advice = "give it the value of the others, or them its own"
		return f
	}
	start, known := startOnly(d.Name)
	if !known || most == "(none)" {
		f.Advice = "give it the value of the others, or them its own"
		return f
	}
	change(&f, &Server{Server: m.Server}, d.Name, own, most, start)
	if f.Statement != "" {
		f.Effect = "at once; sessions that are open may keep what they have"
	}
	return f
}

// driftAmong says that members differ, and no value is that of most.
func driftAmong(list []Member, at []int, name string) Finding {
	by := map[string][]string{}
	for _, i := range at {
		v := shown(list[i].Settings.Variables[name])
		by[v] = append(by[v], list[i].Name)
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, v+" on "+strings.Join(by[v], ", "))
	}
	why, rank := differ.Meaning(name)
	return Finding{Object: name, Severity: severityOfRank(rank), What: name + " is not the same on all servers of a group: " + strings.Join(parts, "; "), Why: why, Evidence: parts,
		Advice: "decide which value is right, and give it to all", Sure: Likely, Doubt: driftDoubt, Cost: Cost{Risk: "servers of a group behave differently"}}
}

func severityOfRank(r differ.Rank) fleet.Severity {
	if r == differ.RankData {
		return fleet.SeverityWarning
	}
	return fleet.SeverityInfo
}

// startOnly says of a setting that a rule speaks of whether only a start of the server sets it.
func startOnly(name string) (start, known bool) {
	for _, c := range settingsRules() {
		for i := range c.rules {
			r := &c.rules[i]
			if slices.Contains(r.names, name) && (r.start || r.want != "") {
				return r.start, true
			}
		}
	}
	return false, false
}

const errantID = "repl.errant_gtid"

// mostListed is how many transactions are counted one by one.
const mostListed = 1000

// errant finds transactions that a replica has, and its source has not: they were committed on the replica itself, or on a server that is gone. What
// the source has was read after what the replica has, so that nothing is on its way.
func errant(m, source *Member) []Finding {
	beyond, err := mysql.ErrantTransactions(m.Executed, source.Later)
	if err != nil || beyond.Empty() {
		return nil
	}
	object, extra, numbers := beyond.Object, beyond.String(), beyond.Numbers(mostListed)
	f := Finding{Object: object, Severity: fleet.SeverityWarning, What: "the replica has transactions that its source " + source.Name + " has not: " + extra,
		Why:      "its rows are others than the source's; if it becomes the source, other replicas ask it for these transactions, and stop if its logs do not have them any more",
		Evidence: []string{object + " here has " + extra, "on " + source.Name + ": " + shown(source.Later)}, Cost: Cost{Risk: "a failover breaks replicas"},
		Advice: "risso gtid errant says what they changed, risso gtid repair plans how the replica gets rid of them; then risso checksum --mend makes its rows equal; where that refuses, risso replica rebuild, before it may become the source"}
	if m.ByDomain() {
		f.Sure, f.Doubt = Likely, "a source that was made from a backup without its binary log does not know what it had"
	}
	if n := len(numbers); n > 0 {
		f.Evidence = append(f.Evidence, digits.Plural(n, "transaction", "transactions"))
	}
	return []Finding{f}
}
