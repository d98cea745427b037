package repo

import (
	"strings"
	"testing"
	"time"
)

// TestRetentionSays holds what stays, what goes, and the words of each reason.
func TestRetentionSays(t *testing.T) {
	day := func(s string) time.Time {
		at, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	now := day("2027-01-10 12:00")
	mine := Candidate{Signer: "mine", Trusted: true, Group: "g", Server: "s"}
	of := func(id, at string, change ...func(*Candidate)) Candidate {
		c := mine
		c.ID, c.Time = id, day(at)
		for _, f := range change {
			f(&c)
		}
		return c
	}
	proven := func(c *Candidate) { c.Proven = true }
	vouched := func(c *Candidate) { c.Proven, c.Vouched = true, true }
	unread := func(c *Candidate) { c.Unread = true }
	hollow := func(c *Candidate) { c.Hollow = "it holds nothing" }
	keep := func(c *Candidate) { c.Keep = "damaged" }
	stranger := func(c *Candidate) { c.Signer, c.Trusted = "theirs", false }
	nobody := func(c *Candidate) { c.Signer, c.Trusted = "", false }
	on := func(id string) func(*Candidate) { return func(c *Candidate) { c.Parent = id } }
	const gone = "-: no rule keeps it"
	for _, c := range []struct {
		name string
		p    Retention
		list []Candidate
		want string // a line for each, the oldest first
	}{
		{"the last two", Retention{Last: 2}, []Candidate{of("a", "2026-12-01 02:00"), of("b", "2026-12-02 02:00"), of("c", "2026-12-03 02:00")},
			"a " + gone + "\nb +: one of the last 2\nc +: the newest; one of the last 2"},
		{"of two of one time the larger ID is the newer", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00"), of("b", "2026-12-01 02:00")},
			"a " + gone + "\nb +: the newest; one of the last 1"},
		{"as young as the rule says, and not a minute older", Retention{Within: 24 * time.Hour},
			[]Candidate{of("a", "2026-12-02 01:59"), of("b", "2026-12-02 02:00"), of("c", "2026-12-03 02:00")},
			"a " + gone + "\nb +: within 24h0m0s\nc +: the newest; within 24h0m0s"},
		{"one alone is counted from the one before it", Retention{Within: 24 * time.Hour},
			[]Candidate{of("a", "2026-12-01 01:59"), of("b", "2026-12-01 02:00"), of("c", "2026-12-02 02:00"), of("d", "2026-12-03 02:01")},
			"a " + gone + "\nb +: within 24h0m0s\nc +: within 24h0m0s\nd +: the newest; within 24h0m0s"},
		{"days, weeks, months and years are counted each by themselves", Retention{Daily: 2, Weekly: 2, Monthly: 2, Yearly: 2},
			[]Candidate{of("a", "2025-12-31 02:00"), of("b", "2026-12-24 02:00"), of("c", "2026-12-28 02:00"), of("d", "2026-12-31 02:00"), of("e", "2027-01-03 02:00"), of("f", "2027-01-04 02:00")},
			"a " + gone + "\nb " + gone + "\nc " + gone + "\nd +: monthly 2 of 2: 2026-12; yearly 2 of 2: 2026" +
				"\ne +: daily 2 of 2: 2027-01-03; weekly 2 of 2: 2026-W53" +
				"\nf +: the newest; daily 1 of 2: 2027-01-04; weekly 1 of 2: 2027-W01; monthly 1 of 2: 2027-01; yearly 1 of 2: 2027"},
		{"without a rule only what must stay does", Retention{}, []Candidate{of("a", "2026-12-01 02:00", keep), of("b", "2026-12-02 02:00")},
			"a +: damaged\nb " + gone},
		{"dated ahead", Retention{Last: 1}, []Candidate{of("a", "2027-01-10 12:30"), of("b", "2027-01-10 12:31"), of("c", "2027-01-10 13:00", keep)},
			"a +: the newest; one of the last 1\nb +: dated in the future: a clock was wrong; rules ignore it (--remove removes it)\nc +: damaged"},
		{"dated ahead, and no rule", Retention{}, []Candidate{of("a", "2027-01-10 12:31")}, "a " + gone},
		{"the newest proven one", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", vouched), of("b", "2026-12-02 02:00", vouched), of("c", "2026-12-03 02:00")},
			"a " + gone + "\nb +: the newest proven one\nc +: the newest; one of the last 1"},
		{"what nobody vouches for replaces no vouched one", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", vouched), of("b", "2026-12-02 02:00", proven), of("c", "2026-12-03 02:00")},
			"a +: the newest proven one\nb +: the newest proven one, by a drill not signed by a trusted key\nc +: the newest; one of the last 1"},
		{"of two that nobody vouches for the newer one stays", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", proven), of("b", "2026-12-02 02:00", proven), of("c", "2026-12-03 02:00")},
			"a " + gone + "\nb +: the newest proven one, by a drill not signed by a trusted key\nc +: the newest; one of the last 1"},
		{"what may have been proven", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", unread), of("b", "2026-12-02 02:00", vouched), of("c", "2026-12-03 02:00", unread), of("d", "2026-12-04 02:00")},
			"a " + gone + "\nb +: the newest proven one\nc +: whether a drill proved it is unknown: the proof is damaged, or encrypted (give --identity)\nd +: the newest; one of the last 1"},
		{"a hollow one replaces no full one", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00"), of("b", "2026-12-02 02:00"), of("c", "2026-12-03 02:00", hollow), of("d", "2026-12-04 02:00", hollow)},
			"a " + gone + "\nb +: the last full one; c after it is none: it holds nothing; the newest; one of the last 1\nc " + gone + "\nd +: the newest; one of the last 1; it replaces no full one: it holds nothing"},
		{"a hollow one before the last full one is not spoken of", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", hollow), of("b", "2026-12-02 02:00")},
			"a +: the newest; one of the last 1; it replaces no full one: it holds nothing\nb +: the newest; one of the last 1"},
		{"a stranger's replaces no trusted one", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00"), of("b", "2026-12-02 02:00", stranger), of("c", "2026-12-03 02:00", nobody)},
			"a +: the newest; one of the last 1" +
				"\nb +: the newest; one of the last 1; it replaces none signed by another key: it is signed by a key that is not trusted" +
				"\nc +: the newest; one of the last 1; it replaces none signed by another key: it is not signed"},
		{"a trusted one replaces a stranger's", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", stranger), of("b", "2026-12-02 02:00", nobody), of("c", "2026-12-03 02:00")},
			"a " + gone + "\nb " + gone + "\nc +: the newest; one of the last 1"},
		{"what one stays for, and what that stays for", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00"), of("b", "2026-12-02 02:00", on("a")), of("c", "2026-12-03 02:00", on("b")), of("d", "2026-12-04 02:00", on("a"))},
			"a +: d builds on it\nb " + gone + "\nc " + gone + "\nd +: the newest; one of the last 1"},
		{"a parent that is dated behind its child", Retention{Last: 1}, []Candidate{of("a", "2026-12-01 02:00", on("c")), of("b", "2026-12-02 02:00"), of("c", "2026-12-03 02:00", on("b")), of("d", "2026-12-04 02:00", on("a"))},
			"a +: d builds on it\nb +: c builds on it\nc +: a builds on it\nd +: the newest; one of the last 1"},
	} {
		var got []string
		for _, d := range c.p.Decide(c.list, time.UTC, now) {
			sign := " -: "
			if d.Keep {
				sign = " +: "
			}
			got = append(got, d.ID+sign+strings.Join(d.Reasons, "; "))
		}
		if g := strings.Join(got, "\n"); g != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, g, c.want)
		}
	}
}

