// Package chaos causes faults in a group of servers, in a random order from a seed, while writers keep a ledger, and judges by it what each fault cost: how long nobody
// could write, what was lost of what had been acknowledged, whether there were two writers. The result is a certificate that others can verify.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fault"
)

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	Kill           Kind = "kill"
	KillReplica    Kind = "kill-replica"
	Freeze         Kind = "freeze"
	Stall          Kind = "stall"
	Partition      Kind = "partition"
	PartitionIn    Kind = "partition-in"
	PartitionOut   Kind = "partition-out"
	Blind          Kind = "partition-controller"
	DiskFull       Kind = "disk-full"
	DiskSlow       Kind = "disk-slow"
	Clock          Kind = "clock"
	KillController Kind = "kill-controller"
	KillBoth       Kind = "kill-both"
)

// about says what a kind of fault is.
type about struct {
	Kind  Kind
	Words string // what is done
	// Harmless says that clients can go on with the primary that they have: another one is a false alarm.
	Harmless bool
	// Replica says that it happens to a replica.
	Replica bool
	// Short is how long it lasts at least and at most; 0, 0: the usual.
	Least, Most time.Duration
}

// The usual length of a fault.
const (
	usualLeast = 3 * time.Second
	usualMost  = 8 * time.Second
)

// kinds lists them all, in the order in which people read them.
func kinds() []about {
	return []about{
		{Kind: Kill, Words: "the primary's process is killed (SIGKILL)"},
		{Kind: Freeze, Words: "the primary's process is stopped (SIGSTOP), and goes on later"},
		{Kind: Stall, Words: "the primary's process is stopped for less than two seconds", Harmless: true, Least: 1500 * time.Millisecond, Most: 2 * time.Second},
		{Kind: Partition, Words: "all packets between the primary and everybody else are dropped"},
		{Kind: PartitionIn, Words: "packets to the primary are dropped; its own arrive"},
		{Kind: PartitionOut, Words: "packets from the primary are dropped; it receives all"},
		{Kind: Blind, Words: "packets between the primary and the controllers alone are dropped", Harmless: true},
		{Kind: DiskFull, Words: "the primary's disk is full"},
		{Kind: DiskSlow, Words: "the primary's disk takes few writes a second", Harmless: true},
		{Kind: Clock, Words: "the primary's clock jumps", Harmless: true},
		{Kind: KillReplica, Words: "a replica's process is killed (SIGKILL)", Harmless: true, Replica: true},
		{Kind: KillController, Words: "a controller is killed (SIGKILL), and started again later", Harmless: true},
		{Kind: KillBoth, Words: "the primary is killed, and a moment later a controller, which is started again"},
	}
}

// Kinds lists the kinds of faults.
func Kinds() []Kind {
	var list []Kind
	for _, a := range kinds() {
		list = append(list, a.Kind)
	}
	return list
}

// Words says what a kind of fault is.
func (k Kind) Words() string { return k.about().Words }

// Harmless reports whether clients can go on with their primary, so that another one is a false alarm.
func (k Kind) Harmless() bool { return k.about().Harmless }

// NeedsController reports whether it happens to a controller.
func (k Kind) NeedsController() bool { return k == Blind || k == KillController || k == KillBoth }

func (k Kind) about() about {
	list := kinds()
	if i := slices.IndexFunc(list, func(a about) bool { return a.Kind == k }); i >= 0 {
		return list[i]
	}
	return about{Kind: k, Words: string(k)}
}

// ParseKinds reads a list of kinds; none: all.
func ParseKinds(names []string) ([]Kind, error) {
	if len(names) == 0 {
		return Kinds(), nil
	}
	var list []Kind
	for _, name := range names {
		k := Kind(strings.TrimSpace(name))
		if !slices.Contains(Kinds(), k) {
			return nil, fault.Usagef("%q is no fault; there are %s", name, Listed(Kinds()))
		}
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list, nil
}

// Listed are kinds as people read them.
func Listed(list []Kind) string {
	var names []string
	for _, k := range list {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// Fault is one that is planned.
type Fault struct {
	Number int           `json:"number"` // counts from 1
	Kind   Kind          `json:"kind"`
	Least  time.Duration `json:"least_ns"`  // how long it lasts, also if clients can write again sooner
	Draw   uint64        `json:"draw"`      // which replica, which controller, how far a clock jumps
	Before time.Duration `json:"before_ns"` // how long all is well before it
}

// String is a fault in a line.
func (f Fault) String() string { return fmt.Sprintf("%d. %s: %s", f.Number, f.Kind, f.Kind.Words()) }

// Plan draws faults from a seed: each kind comes equally often, in a random order. The same seed gives the same plan.
func Plan(seed uint64, kinds []Kind, count int) []Fault {
	r := rand.New(rand.NewPCG(seed, 0x52697373)) //nolint:gosec // it has to be reproducible, not secret
	var list []Fault
	for len(list) < count && len(kinds) > 0 {
		round := slices.Clone(kinds)
		r.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, k := range round {
			if len(list) == count {
				break
			}
			a := k.about()
			if a.Most == 0 {
				a.Least, a.Most = usualLeast, usualMost
			}
			ms := int64((a.Most - a.Least) / time.Millisecond)
			list = append(list, Fault{Number: len(list) + 1, Kind: k, Least: a.Least + time.Duration(r.Int64N(ms+1))*time.Millisecond, Draw: r.Uint64(),
				Before: time.Second + time.Duration(r.Int64N(2000))*time.Millisecond})
		}
	}
	return list
}
