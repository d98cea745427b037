package accounts

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"
)

// Draw is a new password of 28 characters, about 165 bits, with each class of characters that rules for passwords ask for.
func Draw() (string, error) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, 27)
	for i := range out {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", fmt.Errorf("draw a password: %w", err)
		}
		out[i] = letters[n.Int64()]
	}
	for i, class := range []string{letters[:26], letters[26:52], letters[52:]} { // at places of their own
		out[9*i] = class[int(out[9*i])%len(class)]
	}
	return string(slices.Insert(out, 14, '-')), nil
}

// Keeps reports whether the account has a password among its stored forms.
func (a *Account) Keeps(password string) bool {
	return slices.ContainsFunc(a.Methods, func(m Method) bool {
		match, _ := m.matcher()
		return match != nil && match(password)
	})
}

// Passwords are the places of the ways to log in that are passwords.
func (a *Account) Passwords() (at []int) {
	for i, m := range a.Methods {
		if m.Secret != "" && slices.Contains(passwordPlugins, m.Plugin) {
			at = append(at, i)
		}
	}
	return at
}
