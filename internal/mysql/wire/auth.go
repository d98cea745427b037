package wire

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	"filippo.io/edwards25519"
	driver "github.com/go-sql-driver/mysql"
)

// The plugins that authenticate accounts. Which of them may be used, and where a server's public key comes from, is as with
// the driver: the server is asked for its key, and a password in clear needs TLS, a Unix socket (caching_sha2_password only), or
// allowCleartextPasswords (mysql_clear_password).
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods.html
const (
	pluginNative  = "mysql_native_password"
	pluginClear   = "mysql_clear_password"
	pluginCaching = "caching_sha2_password"
	pluginSHA256  = "sha256_password"
	pluginEd25519 = "client_ed25519"
)

// saltSize is the length of what the plugins but Ed25519 mix with the password.
const saltSize = 20

// What caching_sha2_password and sha256_password say to each other.
const (
	askKeySHA256 = 1 // client: send the public key
	askKey       = 2 // client: send the public key
	fastSuccess  = 3 // server: the answer is right, OK follows
	fullAnswer   = 4 // server: send the password
)

// auth proves who the client is.
type auth struct {
	conn   *Conn
	cfg    *driver.Config
	safe   bool // under TLS
	plugin string
	salt   []byte
}

// first answers the server's greeting. A plugin that is not known or not allowed is answered by another one: the account may
// have a third, which the server then asks for.
func (a *auth) first(plugin string, salt []byte) ([]byte, error) {
	a.plugin, a.salt = plugin, salt
	answer, err := a.answer()
	if err != nil {
		a.plugin = pluginNative
		answer, err = a.answer()
	}
	return answer, err
}

// answer is what the plugin says to the salt.
func (a *auth) answer() ([]byte, error) {
	password := a.cfg.Passwd
	switch a.plugin {
	case pluginCaching:
		return scrambleSHA256(a.salt, password), nil
	case "", pluginNative:
		a.plugin = pluginNative
		if !a.cfg.AllowNativePasswords {
			return nil, driver.ErrNativePassword
		}
		if len(a.salt) < saltSize {
			return nil, malformed("the server's salt")
		}
		return scrambleSHA1(a.salt[:saltSize], password), nil
	case pluginClear:
		if !a.cfg.AllowCleartextPasswords {
			return nil, driver.ErrCleartextPassword
		}
		return a.clear(), nil
	case pluginSHA256:
		switch {
		case password == "":
			return []byte{0}, nil
		case a.safe:
			return a.clear(), nil
		}
		return []byte{askKeySHA256}, nil
	case pluginEd25519:
		const nonce = 32
		if len(a.salt) < nonce {
			return nil, malformed("the server's salt")
		}
		return signEd25519(a.salt[:nonce], password)
	}
	return nil, fmt.Errorf("%w: %q", driver.ErrUnknownPlugin, a.plugin)
}

func (a *auth) clear() []byte { return append([]byte(a.cfg.Passwd), 0) }

// finish talks to the server until it lets the client in.
func (a *auth) finish() error {
	const rounds = 8 // more than any plugin needs: a server could go on forever
	switched := false
	for range rounds {
		p, err := a.conn.packet()
		if err != nil {
			return err
		}
		switch p[0] {
		case headerOK:
			return nil
		case headerError:
			return errorPacket(p)
		case headerMore:
			err = a.more(p[1:])
		case headerEOF:
			if switched {
				return malformed("a second change of the authentication plugin")
			}
			switched = true
			err = a.change(p[1:])
		default:
			err = malformed("the answer to a login")
		}
		if err != nil {
			return err
		}
	}
	return malformed("a login that does not end")
}

// change answers by another plugin, as the server wishes. https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_switch_request.html
func (a *auth) change(p []byte) error {
	if len(p) == 0 {
		return fmt.Errorf("%w: passwords from before MySQL 4.1", driver.ErrUnknownPlugin)
	}
	name, salt, ok := bytes.Cut(p, []byte{0})
	if !ok {
		return malformed("the name of a plugin")
	}
	if len(salt) == saltSize+1 {
		salt = salt[:saltSize] // a zero ends it
	}
	a.plugin, a.salt = string(name), slices.Clone(salt)
	answer, err := a.answer()
	if err != nil {
		return err
	}
	return a.conn.sendPacket(nil, answer)
}

// more answers what a plugin asks further.
func (a *auth) more(p []byte) error {
	switch {
	case a.plugin == pluginSHA256:
		return a.sealed(p)
	case a.plugin != pluginCaching || len(p) == 0:
		return malformed("data of an authentication plugin")
	case p[0] == fastSuccess:
		return nil
	case p[0] != fullAnswer:
		return a.sealed(p)
	case a.safe || a.cfg.Net == "unix":
		return a.conn.sendPacket(nil, a.clear())
	}
	return a.conn.sendPacket(nil, []byte{askKey})
}

// sealed sends the password under the server's public key.
func (a *auth) sealed(key []byte) error {
	if len(a.salt) == 0 || a.safe {
		return malformed("an unrequested public key")
	}
	block, _ := pem.Decode(key)
	if block == nil {
		return malformed("the server's public key")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("the server's public key: %w", err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("the server's public key is a %T, not RSA", parsed)
	}
	plain := a.clear()
	for i := range plain {
		plain[i] ^= a.salt[i%len(a.salt)]
	}
	secret, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public, plain, nil)
	if err != nil {
		return err
	}
	return a.conn.sendPacket(nil, secret)
}

// scrambleSHA1 is SHA1(password) XOR SHA1(salt, SHA1(SHA1(password))).
func scrambleSHA1(salt []byte, password string) []byte {
	if password == "" {
		return nil
	}
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	return xor(once[:], sha1.Sum(append(slices.Clone(salt), twice[:]...)))
}

// scrambleSHA256 is SHA256(password) XOR SHA256(SHA256(SHA256(password)), salt).
func scrambleSHA256(salt []byte, password string) []byte {
	if password == "" {
		return nil
	}
	once := sha256.Sum256([]byte(password))
	twice := sha256.Sum256(once[:])
	return xor(once[:], sha256.Sum256(append(twice[:], salt...)))
}

func xor[T [sha1.Size]byte | [sha256.Size]byte](a []byte, b T) []byte {
	out := make([]byte, len(a))
	for i := range a {
		out[i] = a[i] ^ b[i]
	}
	return out
}

// signEd25519 signs the salt with a key that is made of the password itself, where crypto/ed25519 would take a seed of 32 bytes.
// https://mariadb.com/docs/server/reference/plugins/authentication-plugins/authentication-plugin-ed25519
func signEd25519(salt []byte, password string) ([]byte, error) {
	h := sha512.Sum512([]byte(password))
	s, err := edwards25519.NewScalar().SetBytesWithClamping(h[:32])
	if err != nil {
		return nil, err
	}
	public := new(edwards25519.Point).ScalarBaseMult(s).Bytes()
	nonce := sha512.Sum512(append(slices.Clone(h[32:]), salt...))
	r, err := edwards25519.NewScalar().SetUniformBytes(nonce[:])
	if err != nil {
		return nil, err
	}
	commitment := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	challenge := sha512.Sum512(slices.Concat(commitment, public, salt))
	k, err := edwards25519.NewScalar().SetUniformBytes(challenge[:])
	if err != nil {
		return nil, err
	}
	return append(commitment, k.MultiplyAdd(k, s, r).Bytes()...), nil
}
