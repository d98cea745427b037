package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// Known is a kind of finding that there is, whether anything has it now or not.
type Known struct {
	ID   string     // stands for all that begin with what is before its *, if it ends so
	Unit string     // of its value, as monitoring writes units: %, s, ms, c; empty: a number, or no value
	Of   fleet.Kind // what can have it; empty: servers and hosts
}

// Kinds lists the findings that there are, in the order of README.md.
func Kinds() []Known {
	const server, host = fleet.KindServer, fleet.KindHost
	return []Known{
		{"server.down", "", ""}, {"server.hung", "", server}, {"server.restarted", "", server}, {"server.stall", "", server}, {"conn.saturation", "%", server},
		{"conn.aborted", "", server}, {"cert.server", "", server}, {"clock.skew", "s", server}, {"threads.pileup", "", server}, {"commit.wait", "", server},
		{"commit.semisync", "", server}, {"mdl.blocker", "", server}, {"lock.global", "", server}, {"lock.user", "", server}, {"lock.blocker", "", server},
		{"redo.pressure", "%", server}, {"trx.long", "s", server}, {"undo.history", "", server}, {"bp.starved", "", server}, {"deadlock.rate", "", server}, {"repl.stopped", "", server},
		{"repl.lag", "", server}, {"repl.writable", "", server}, {"galera.non_primary", "", server}, {"galera.not_synced", "", server},
		{"galera.flow_control", "", server}, {"primary.*", "", server}, {"intermediate.*", "", server}, {"server.no_access", "", server}, {"server.offline", "", server}, {"server.log_closed", "", server}, {"server.no_room", "", server},
		{"repl.frozen", "", server}, {"repl.split_brain", "", server}, {"repl.errant_gtid", "", server}, {"repl.purged", "", server}, {"repl.delayed", "", server}, {"repl.config", "", server},
		{"repl.filter", "", server}, {"repl.flavour", "", server}, {"repl.gtid_modes", "", server}, {"repl.position", "", server}, {"repl.tls", "", server}, {"repl.version", "", server},
		{"repl.version_gap", "", server}, {"ring.*", "", server}, {"group.*", "", server}, {"semisync.*", "", server}, {"topology.*", "", server}, {"failover.*", "", server}, {"host.throttled", "%", server}, {"mem.overcommit", "%", server}, {"observer.blind", "", server}, {"observer.disk", "%", ""}, {"observer.lost", "", ""}, {"observer.silent", "s", ""}, {"observer.state", "", ""}, {"observer.controller", "", ""}, {"observer.late", "", ""}, {"host.cpu", "", host},
		{"host.steal", "%", host}, {"host.pressure_io", "%", host}, {"host.pressure_memory", "%", host}, {"host.swap", "", host}, {"host.oom", "", host},
		{"host.io_slow", "ms", host}, {"disk.full", "%", host}, {"disk.trend", "", host}, {"disk.readonly", "", host}, {"plan.*", "", server},
		{"protect.*", "", server}, {"advice.*", "", server}, {"rule.*", "", ""}, {"rules.*", "", ""},
	}
}

// KindOf is the kind of a finding by its ID.
func KindOf(id string) (Known, bool) {
	list := Kinds()
	i := slices.IndexFunc(list, func(k Known) bool { return k.fits(id) })
	if i < 0 {
		return Known{}, false
	}
	return list[i], true
}

func (k Known) fits(id string) bool {
	before, all := strings.CutSuffix(k.ID, "*")
	return k.ID == id || all && strings.HasPrefix(id, before)
}

// CheckName says what is wrong with the name of a finding, which may contain *, in a setting: one that nothing can ever have fits nothing,
// without a word. An empty name fits all.
func CheckName(name string) error {
	if name == "" || len(Meant(name)) > 0 {
		return nil
	}
	return fmt.Errorf("there is no finding %q: docs/check.md lists them", name)
}

// Meant are the kinds of findings that a name, which may contain *, can mean.
func Meant(name string) []Known {
	return slices.DeleteFunc(Kinds(), func(k Known) bool {
		if k.fits(name) || pattern.Stars(name, k.ID) {
			return false
		}
		before, all := strings.CutSuffix(k.ID, "*")
		fixed, _, _ := strings.Cut(name, "*")
		return !all || !strings.HasPrefix(fixed, before) // protect.f* means some of protect.*
	})
}
