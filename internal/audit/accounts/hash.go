package accounts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"filippo.io/edwards25519"
)

// The plug-ins whose stored form is known here.
const (
	pluginNative  = "mysql_native_password"
	pluginOld     = "mysql_old_password"
	pluginSHA256  = "sha256_password"
	pluginCaching = "caching_sha2_password"
	pluginEd25519 = "ed25519"
	pluginParsec  = "parsec"
)

// passwordPlugins check a password that the server stores a form of. With any other an account without such a form is not open to everybody.
var passwordPlugins = []string{pluginNative, pluginOld, pluginSHA256, pluginCaching, pluginEd25519, pluginParsec, ""}

// Secret is what a server stores of a password. It has no words: neither %v nor JSON shows it.
type Secret string

// String never shows it.
func (s Secret) String() string { return "***" }

// GoString never shows it.
func (s Secret) GoString() string { return "***" }

// MarshalJSON never shows it.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }

// Method is one way to log in.
type Method struct {
	Plugin string `json:"plugin"` // authentication plug-in
	Secret Secret `json:"-"`
}

// matcher returns what tests candidates against a stored form, and whether the test takes so long that few can be made; nil if the form is
// not known.
func (m Method) matcher() (match func(candidate string) bool, slow bool) {
	hash := string(m.Secret)
	switch m.Plugin {
	case pluginNative, "":
		if len(hash) == 16 {
			return func(c string) bool { return same(oldHash(c), hash) }, false
		}
		if len(hash) == 41 && hash[0] == '*' {
			return func(c string) bool { return same(nativeHash(c), strings.ToUpper(hash)) }, false
		}
	case pluginOld:
		return func(c string) bool { return same(oldHash(c), hash) }, false
	case pluginEd25519:
		if len(hash) == 43 {
			return func(c string) bool { return same(ed25519Hash(c), hash) }, false
		}
	case pluginSHA256, pluginCaching:
		rounds, salt, ok := cryptForm(hash)
		if ok {
			sum := hash[len(hash)-43:]
			return func(c string) bool { return same(sha256Crypt(c, salt, rounds), sum) }, true
		}
	case pluginParsec:
		if f, ok := readParsec(hash); ok {
			return func(c string) bool { sum := f.sum(c); return same(sum, f.public) }, true
		}
	}
	return nil, false
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// salted reports whether equal passwords have different forms.
func (m Method) salted() bool {
	return m.Plugin == pluginSHA256 || m.Plugin == pluginCaching || m.Plugin == pluginParsec
}

// nativeHash is what mysql_native_password stores. Source: MySQL manual, "Native Pluggable Authentication": * and SHA1(SHA1(password)).
func nativeHash(password string) string {
	one := sha1.Sum([]byte(password))
	two := sha1.Sum(one[:])
	return "*" + strings.ToUpper(hex.EncodeToString(two[:]))
}

// oldHash is what servers before 4.1 store. Source: MySQL internals manual, "Old Password Authentication".
func oldHash(password string) string {
	a, b, add := uint32(1345345333), uint32(0x12345671), uint32(7)
	for _, c := range []byte(password) {
		if c == ' ' || c == '\t' {
			continue
		}
		a ^= ((a&63)+add)*uint32(c) + a<<8
		b += b<<8 ^ a
		add += uint32(c)
	}
	return fmt.Sprintf("%08x%08x", a&0x7fffffff, b&0x7fffffff)
}

// ed25519Hash is what MariaDB's ed25519 stores: the public key whose secret scalar is the SHA-512 of the password. Source: MariaDB
// documentation, "Authentication Plugin - ed25519".
func ed25519Hash(password string) string {
	sum := sha512.Sum512([]byte(password))
	scalar, err := edwards25519.NewScalar().SetBytesWithClamping(sum[:32])
	if err != nil {
		return "" // 32 bytes always are a scalar
	}
	return base64.RawStdEncoding.EncodeToString(new(edwards25519.Point).ScalarBaseMult(scalar).Bytes())
}

// parsecForm is what MariaDB's parsec stores: P, how often the key is stretched, salt, public key. Source: MariaDB documentation,
// "Authentication Plugin - PARSEC".
type parsecForm struct {
	rounds int
	salt   []byte
	public string
}

func readParsec(hash string) (f parsecForm, ok bool) {
	parts := strings.Split(hash, ":")
	if len(parts) != 3 || len(parts[0]) != 2 || parts[0][0] != 'P' || parts[0][1] < '0' || parts[0][1] > '9' {
		return f, false
	}
	salt, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	public, perr := base64.RawStdEncoding.DecodeString(strings.TrimRight(parts[2], "="))
	return parsecForm{1024 << (parts[0][1] - '0'), salt, string(public)}, err == nil && perr == nil && len(public) == ed25519.PublicKeySize
}

func (f parsecForm) sum(password string) string {
	seed, err := pbkdf2.Key(sha512.New, password, f.salt, f.rounds, ed25519.SeedSize)
	if err != nil {
		return ""
	}
	return string(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
}

// cryptSalt is how long a salt of MySQL is; those of crypt(3) have 16 bytes at most.
const cryptSalt = 20

// cryptForm reads $A$005$, or $5$, salt and sum. The three digits are hexadecimal and count thousands of rounds (9.7 writes 00A for 10,000).
// Sources: MySQL manual, "Caching SHA-2 Pluggable Authentication", caching_sha2_password_digest_rounds; seen on 9.7.4.
func cryptForm(hash string) (rounds int, salt string, ok bool) {
	switch {
	case strings.HasPrefix(hash, "$5$") && len(hash) == 3+cryptSalt+1+43 && hash[3+cryptSalt] == '$':
		return 5000, hash[3 : 3+cryptSalt], true
	case strings.HasPrefix(hash, "$A$") && len(hash) == 7+cryptSalt+43 && hash[6] == '$':
		n, err := strconv.ParseUint(hash[3:6], 16, 16)
		return int(n) * 1000, hash[7 : 7+cryptSalt], err == nil && n > 0
	}
	return 0, "", false
}

// cryptOrder is in which order the sum's bytes are written. Source: Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", step 22.
var cryptOrder = [][3]int{{0, 10, 20}, {21, 1, 11}, {12, 22, 2}, {3, 13, 23}, {24, 4, 14}, {15, 25, 5}, {6, 16, 26}, {27, 7, 17}, {18, 28, 8}, {9, 19, 29}, {-1, 31, 30}}

// cryptDigits are the digits of SHA-crypt.
const cryptDigits = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// sha256Crypt is the sum of SHA-crypt, 43 characters. Source: the same, steps 1 to 22.
func sha256Crypt(password, salt string, rounds int) string {
	p, s := []byte(password), []byte(salt)
	b := sha256.Sum256(slices.Concat(p, s, p))
	text := slices.Concat(p, s, stretched(b[:], len(p)))
	for n := len(p); n > 0; n >>= 1 {
		if n&1 == 1 {
			text = append(text, b[:]...)
		} else {
			text = append(text, p...)
		}
	}
	a := sha256.Sum256(text)
	dp := sha256.Sum256(bytes.Repeat(p, len(p)))
	ds := sha256.Sum256(bytes.Repeat(s, 16+int(a[0])))
	pp, ss := stretched(dp[:], len(p)), stretched(ds[:], len(s))
	for i := range rounds {
		text = text[:0]
		if i&1 == 1 {
			text = append(text, pp...)
		} else {
			text = append(text, a[:]...)
		}
		if i%3 != 0 {
			text = append(text, ss...)
		}
		if i%7 != 0 {
			text = append(text, pp...)
		}
		if i&1 == 1 {
			text = append(text, a[:]...)
		} else {
			text = append(text, pp...)
		}
		a = sha256.Sum256(text)
	}
	out := make([]byte, 0, 44)
	for _, o := range cryptOrder {
		v, n := uint32(a[o[1]])<<8|uint32(a[o[2]]), 3
		if o[0] >= 0 {
			v, n = v|uint32(a[o[0]])<<16, 4
		}
		for range n {
			out = append(out, cryptDigits[v&63])
			v >>= 6
		}
	}
	return string(out)
}

// stretched is b again and again, n bytes of it.
func stretched(b []byte, n int) []byte { return bytes.Repeat(b, n/len(b)+1)[:n] }

// NewSecret is the form in which a server stores a password with a plug-in, so that the password itself need not be sent. It fails for
// other plug-ins: of parsec, too, which no server here has to try it on.
func NewSecret(plugin, password string) (Secret, error) {
	salt := make([]byte, cryptSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("draw a salt: %w", err)
	}
	for i := range salt { // printable, and no sign that has a meaning in the form or in SQL
		salt[i] = cryptDigits[salt[i]&63]
	}
	switch plugin {
	case pluginNative:
		return Secret(nativeHash(password)), nil
	case pluginEd25519:
		return Secret(ed25519Hash(password)), nil
	case pluginCaching:
		return Secret("$A$005$" + string(salt) + sha256Crypt(password, string(salt), 5000)), nil
	case pluginSHA256:
		return Secret("$5$" + string(salt) + "$" + sha256Crypt(password, string(salt), 5000)), nil
	}
	return "", fmt.Errorf("the form in which %q stores passwords cannot be made here", plugin)
}
