package state

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/rissodb/risso/internal/fleet"
)

// Bounds of a password, in characters.
const (
	leastPassword = 12
	mostPassword  = 128
)

// cost is what one guess at a password costs: one of the settings that OWASP recommends for Argon2id, some 40 ms.
type cost struct {
	memory  uint32 // KiB
	passes  uint32
	threads uint8
}

func costNow() cost { return cost{memory: 19 << 10, passes: 2, threads: 1} }

const (
	saltBytes = 16
	hashBytes = 32
)

// hashPassword derives what is kept of a password, in the usual form of Argon2 hashes, which has its cost in it: it can be raised later.
func hashPassword(password string) string {
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	c := costNow()
	sum := argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.threads, hashBytes)
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.passes, c.threads, b.EncodeToString(salt), b.EncodeToString(sum))
}

// matches reports whether a password belongs to what is kept, and whether that was made at today's cost.
func matches(kept, password string) (ok, current bool) {
	c, salt, sum, err := readHash(kept)
	if err != nil {
		return false, true
	}
	got := argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.threads, uint32(len(sum)))
	return subtle.ConstantTimeCompare(got, sum) == 1, c == costNow()
}

// most of what a stored hash may ask for: the file may have been made by somebody else.
const (
	mostMemory = 1 << 20 // KiB
	mostPasses = 100
)

func readHash(kept string) (c cost, salt, sum []byte, err error) {
	var version int
	parts := strings.Split(kept, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return c, nil, nil, errors.New("it is no Argon2id hash")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &c.memory, &c.passes, &c.threads); err != nil {
		return c, nil, nil, err
	}
	if version != argon2.Version || c.memory > mostMemory || c.passes == 0 || c.passes > mostPasses || c.threads == 0 {
		return c, nil, nil, errors.New("its parameters are not known")
	}
	b := base64.RawStdEncoding
	if salt, err = b.DecodeString(parts[4]); err == nil {
		sum, err = b.DecodeString(parts[5])
	}
	if err == nil && (len(sum) < 16 || len(salt) < 8) {
		err = errors.New("it is too short")
	}
	return c, salt, sum, err
}

// CheckPassword refuses a password that is guessed first. There is no rule about kinds of characters: length is what counts.
func CheckPassword(user, password string) error {
	hint := "a sentence of some words is good; nobody asks for digits or signs"
	n := utf8.RuneCountInString(password)
	switch {
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return fleet.WithRemedy(errors.New("the password has characters that no form can send"), hint)
	case n < leastPassword:
		return fleet.WithRemedy(fmt.Errorf("the password has %d characters, and needs %d", n, leastPassword), hint)
	case n > mostPassword:
		return fleet.WithRemedy(fmt.Errorf("the password has %d characters; the most is %d", n, mostPassword), hint)
	case guessable(user, password):
		return fleet.WithRemedy(errors.New("the password is one of those that are guessed first"), hint)
	}
	return nil
}

// guessable reports whether little is left of a password without what everybody adds, and without the words that everybody takes.
func guessable(user, password string) bool {
	seen := map[rune]bool{}
	letters := strings.Map(func(r rune) rune {
		seen[r] = true
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, password)
	if len(seen) < 5 {
		return true
	}
	words := []string{"qwertyuiop", "qwertzuiop", "asdfghjkl", "abcdefghijklmnopqrstuvwxyz", "administrator", "password", "passwort", "passw", "letmein", "welcome", "iloveyou",
		"changeme", "qwerty", "qwertz", "secret", "monkey", "dragon", "mariadb", "percona", "database", "admin", "mysql", "risso", "root"}
	if user = strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, user); len(user) > 2 {
		words = append([]string{user}, words...)
	}
	for _, w := range words {
		letters = strings.ReplaceAll(letters, w, "")
	}
	n := utf8.RuneCountInString(password) // many random digits are as good as anything
	return utf8.RuneCountInString(letters) < 4 && n < 20 && strings.ContainsFunc(password, isASCII)
}

func isASCII(r rune) bool { return r < utf8.RuneSelf }