// TestDead: a lease is that of a killed process once it is 15 minutes old, and a moment before it is not.
func TestDead(t *testing.T) {
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	other := &Process{Host: "elsewhere", PID: 1}
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{-time.Hour, false}, {0, false}, {15*time.Minute - time.Second, false}, {15 * time.Minute, true}, {time.Hour, true}} {
		for _, p := range []*Process{nil, other} {
			if got := dead(p, now.Add(-c.age), now); got != c.want {
				t.Errorf("a lease of %v, %v old: got dead %v, want %v", p, c.age, got, c.want)
			}
		}
	}
	if leaseBeat > LeaseLife/10 {
		t.Errorf("a lease is put each %v, and is dead after %v: one that is late a few times must not be; want at most LeaseLife / 10",
			leaseBeat, LeaseLife)
	}
}

// TestLeaseAge: the age is what the worse of two clocks says, and a prune stops when half of the life of its lease is over.
func TestLeaseAge(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		mine bool
	}{{time.Minute, true}, {7 * time.Minute, true}, {8 * time.Minute, false}, {14 * time.Minute, false}} {
		l := &lease{beaten: time.Now().Add(-c.age)}
		if got := l.age(); got < c.age || got > c.age+time.Minute {
			t.Errorf("got an age of %v, want %v", got, c.age)
		}
		wall := &lease{beaten: time.Now().Add(-c.age).Round(0)} // as if the machine had slept
		if got := wall.age(); got < c.age || got > c.age+time.Minute {
			t.Errorf("by the wall clock alone: got an age of %v, want %v", got, c.age)
		}
		if err := (&pruner{lease: l}).mine(); (err == nil) != c.mine {
			t.Errorf("a lease put %v ago: got %v, want it to be good: %v", c.age, err, c.mine)
		}
	}
}

func TestHolder(t *testing.T) {
	for want, h := range map[string]Holder{
		"a prune":                               {},
		"a prune, process 7 on db1":             {Process: &Process{PID: 7, Host: "db1"}},
		"a prune, process 7 on another machine": {Process: &Process{PID: 7}},
	} {
		if got := h.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
