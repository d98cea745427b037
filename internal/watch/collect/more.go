package collect

import (
	"context"
	"math"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// CertificateEnd is the metric of when a server's TLS certificate ends, in unix seconds.
const CertificateEnd = "risso_certificate_not_after_seconds"

// certificate knows when a server's TLS certificate ends.
type certificate struct {
	end  time.Time
	next time.Time // when it is looked at again, where that takes a connection
}

// How often that is.
const (
	certificateEvery = time.Hour
	certificateSoon  = time.Minute // if it ends within certificateNear
	certificateNear  = 30 * 24 * time.Hour
	certificateTime  = 3 * time.Second
)

// look finds out when a MariaDB's certificate ends: it shows that to those who connect over TLS. A MySQL has it among its status.
func (k *certificate) look(ctx context.Context, s *Server, now time.Time) {
	if !s.conn.Server.ShowsCertificate() {
		return
	}
	if s.reader.Variables["have_ssl"] != "DISABLED" && !now.Before(k.next) {
		cctx, cancel := context.WithTimeout(ctx, certificateTime)
		defer cancel()
		end, err := mysql.CertificateEnd(cctx, s.target, s.traffic)
		k.next = now.Add(certificateEvery)
		switch {
		case !end.IsZero():
			k.end = end
		case mysql.ClassOf(err) == mysql.ClassTLS: // it has none
			k.end = time.Time{}
		}
		if !k.end.IsZero() && k.end.Sub(now) < certificateNear {
			k.next = now.Add(certificateSoon)
		}
	}
	sample := &s.reader.Sample
	pos := sample.Position(fleet.Metric{Name: CertificateEnd, Unit: "seconds", Help: "when the server's TLS certificate ends", Source: "TLS"})
	sample.Values[pos] = math.NaN()
	if !k.end.IsZero() {
		sample.Values[pos] = float64(k.end.Unix())
	}
}

// errorLog is the end of a server's error log while that is of interest: it is down, or was restarted.
type errorLog struct {
	file  string // on this machine; "" if it is on another, or no file
	lines []string
	due   time.Time // when it is read again
}

// How often it is read, and for how long after a restart.
const (
	logEvery = 5 * time.Second
	logAfter = 5 * time.Minute
)

// look reads the log, by the connection if there is one.
func (l *errorLog) look(ctx context.Context, s *Server, now time.Time) {
	if v := s.reader.Variables; v != nil && s.instance.HostID != "" {
		l.file = read.ErrorLogFile(v)
	}
	if s.up && (s.restarted.IsZero() || now.Sub(s.restarted) > logAfter) {
		l.lines = nil
		return
	}
	if now.Before(l.due) {
		return
	}
	l.due = now.Add(logEvery)
	lines, err := []string(nil), error(nil)
	switch {
	case l.file != "":
		lines, err = read.TailErrorLog(l.file)
	case s.up && s.conn != nil:
		lctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		lines, err = read.ErrorLog(lctx, s.conn)
	}
	if err != nil {
		s.opts.Logger.Debug("the error log was not read", "instance", s.instance.ID, "err", err)
		return
	}
	l.lines = lines
}
