package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// tlsOptions are those of an option file, in the words of MySQL's clients (ssl-mode) and of MariaDB's (ssl, ssl-verify-server-cert).
// (https://dev.mysql.com/doc/refman/9.4/en/connection-options.html#encrypted-connection-options,
// https://mariadb.com/kb/en/securing-connections-for-client-and-server/)
type tlsOptions struct {
	mode, ca, cert, key string
	on, off, verify     bool // MariaDB's ssl, skip-ssl and ssl-verify-server-cert
}

// set takes a line of an option file that is about TLS. Given without a value, value is empty.
func (o *tlsOptions) set(name, value string) {
	no := strings.EqualFold(value, "0") || strings.EqualFold(value, "off") || strings.EqualFold(value, "false")
	switch name {
	case "ssl-mode":
		o.mode = strings.ToUpper(value)
	case "ssl-ca":
		o.ca = value
	case "ssl-cert":
		o.cert = value
	case "ssl-key":
		o.key = value
	case "ssl":
		o.on, o.off = !no, no
	case "skip-ssl", "disable-ssl":
		o.on, o.off = no, !no
	case "ssl-verify-server-cert":
		o.verify = !no
	case "skip-ssl-verify-server-cert", "disable-ssl-verify-server-cert":
		o.verify = no
	}
}

// demand is what the options ask of a connection, as an ssl-mode; "" when they are silent.
func (o *tlsOptions) demand() string {
	switch {
	case o.off:
		return "DISABLED"
	case o.mode != "" && o.mode != "PREFERRED" && o.mode != "REQUIRED":
		return o.mode
	case o.verify:
		return "VERIFY_IDENTITY"
	case o.ca != "":
		return "VERIFY_CA" // as MySQL's clients have it: who names a CA wants it asked
	case o.on || o.cert != "" && o.mode == "":
		return "REQUIRED"
	}
	return o.mode
}

// config is how to encrypt a connection; nil: not at all, or as the DSN says.
func (o *tlsOptions) config() (*tls.Config, error) {
	mode := o.demand()
	if mode == "" || mode == "DISABLED" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("ssl-ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ssl-ca: %s holds no certificate", o.ca)
		}
	}
	if o.cert != "" || o.key != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("ssl-cert and ssl-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	switch mode {
	case "PREFERRED", "REQUIRED":
		c.InsecureSkipVerify = true
	case "VERIFY_CA":
		c.InsecureSkipVerify = true // the name is not looked at
		c.VerifyConnection = chainOf(c.RootCAs)
	case "VERIFY_IDENTITY":
	default:
		return nil, fmt.Errorf("ssl-mode: there is no %s: DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY", mode)
	}
	return c, nil
}

// chainOf verifies that a certificate is one of a CA's, whatever its name.
func chainOf(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return &tls.CertificateVerificationError{Err: errors.New("the server has none")}
		}
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		if _, err := s.PeerCertificates[0].Verify(o); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		return nil
	}
}

// encrypt makes a connection's configuration, which says nothing of TLS, do what the option file says.
func (d Defaults) encrypt(cfg *driver.Config) {
	if d.tls == nil {
		return
	}
	preferred := d.options.demand() == "PREFERRED"
	if preferred && cfg.Net == "unix" {
		return // nothing listens there
	}
	cfg.TLS = d.tls.Clone()
	cfg.AllowFallbackToPlaintext = preferred
	cfg.TLS.ServerName = "localhost"
	if host, _, err := net.SplitHostPort(cfg.Addr); err == nil && cfg.Net != "unix" {
		cfg.TLS.ServerName = host
	}
}

// encryption is how the target's connections are encrypted, as an ssl-mode; "" where nobody said anything.
func (t Target) encryption() string {
	switch c := t.cfg.TLS; {
	case t.tls != nil:
		return t.tls.demand()
	case t.cfg.TLSConfig == "":
		return ""
	case c == nil:
		return "DISABLED"
	case t.cfg.AllowFallbackToPlaintext:
		return "PREFERRED"
	case c.InsecureSkipVerify:
		return "REQUIRED"
	}
	return "VERIFY_IDENTITY"
}

// tlsLines are the lines of an option file by which a tool encrypts its connection as Risso does.
func (t Target) tlsLines(tool CopyTool) (lines [][2]string) {
	mode := t.encryption()
	if tool == ToolMariaDBBackup {
		// Without these it encrypts if the server can, and from 11.4 on wants a certificate that it can verify. With ssl-ca it verifies
		// who signed the certificate, even where it need not be the host's. With ssl alone it takes a server that cannot encrypt (10.11).
		switch mode {
		case "DISABLED":
			return [][2]string{{"skip-ssl", ""}}
		case "VERIFY_IDENTITY":
			lines = [][2]string{{"ssl", ""}, {"ssl-verify-server-cert", ""}}
		case "":
			lines = [][2]string{{"skip-ssl-verify-server-cert", ""}}
		default:
			lines = [][2]string{{"ssl", ""}, {"skip-ssl-verify-server-cert", ""}}
		}
	} else if mode != "" {
		lines = [][2]string{{"ssl-mode", mode}}
	}
	if o := t.tls; o != nil && mode != "" && mode != "DISABLED" {
		for _, f := range [][2]string{{"ssl-ca", o.ca}, {"ssl-cert", o.cert}, {"ssl-key", o.key}} {
			if f[1] != "" {
				lines = append(lines, f)
			}
		}
	}
	return lines
}
