package accounts

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"
)

//go:embed words.txt
var words string

// Words are the built-in passwords that are tried, the most used first.
func Words() []string { return strings.Fields(words) }

// Guess is what is known of a password after it was tested against a list. The password itself is nowhere in it.
type Guess struct {
	// State is found, not found, unfinished (the time was over), unknown (the form is not known, or could not be read) or none (there is no password).
	State string `json:"state"`
	// How says what kind of word it is: "one of the most used", "the user's name or a variant of it", "in the list given".
	How   string `json:"how"`
	Tried int    `json:"tried"` // words
	word  string
}

// The states of a Guess.
const (
	GuessFound      = "found"
	GuessNot        = "not found"
	GuessUnfinished = "unfinished"
	GuessUnknown    = "unknown"
	GuessNone       = "none"
)

// candidate is a password to try, and what kind of word it is.
type candidate struct{ word, how string }

const (
	howName = "the user's name or a variant of it"
	howUsed = "one of the most used"
	howList = "in the list that was given"
)

// variants of a user's name that people take for passwords.
func variants(user string) (list []candidate) {
	if user == "" {
		return nil
	}
	runes := []rune(user)
	title := strings.ToUpper(string(runes[0])) + string(runes[1:])
	slices.Reverse(runes)
	lower, upper := strings.ToLower(user), strings.ToUpper(user)
	seen := map[string]bool{}
	add := func(w string, tails ...string) {
		for _, tail := range tails {
			if !seen[w+tail] {
				seen[w+tail] = true
				list = append(list, candidate{w + tail, howName})
			}
		}
	}
	tails := []string{"", "1", "12", "123", "1234", "12345", "!", "123!", "@123", "_123", "2024", "2025", "2026"}
	add(user, tails...)
	add(lower, "")
	add(upper, "")
	add(title, tails...)
	add(string(runes), "")
	add(user+user, "")
	add(lower, tails...) // the rest is less likely
	add(upper, "1", "12", "123", "1234", "2024", "2025", "2026")
	return list
}

// task is one stored password that is tested.
type task struct {
	a     *Account
	own   []candidate
	match func(string) bool
}

// Try tests the passwords of accounts against the variants of their names, the built-in words and a list, offline, and for no longer than a
// budget. Forms that are tested fast come first; of those that take long, each gets its first words before one gets its last. It fills in
// Guess, and SharedWith of those that have the same password.
func Try(ctx context.Context, list []*Account, extra []string, budget time.Duration) {
	common := make([]candidate, 0, len(extra)+200)
	for _, w := range Words() {
		common = append(common, candidate{w, howUsed})
	}
	for _, w := range extra {
		common = append(common, candidate{w, howList})
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var fast, slow []task
	for _, a := range list {
		f, s := tasks(a)
		fast, slow = append(fast, f...), append(slow, s...)
	}
	run(ctx, fast, common)
	run(ctx, slow, common)
	for _, a := range list {
		if a.Guess.State == "" {
			a.Guess.State = GuessNot
		}
	}
	share(list)
}

func tasks(a *Account) (fast, slow []task) {
	a.Guess = Guess{State: GuessNone}
	if !a.Known {
		a.Guess.State = GuessUnknown
	}
	if !a.Known || !a.password() || a.System {
		return nil, nil
	}
	a.Guess.State = ""
	methods := a.Methods
	if a.Second != "" {
		methods = append(slices.Clone(methods), Method{a.Methods[0].Plugin, a.Second})
	}
	own := variants(a.User)
	for _, m := range methods {
		match, takes := m.matcher()
		switch {
		case m.Secret == "":
		case match == nil:
			a.Guess.State = GuessUnknown
		case takes || m.Plugin == pluginParsec:
			slow = append(slow, task{a, own, match})
		default:
			fast = append(fast, task{a, own, match})
		}
	}
	return fast, slow
}

// run tries word after word, each on all passwords that are not known yet.
func run(ctx context.Context, list []task, common []candidate) {
	longest := 0
	for _, t := range list {
		longest = max(longest, len(t.own))
	}
	for i := range longest + len(common) {
		for _, t := range list {
			if t.a.Guess.State == GuessFound || t.a.Guess.State == GuessUnfinished {
				continue
			}
			c, ok := t.candidate(i, common)
			if !ok {
				continue
			}
			if ctx.Err() != nil {
				t.a.Guess.State = GuessUnfinished
				continue
			}
			t.a.Guess.Tried++
			if t.match(c.word) {
				t.a.Guess.State, t.a.Guess.How, t.a.Guess.word = GuessFound, c.how, c.word
			}
		}
	}
}

// candidate is the i-th word for a password: those of its user and the common ones in turns, so that a small budget has the likeliest of both.
func (t task) candidate(i int, common []candidate) (candidate, bool) {
	both := 2 * min(len(t.own), len(common))
	switch {
	case i < both && i%2 == 0:
		return t.own[i/2], true
	case i < both:
		return common[i/2], true
	case i < len(t.own)+len(common) && len(t.own) > len(common):
		return t.own[i-len(common)], true
	case i < len(t.own)+len(common):
		return common[i-len(t.own)], true
	}
	return candidate{}, false
}

// share finds accounts that have the same password: the same form if it has no salt, or the same word that was found. The same user of
// several servers is one account.
func share(list []*Account) {
	groups := map[string][]*Account{}
	for _, a := range list {
		keys := map[string]bool{}
		if a.Guess.word != "" {
			keys["w"+a.Guess.word] = true
		}
		for _, m := range a.Methods {
			if match, _ := m.matcher(); match != nil && !m.salted() && m.Secret != "" {
				keys["h"+string(m.Secret)] = true
			}
		}
		for k := range keys {
			groups[k] = append(groups[k], a)
		}
	}
	for _, g := range groups {
		for _, a := range g {
			for _, b := range g {
				name := b.Object()
				if a.User == b.User || b.System || slices.Contains(a.SharedWith, name) {
					continue
				}
				a.SharedWith = append(a.SharedWith, name)
			}
			slices.Sort(a.SharedWith)
		}
	}
}
