package environ

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Difference is one difference between two environments.
type Difference struct {
	What string `json:"what"`
	A    string `json:"a"` // empty: it has none
	B    string `json:"b"`
}

func (d Difference) String() string {
	or := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	return fmt.Sprintf("%s: %s in A, %s in B", d.What, or(d.A), or(d.B))
}

// loadMatters is by how many threads two load averages must differ to be reported.
const loadMatters = 0.5

// Differences lists what differs between two environments: first the machines, then the way to the server, then the server
// and its variables. Names and places that make nothing faster are left out. For what only one could find
// out, only that is said.
func Differences(a, b *Environment) []Difference {
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil || b == nil:
		return []Difference{{What: "environment", A: recorded(a), B: recorded(b)}}
	}
	var out []Difference
	both := func(what, x, y string) {
		if x != y {
			out = append(out, Difference{what, x, y})
		}
	}
	for _, f := range facts(a, b) {
		both(f.name, f.a, f.b)
	}
	if x, y := a.Client.Load.One, b.Client.Load.One; x-y > loadMatters || y-x > loadMatters {
		both("load average before the run", digits.Three(x), digits.Three(y))
	}
	if (a.Server.Flavour == postgresFlavour) != (b.Server.Flavour == postgresFlavour) {
		return out // their variables have nothing to do with each other
	}
	return append(out, variables(a.Server, b.Server)...)
}

func recorded(e *Environment) string {
	if e == nil {
		return "not recorded"
	}
	return "recorded"
}

type pair struct{ name, a, b string }

// facts are the single facts of two environments side by side.
func facts(a, b *Environment) []pair {
	fa, fb := a.Facts(), b.Facts()
	var out []pair
	seen := map[string]string{}
	for _, f := range fb {
		seen[f.Name] = f.Value
	}
	for _, f := range fa {
		out = append(out, pair{f.Name, f.Value, seen[f.Name]})
		delete(seen, f.Name)
	}
	for _, f := range fb {
		if v, ok := seen[f.Name]; ok {
			out = append(out, pair{f.Name, "", v})
		}
	}
	return slices.DeleteFunc(out, func(p pair) bool { return passing[p.name] })
}

// passing are facts that differ from run to run and are reported elsewhere, or not at all.
var passing = map[string]bool{"load average before": true, "address": true, "free space": true, "host name": true, "data directory": true, "mounted at": true, "control group": true, "build": true}

// Fact is one line of an environment, for people.
type Fact struct{ Group, Name, Value string }

// Facts are an environment's facts for people, without the variables; what is not known is left out.
func (e *Environment) Facts() []Fact {
	var out []Fact
	group := ""
	add := func(name, value string) {
		if value != "" {
			out = append(out, Fact{group, name, value})
		}
	}
	c := e.Client
	group = "machine"
	add("host name", c.Hostname)
	add("CPU", c.CPUModel)
	add("cores", count(c.CPUs))
	add("NUMA nodes", count(c.NUMANodes))
	add("frequency governor", c.Governor)
	add("memory", size(c.MemoryBytes))
	add("swap", swap(c.SwapBytes, c.MemoryBytes))
	add("swappiness", c.Swappiness)
	add("transparent huge pages", c.HugePages)
	add("clock source", c.Clocksource)
	add("virtual machine", c.Virtual)
	add("container", c.Container)
	add("operating system", c.OS)
	add("kernel", c.Kernel)
	add("architecture", c.Architecture)
	add("no mitigation for", strings.Join(c.Unmitigated, ", "))
	if c.CPUs > 0 {
		add("load average before", digits.Three(c.Load.One)+" "+digits.Three(c.Load.Five)+" "+digits.Three(c.Load.Fifteen))
	}
	group = "load driver"
	e.limits(c.Limits, "driver's ", add)
	group = "connection"
	add("connection", e.Connection.Kind)
	add("address", e.Connection.Address)
	add("TLS", e.Connection.TLS)
	add("network", e.Connection.Network)
	group = "server"
	s := e.Server
	add("server", strings.TrimSpace(s.Flavour+" "+s.Version))
	add("build", s.Comment)
	if e.ServerHost == nil {
		return out
	}
	add("server's container", e.ServerHost.Container)
	e.limits(e.ServerHost.Limits, "server's ", add)
	if d := e.ServerHost.Data; d != nil {
		group = "disk under the data"
		storage(*d, add)
	}
	return out
}

func (e *Environment) limits(l host.Limits, of string, add func(name, value string)) {
	if l.Version > 0 {
		add(of+"cgroup version", count(l.Version))
	}
	add(of+"control group", l.Path)
	add(of+"systemd slice", l.Slice)
	add(of+"systemd unit", l.Unit)
	if l.CPUs > 0 {
		add(of+"CPU quota", fmt.Sprintf("%g cores", l.CPUs))
	}
	add(of+"CPU weight", l.CPUWeight)
	add(of+"CPU set", first(l.CPUSet, l.Affinity))
	add(of+"memory limit", size(l.MemoryBytes))
	add(of+"IO weight", l.IOWeight)
	add(of+"IO limit", l.IOMax)
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func storage(d host.Storage, add func(name, value string)) {
	add("data directory", d.Folder)
	add("mounted at", d.Mount)
	add("file system", d.FileSystem)
	add("mount options", d.Options)
	device := d.Source
	if d.Device != "" {
		device = d.Device
	}
	if d.Model != "" {
		device += " (" + d.Model + ")"
	}
	if len(d.On) > 0 {
		device += " on " + strings.Join(d.On, ", ")
	}
	add("block device", device)
	add("scheduler", d.Scheduler)
	if d.Rotational != nil {
		kind := "no: solid state or virtual"
		if *d.Rotational {
			kind = "yes, according to the kernel"
		}
		add("rotational", kind)
	}
	add("write cache", d.WriteCache)
	add("read-ahead", kib(d.ReadAhead))
	add("size", size(d.SizeBytes))
	add("free space", size(d.FreeBytes))
}

func kib(s string) string {
	if s == "" {
		return ""
	}
	return s + " KiB"
}

func count(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func swap(bytes, memory int64) string {
	if bytes == 0 && memory > 0 {
		return "off"
	}
	return size(bytes)
}

// size is a number of bytes, empty if it is not known.
func size(v int64) string {
	if v <= 0 {
		return ""
	}
	return digits.Bytes(v)
}

// variables compares what is set on two servers. A variable that only one lists as changed has its compiled-in value on
// the other, where that one tells which were changed; where one tells all, only what both list is compared.
func variables(a, b Server) []Difference {
	var out []Difference
	theirs := map[string]string{}
	for _, v := range b.Changed {
		theirs[v.Name] = v.Value
	}
	mine := map[string]bool{}
	for _, v := range a.Changed {
		mine[v.Name] = true
		value, listed := theirs[v.Name]
		switch {
		case read.IdentityVariable(v.Name):
		case listed && value != v.Value:
			out = append(out, Difference{v.Name, shown(v.Value), shown(value)})
		case !listed && !a.AllVariables && !b.AllVariables:
			out = append(out, Difference{v.Name, shown(v.Value), "the default"})
		}
	}
	for _, v := range b.Changed {
		if !mine[v.Name] && !a.AllVariables && !b.AllVariables && !read.IdentityVariable(v.Name) {
			out = append(out, Difference{v.Name, "the default", shown(v.Value)})
		}
	}
	slices.SortFunc(out, func(x, y Difference) int { return strings.Compare(x.What, y.What) })
	return out
}

func shown(value string) string {
	if value == "" {
		return "(empty)"
	}
	return value
}
