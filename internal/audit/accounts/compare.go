package accounts

import (
	"fmt"
	"slices"
	"strings"
)

// Compare finds accounts that are not the same on several servers of one group, and fills in Differs. What they store of passwords is compared
// and never told. Servers that say things in other words are not compared with each other.
func Compare(list []*Account) {
	servers := map[bool][]*Server{}
	byName := map[string][]*Account{}
	known := map[*Server]bool{} // all accounts of it were read
	for _, a := range list {
		if !slices.Contains(servers[a.On.Via], a.On) {
			servers[a.On.Via] = append(servers[a.On.Via], a.On)
			known[a.On] = true
		}
		known[a.On] = known[a.On] && a.Known
		if !a.System {
			key := fmt.Sprint(a.On.Via, "\x00", a.User, "\x00", a.Host)
			byName[key] = append(byName[key], a)
		}
	}
	for _, same := range byName {
		for _, a := range same {
			for _, on := range servers[a.On.Via] {
				i := slices.IndexFunc(same, func(b *Account) bool { return b.On == on })
				switch {
				case on == a.On:
				case i < 0 && known[on]:
					a.Differs = append(a.Differs, "it is not on "+on.Name)
				case i >= 0:
					if words := a.against(same[i]); len(words) > 0 {
						a.Differs = append(a.Differs, "on "+on.Name+" other "+strings.Join(words, ", "))
					}
				}
			}
		}
	}
}

// against names what differs between the same account of two servers.
func (a *Account) against(b *Account) (words []string) {
	ga, gb := slices.Sorted(slices.Values(a.Grants)), slices.Sorted(slices.Values(b.Grants))
	if !slices.Equal(ga, gb) {
		words = append(words, "grants")
	}
	if !a.Known || !b.Known {
		return words
	}
	plugins, secrets := a.plugins() != b.plugins(), false
	if !plugins {
		secrets = slices.ContainsFunc(a.Methods, func(m Method) bool { return !slices.Contains(b.Methods, m) })
	}
	for _, d := range []struct {
		is   bool
		what string
	}{{plugins, "plug-in"}, {secrets, "stored password"}, {a.Locked != b.Locked, "lock"}, {a.TLS != b.TLS, "REQUIRE"}, {a.term() != b.term(), "term of the password"}, {a.Attempts != b.Attempts, "limit of wrong passwords"}} {
		if d.is {
			words = append(words, d.what)
		}
	}
	return words
}
