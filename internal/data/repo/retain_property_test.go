package repo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRetentionHolds tries policies on histories made at random: in all of them, what must not be removed stays.
func TestRetentionHolds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	zones := []*time.Location{time.UTC}
	for _, name := range []string{"Europe/Berlin", "America/St_Johns", "Pacific/Apia"} {
		if z, err := time.LoadLocation(name); err == nil {
			zones = append(zones, z)
		}
	}
	rounds := 2000
	if testing.Short() {
		t.Log("short: a twentieth of the histories, all in one goroutine")
		rounds /= 20
	}
	for i := range rounds {
		p := Retention{Last: random.IntN(4), Daily: random.IntN(8), Weekly: random.IntN(5), Monthly: random.IntN(13), Yearly: random.IntN(3)}
		if random.IntN(4) == 0 {
			p.Within = time.Duration(random.IntN(1000)) * time.Hour
		}
		if p.Empty() {
			continue
		}
		list, zone := history(random), zones[random.IntN(len(zones))]
		got := p.Decide(list, zone, time.Now())
		if why := violated(p, list, got, zone); why != "" {
			t.Fatalf("seed %d, round %d, %+v in %s: got %s; want \"\"", seed, i, p, zone, why)
		}
	}
}

// history makes backups of some servers, logical and physical, with incremental chains and proofs.
func history(random *rand.Rand) (list []Candidate) {
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(1e6)) * time.Minute)
	last := map[string]string{} // the newest of each group
	for n := range random.IntN(120) + 1 {
		at = at.Add(time.Duration(random.ExpFloat64() * float64(20*time.Hour)))
		server := fmt.Sprint("s", random.IntN(2))
		c := Candidate{ID: fmt.Sprintf("%04d", n), Time: at, Server: server, Group: server + fmt.Sprint(" kind ", random.IntN(2)), Proven: random.IntN(9) == 0}
		if random.IntN(3) == 0 {
			c.Parent = last[c.Group]
		}
		switch random.IntN(8) {
		case 0:
			c.Signer = PublicKey(fmt.Sprint("key ", random.IntN(2)))
		case 1, 2, 3, 4:
			c.Signer, c.Trusted = "mine", true
		}
		c.Vouched = c.Proven && random.IntN(2) == 0
		if random.IntN(40) == 0 {
			c.Keep = "cannot be read"
		}
		last[c.Group] = c.ID
		list = append(list, c)
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// violated says what is wrong with decisions; "" when nothing is.
func violated(p Retention, list []Candidate, got []Decision, zone *time.Location) string {
	keep := map[string]bool{}
	for _, d := range got {
		if len(d.Reasons) == 0 {
			return d.ID + " has no reason"
		}
		keep[d.ID] = d.Keep
	}
	if len(keep) != len(list) {
		return fmt.Sprintf("%d decisions about %d backups", len(keep), len(list))
	}
	newest, proven, vouched := map[string]Candidate{}, map[string]Candidate{}, map[string]Candidate{}
	groups := map[string]int{}
	var stay []Candidate
	for _, c := range list {
		if keep[c.ID] {
			stay = append(stay, c)
			groups[c.Group]++
		}
		if keep[c.ID] && c.Parent != "" && !keep[c.Parent] {
			return c.ID + " stays without " + c.Parent + ", which it builds on"
		}
		if c.Keep != "" && !keep[c.ID] {
			return c.ID + " goes, whatever the rules say"
		}
		if o, ok := newest[c.Group]; !ok || c.Time.After(o.Time) || c.Time.Equal(o.Time) && c.ID > o.ID {
			newest[c.Group] = c
		}
		if o, ok := proven[c.Server]; c.Proven && (!ok || c.Time.After(o.Time) || c.Time.Equal(o.Time) && c.ID > o.ID) {
			proven[c.Server] = c
		}
		if o, ok := vouched[c.Server]; c.Vouched && (!ok || c.Time.After(o.Time) || c.Time.Equal(o.Time) && c.ID > o.ID) {
			vouched[c.Server] = c
		}
	}
	for _, c := range newest {
		if !keep[c.ID] {
			return "the newest of " + c.Group + " goes: " + c.ID
		}
	}
	for _, c := range proven {
		if !keep[c.ID] {
			return "the newest proven of " + c.Server + " goes: " + c.ID
		}
	}
	for _, c := range vouched {
		if !keep[c.ID] {
			return "the newest of " + c.Server + " goes that a trusted drill proved: " + c.ID
		}
	}
	// What strangers say of drills makes nothing go.
	honest := slices.Clone(list)
	for i, c := range honest {
		honest[i].Proven = c.Vouched
	}
	for _, d := range p.Decide(honest, zone, time.Now()) {
		if d.Keep && !keep[d.ID] {
			return d.ID + " goes for what nobody vouches for"
		}
	}
	// What strangers put there makes nothing go that is trusted.
	own := slices.DeleteFunc(slices.Clone(list), func(c Candidate) bool { return !c.Trusted })
	for _, d := range p.Decide(own, zone, time.Now()) {
		if d.Keep && !keep[d.ID] {
			return d.ID + ", which is trusted, goes for what is not"
		}
	}
	// To prune twice is to prune once.
	for _, d := range p.Decide(stay, zone, time.Now()) {
		if !d.Keep {
			return d.ID + " goes at the second time"
		}
	}
	// The order in which backups are listed says nothing.
	back := slices.Clone(list)
	slices.Reverse(back)
	if !slices.EqualFunc(got, p.Decide(back, zone, time.Now()), func(a, b Decision) bool { return a.ID == b.ID && a.Keep == b.Keep }) {
		return "another order, another decision"
	}
	return ""
}

// TestRetentionOfYears takes a backup each night for two years, prunes after each, and proves one now and then: then as many
// are there as were asked for, from as long ago as was asked for.
func TestRetentionOfYears(t *testing.T) {
	p := Retention{Daily: 7, Weekly: 4, Monthly: 12}
	start := time.Date(2024, 1, 1, 2, 0, 0, 0, time.UTC)
	var list []Candidate
	for day := range 731 {
		at := start.AddDate(0, 0, day)
		list = append(list, Candidate{ID: at.Format("20060102"), Time: at, Group: "g", Server: "s", Proven: at.Weekday() == time.Sunday && day < 600})
		kept := map[string]bool{}
		for _, d := range p.Decide(list, time.UTC, time.Now()) {
			kept[d.ID] = d.Keep
		}
		list = slices.DeleteFunc(list, func(c Candidate) bool { return !kept[c.ID] })
		if day < 400 {
			continue
		}
		for _, want := range []time.Time{at, at.AddDate(0, 0, -6)} { // each of the last days
			if !slices.ContainsFunc(list, func(c Candidate) bool { return c.Time.Equal(want) }) {
				t.Fatalf("on %s there is none of %s", at, want)
			}
		}
		oldest := list[0].Time
		if age := at.Sub(oldest); age < 300*24*time.Hour || age > 2*366*24*time.Hour {
			t.Fatalf("on %s the oldest is of %s, want age from 300 * 24 * time.Hour to 2 * 366 * 24 * time.Hour", at, oldest)
		}
		// 7 days, 4 weeks, 12 months and a proven one, some of them the same.
		if len(list) < 7+2+10 || len(list) > 7+4+12+1 {
			t.Fatalf("on %s there are %d, want from 7 + 2 + 10 to 7 + 4 + 12 + 1", at, len(list))
		}
		if !slices.ContainsFunc(list, func(c Candidate) bool { return c.Proven }) {
			t.Fatalf("on %s no proven one is left", at)
		}
	}
}
