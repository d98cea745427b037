package tell

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/alert"
)

// NSCA sends passive results to a Nagios or Icinga. As a receiver it sends one for each alert: the host is the server's name, the service
// the finding. NSCA does not say whether it could read a result, or whether there is such a service.
type NSCA struct {
	Server       string `yaml:"server"` // host, or host:port
	Password     string `yaml:"password,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	PasswordEnv  string `yaml:"password_env,omitempty"`
	Method       string `yaml:"method,omitempty"` // none, xor (the default), 3des or aes256
}

// Passive is a passive result.
type Passive struct {
	Host, Service string
	Code          int    // 0 to 3
	Text          string // what a plug-in prints
}

// How large the parts of a packet are. Source: common.h of NSCA 2.9.
const (
	nscaHost    = 64
	nscaService = 128
	nscaOutput  = 4096
	nscaVector  = 128
	nscaPacket  = 14 + nscaHost + nscaService + nscaOutput + 2
	nscaVersion = 3
)

// Check says what is wrong with the configuration.
func (n *NSCA) Check() error { return n.check() }

func (n *NSCA) check() error {
	if host, port, err := net.SplitHostPort(n.address()); err != nil || host == "" || port == "" {
		return errors.New("nsca: server must be as nagios or nagios:5667")
	}
	if _, err := n.cipher("", make([]byte, nscaVector)); err != nil {
		return err
	}
	return nil
}

func (n *NSCA) address() string {
	if strings.Contains(n.Server, ":") {
		return n.Server
	}
	return net.JoinHostPort(n.Server, "5667")
}

func (n *NSCA) open() Receiver {
	return sender(func(ctx context.Context, m *alert.Message) error {
		var list []Passive
		for i := range m.Alerts {
			a := &m.Alerts[i]
			p := Passive{Host: a.Server, Service: strings.TrimSpace(a.Finding + " " + a.Subject), Text: strings.Join(Lines(a), "\n")}
			switch {
			case a.Phase == alert.Resolved || m.Test:
			case a.Severity >= fleet.SeverityCritical:
				p.Code = 2
			case a.Severity >= fleet.SeverityWarning:
				p.Code = 1
			}
			list = append(list, p)
		}
		return n.Submit(ctx, list)
	})
}

// Submit sends results, one after the other.
func (n *NSCA) Submit(ctx context.Context, list []Passive) error {
	password, err := kept{n.Password, n.PasswordFile, n.PasswordEnv}.read()
	if err != nil {
		return err
	}
	if err := n.submit(ctx, password, list); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("NSCA at %s: %w", n.address(), err)
	}
	return nil
}

func (n *NSCA) submit(ctx context.Context, password string, list []Passive) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("no answer within 20 s"))
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.address())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	hello := make([]byte, nscaVector+4)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return fmt.Errorf("it does not greet as NSCA does: %w", err)
	}
	hide, err := n.cipher(password, hello[:nscaVector])
	if err != nil {
		return err
	}
	for _, p := range list {
		packet := p.packet(binary.BigEndian.Uint32(hello[nscaVector:]))
		hide(packet)
		if _, err := conn.Write(packet); err != nil {
			return err
		}
	}
	// It says nothing; when it has read all, it closes the connection.
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(conn, 1024)); err != nil {
		return fmt.Errorf("it is not known whether it took the results: %w", err)
	}
	return nil
}

// packet is a result as it is sent, but not encrypted.
func (p Passive) packet(timestamp uint32) []byte {
	b := make([]byte, nscaPacket)
	binary.BigEndian.PutUint16(b, nscaVersion)
	binary.BigEndian.PutUint32(b[8:], timestamp)
	binary.BigEndian.PutUint16(b[12:], uint16(p.Code&3))
	at := 14
	for _, f := range []struct {
		text string
		size int
	}{{cut(p.Host, 0), nscaHost}, {strings.ReplaceAll(cut(p.Service, 0), ";", ","), nscaService}, {tidy(p.Text), nscaOutput}} {
		copy(b[at:at+f.size-1], fitting(f.text, f.size-1)) // a zero ends each
		at += f.size
	}
	binary.BigEndian.PutUint32(b[4:], crc32.ChecksumIEEE(b))
	return b
}

// tidy is a plug-in's output, line by line without what is no text. NSCA itself escapes the ends of lines.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, cut(line, 0))
	}
	return strings.Join(lines, "\n")
}

// fitting is as much of a text as most bytes hold, by whole characters.
func fitting(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// cipher makes what encrypts packets, in place, one after the other.
func (n *NSCA) cipher(password string, vector []byte) (func([]byte), error) {
	key := func(size int) []byte { return append([]byte(password), make([]byte, size)...)[:size] }
	var block cipher.Block
	var err error
	switch cmp.Or(n.Method, "xor") {
	case "none", "0":
		return func([]byte) {}, nil
	case "xor", "1":
		return func(b []byte) {
			for i := range b {
				b[i] ^= vector[i%len(vector)]
				if password != "" {
					b[i] ^= password[i%len(password)]
				}
			}
		}, nil
	case "3des", "3":
		block, err = des.NewTripleDESCipher(key(24))
	case "aes256", "14": // called rijndael-128 there, after the size of its blocks
		block, err = aes.NewCipher(key(32))
	default:
		return nil, fmt.Errorf("nsca: method %q: it can be none, xor, 3des or aes256", n.Method)
	}
	if err != nil {
		return nil, fmt.Errorf("nsca: %w", err)
	}
	// CFB by bytes, as mcrypt has it.
	shift := append([]byte{}, vector[:block.BlockSize()]...)
	out := make([]byte, block.BlockSize())
	return func(b []byte) {
		for i := range b {
			block.Encrypt(out, shift)
			b[i] ^= out[0]
			shift = append(shift[1:], b[i])
		}
	}, nil
}
