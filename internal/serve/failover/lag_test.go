package failover

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestLag has replicas that do not say how far they are behind, or say that they are not while nothing comes.
func TestLag(t *testing.T) {
	known := func(d time.Duration) *time.Duration { return &d }
	running, silent, standing := read.ReplicaChannel{SQLRunning: true, Behind: 2, BeatEvery: 1}, read.ReplicaChannel{SQLRunning: true, Behind: -1, BeatEvery: 1}, read.ReplicaChannel{Behind: -1, BeatEvery: 1}
	type look struct {
		after time.Duration
		kind  string
		ch    read.ReplicaChannel
		beats int64
	}
	for _, c := range []struct {
		name  string
		looks []look
		reads bool
		lag   *time.Duration
	}{
		{"as it says", []look{{0, "", running, 1}}, true, known(2 * time.Second)},
		{"it never said", []look{{0, "", silent, 1}}, true, nil},
		{"its source is gone", []look{{0, "", running, 1}, {time.Second, "", silent, 1}, {4 * time.Second, "", silent, 1}}, true, known(6 * time.Second)},
		{"for long", []look{{0, "", running, 1}, {61 * time.Second, "", silent, 1}}, true, nil},
		{"a source that hangs", []look{{0, "", running, 1}, {2900 * time.Millisecond, "", running, 1}}, true, known(2 * time.Second)},
		{"a source that hangs for long", []look{{0, "", running, 1}, {9 * time.Second, "", running, 1}}, true, known(11 * time.Second)},
		{"a source that is idle", []look{{0, "", running, 1}, {9 * time.Second, "", running, 2}}, true, known(2 * time.Second)},
		{"no heartbeats are known", []look{{0, "", read.ReplicaChannel{SQLRunning: true}, 0}, {9 * time.Second, "", read.ReplicaChannel{SQLRunning: true}, 0}}, true, known(0)},
		{"it is pointed elsewhere", []look{{0, "", running, 1}, {time.Second, "", standing, 1}}, true, known(3 * time.Second)},
		{"it stands", []look{{0, "", running, 1}, {4 * time.Second, "", standing, 1}}, false, nil},
		{"it never ran", []look{{0, "", standing, 1}}, false, nil},
		{"it was away", []look{{0, "", running, 1}, {time.Second, "refused", read.ReplicaChannel{}, 1}}, false, nil},
		{"it came back", []look{{0, "", running, 1}, {time.Second, "refused", read.ReplicaChannel{}, 1}, {2 * time.Second, "", silent, 1}}, true, nil},
		{"one look was late", []look{{0, "", running, 1}, {time.Second, "timeout", read.ReplicaChannel{}, 1}, {2 * time.Second, "", silent, 1}}, true, known(4 * time.Second)},
	} {
		g := &group.Group{Name: "g", Members: []group.Member{{Name: "a", Address: "db1:3306", Status: group.Primary}, {Name: "b", Address: "db2:3306", Status: group.Secondary}}}
		w := newWatcher(&Desk{}, reading{g: g}, 0, nil)
		w.probers["b"], w.primary, w.watch_ = &prober{}, "a", failover.NewWatch(failover.Patience{}, []string{"b"})
		began := time.Now()
		for _, l := range c.looks {
			l.ch.Beats = l.beats
			w.take(seen{name: "b", at: began.Add(l.after), ended: began.Add(l.after), kind: l.kind, channels: []read.ReplicaChannel{l.ch}})
		}
		v := w.viewOf(g, began)
		if len(v.Replicas) > 0 != c.reads {
			t.Errorf("%s: got the replicas %+v, want one: %t", c.name, v.Replicas, c.reads)
			continue
		}
		if !c.reads {
			continue
		}
		switch lag := v.Replicas[0].Lag; {
		case lag == nil != (c.lag == nil):
			t.Errorf("%s: is the lag known? got %t, want %t", c.name, lag != nil, c.lag != nil)
		case lag != nil && *lag != *c.lag:
			t.Errorf("%s: got a lag of %s, want %s", c.name, *lag, *c.lag)
		}
	}
}
