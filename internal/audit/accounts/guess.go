package accounts

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"filippo.io/edwards25519"

	"github.com/rissodb/risso/internal/mysql/define"
)

// guesser tries passwords against what servers keep of them. It asks no server.
type guesser struct {
	list  []string
	plain map[string]string // hashes without a salt of all of the list, by plugin and hash, to the password's place in words
}

// common are passwords that everybody tries first. Source: the lists of the most used passwords that security firms publish each year.
var common = strings.Fields(`123456 123456789 12345678 12345 1234567 1234567890 1234 123123 111111 000000 password password1 Password1 passw0rd P@ssw0rd
 Password123 password123 qwerty qwerty123 qwertyuiop 1q2w3e4r 1q2w3e abc123 admin admin123 administrator root root123 toor secret changeme changeit
 welcome welcome1 letmein iloveyou monkey dragon default test test123 guest user mysql mysql123 mariadb percona database db oracle pass pass123
 sbtest app dev prod backup replication repl replica slave monitor pmm zabbix nagios wordpress`)

// newGuesser prepares a list of passwords; nil is the built-in one.
func newGuesser(list []string) *guesser {
	if list == nil {
		list = common
	}
	g := &guesser{list: list, plain: map[string]string{}}
	for _, p := range list {
		g.plain["mysql_native_password\x00"+nativeHash(p)] = "is one of those that are tried first"
		g.plain["ed25519\x00"+ed25519Hash(p)] = "is one of those that are tried first"
	}
	return g
}

// ofUser are the passwords that come from the account's own name.
func ofUser(user string) []string {
	if user == "" {
		return nil
	}
	out := []string{user}
	for _, end := range []string{"1", "12", "123", "1234", "!", "2024", "2025", "2026", "_pw", "pass", "password"} {
		out = append(out, user+end)
	}
	if up := strings.ToUpper(user[:1]) + user[1:]; up != user {
		out = append(out, up, up+"1", up+"123", up+"123!")
	}
	return append(out, strings.ToUpper(user), reversed(user))
}

func reversed(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

// weak says in words what makes a password weak, "" if it was not guessed; known is false if this kind of hash cannot be tried, done is
// false if ctx ended before all were.
func (g *guesser) weak(ctx context.Context, user string, w define.Way) (words string, known, done bool) {
	hash := string(w.Hash)
	switch w.Plugin {
	case "mysql_native_password", "ed25519":
		make := nativeHash
		if w.Plugin == "ed25519" {
			make = ed25519Hash
		} else {
			hash = strings.ToUpper(hash)
		}
		for _, p := range ofUser(user) {
			if make(p) == hash {
				return "comes from the account's own name", true, true
			}
		}
		return g.plain[w.Plugin+"\x00"+hash], true, true
	case "caching_sha2_password", "sha256_password":
		salt, rounds, digest, ok := cryptParts(hash)
		if !ok {
			return "", false, true
		}
		for i, list := range [][]string{ofUser(user), g.list} {
			for _, p := range list {
				if ctx.Err() != nil {
					return "", true, false
				}
				if sha256Crypt(p, salt, rounds) == digest {
					return []string{"comes from the account's own name", "is one of those that are tried first"}[i], true, true
				}
			}
		}
		return "", true, true
	}
	return "", false, true
}

// nativeHash is what mysql_native_password keeps: * and SHA1(SHA1(password)) in hexadecimal digits (MySQL manual, "Native Pluggable
// Authentication").
func nativeHash(password string) string {
	a := sha1.Sum([]byte(password))
	b := sha1.Sum(a[:])
	return "*" + strings.ToUpper(hex.EncodeToString(b[:]))
}

// ed25519Hash is what MariaDB's ed25519 keeps: the public key whose secret scalar is the first half of SHA512(password) (MariaDB
// documentation, "Authentication Plugin - ed25519").
func ed25519Hash(password string) string {
	h := sha512.Sum512([]byte(password))
	s, err := edwards25519.NewScalar().SetBytesWithClamping(h[:32])
	if err != nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(new(edwards25519.Point).ScalarBaseMult(s).Bytes())
}

// cryptParts takes apart $A$005$, 20 bytes of salt and 43 characters of digest, as caching_sha2_password keeps them (rounds in thousands), or
// $5$, the salt, $ and the digest, as sha256_password does.
func cryptParts(hash string) (salt string, rounds int, digest string, ok bool) {
	const saltBytes, digestChars = 20, 43
	if rest, is := strings.CutPrefix(hash, "$A$"); is && len(rest) == len("005$")+saltBytes+digestChars {
		thousands, err := strconv.ParseUint(rest[:3], 16, 16)
		return rest[4 : 4+saltBytes], int(thousands) * 1000, rest[4+saltBytes:], err == nil && thousands > 0
	}
	rest, is := strings.CutPrefix(hash, "$5$")
	i := strings.LastIndexByte(rest, '$')
	if !is || i < 0 || len(rest)-i-1 != digestChars {
		return "", 0, "", false
	}
	return rest[:i], 5000, rest[i+1:], true
}

// sha256Crypt is the digest of Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512", version 0.6, with a salt of any length.
func sha256Crypt(password, salt string, rounds int) string {
	p, s := []byte(password), []byte(salt)
	b := sha256.New()
	b.Write(p)
	b.Write(s)
	b.Write(p)
	inner := b.Sum(nil)
	a := sha256.New()
	a.Write(p)
	a.Write(s)
	a.Write(repeated(inner, len(p)))
	for n := len(p); n > 0; n >>= 1 {
		if n&1 != 0 {
			a.Write(inner)
		} else {
			a.Write(p)
		}
	}
	sum := a.Sum(nil)
	dp := sha256.New()
	for range p {
		dp.Write(p)
	}
	pseq := repeated(dp.Sum(nil), len(p))
	ds := sha256.New()
	for range 16 + int(sum[0]) {
		ds.Write(s)
	}
	sseq := repeated(ds.Sum(nil), len(s))
	for i := range rounds {
		c := sha256.New()
		if i&1 != 0 {
			c.Write(pseq)
		} else {
			c.Write(sum)
		}
		if i%3 != 0 {
			c.Write(sseq)
		}
		if i%7 != 0 {
			c.Write(pseq)
		}
		if i&1 != 0 {
			c.Write(sum)
		} else {
			c.Write(pseq)
		}
		sum = c.Sum(sum[:0])
	}
	return crypt64(sum)
}

// repeated is b again and again, up to n bytes.
func repeated(b []byte, n int) []byte {
	out := make([]byte, 0, n+len(b))
	for len(out) < n {
		out = append(out, b...)
	}
	return out[:n]
}

// crypt64 writes a digest of SHA-256 in crypt's own order and digits.
func crypt64(d []byte) string {
	const digits = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := make([]byte, 0, 43)
	put := func(v uint32, n int) {
		for ; n > 0; n-- {
			out = append(out, digits[v&63])
			v >>= 6
		}
	}
	for i := range 10 { // 0 10 20, 21 1 11, 12 22 2, 3 13 23 …
		a, b, c := i, (i+10)%30, (i+20)%30
		switch i % 3 {
		case 0:
			put(uint32(d[a])<<16|uint32(d[b])<<8|uint32(d[c]), 4)
		case 1:
			put(uint32(d[c])<<16|uint32(d[a])<<8|uint32(d[b]), 4)
		default:
			put(uint32(d[b])<<16|uint32(d[c])<<8|uint32(d[a]), 4)
		}
	}
	put(uint32(d[31])<<8|uint32(d[30]), 3)
	return string(out)
}
