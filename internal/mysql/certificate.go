package mysql

import (
	"context"
	"crypto/tls"
	"time"
)

// CertificateEnd connects over TLS, for a moment, and returns when the certificate that the server shows ends. It is not verified: what
// counts is how long those that do will be content. Connections that are open show the certificate of when they were opened.
func CertificateEnd(ctx context.Context, t Target, traffic *Traffic) (end time.Time, err error) {
	cfg := t.cfg.Clone()
	if cfg.TLS == nil {
		cfg.TLS, cfg.TLSConfig = &tls.Config{InsecureSkipVerify: true}, ""
	} else {
		cfg.TLS = cfg.TLS.Clone()
	}
	verify := cfg.TLS.VerifyConnection
	cfg.TLS.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) > 0 {
			end = s.PeerCertificates[0].NotAfter
		}
		if verify != nil {
			return verify(s)
		}
		return nil
	}
	t.cfg = cfg
	c, err := Connect(ctx, t, traffic)
	if err != nil {
		return end, err
	}
	return end, c.Close()
}
