package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// bounded is the way into all that Risso serves: every request gets deadlines, and every answer the headers that keep
// browsers from making more of it than it is. A handler that streams, such as one of a web socket, moves its deadlines by
// http.ResponseController.
func (s *server) bounded(next http.Handler) http.Handler {
	l := s.gate.limits
	most := l.Body + l.Wait + l.Time + l.Write
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*boundConn); ok {
			defer c.serving()()
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		deadline(w, most)
		if r.Body != http.NoBody {
			if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" && (e != "snappy" || r.URL.Path != remoteReadPath) {
				h.Set("Connection", "close")
				writeError(w, failed(http.StatusUnsupportedMediaType, "a compressed body is not accepted", "send it as it is, without Content-Encoding"))
				return
			}
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(l.Body)) // a writer that knows no deadlines is one of a test
			r.Body = &timedBody{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody takes the deadline away when all was read: the server watches the connection while the answer is made, and would
// take a deadline that passes then for a client that went away.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads from the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// readBody reads a body of limited size, which is in memory until release is called.
func (s *server) readBody(w http.ResponseWriter, r *http.Request, most int64) (body []byte, release func(), err error) {
	room := most
	if r.ContentLength >= 0 {
		room = min(most, r.ContentLength)
	}
	if err := s.gate.hold(room); err != nil {
		return nil, nil, err
	}
	release = func() { s.gate.release(room) }
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		release()
		return nil, nil, bodyError(err, most)
	}
	return body, release, nil
}

// posted answers a request that has a body of limited size.
func (s *server) posted(l *lane, most int64, h func(r *http.Request, body []byte) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, release, err := s.readBody(w, r, most)
		if err != nil {
			writeError(w, err)
			return
		}
		defer release()
		var out any
		err = s.gate.run(r.Context(), l, func(ctx context.Context) error {
			out, err = h(r.WithContext(ctx), body)
			return err
		})
		if err != nil {
			writeError(w, err)
			return
		}
		writeStatus(w, http.StatusOK, out)
	})
}

// bodyError says why a body was not taken.
func bodyError(err error, most int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failed(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", most), "")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return failed(http.StatusRequestTimeout, "the body did not come in time", "")
	}
	return badRequest("the body did not come whole", "")
}

// queryError says what is wrong with what follows the ? of an address.
func queryError(query string, err error) error {
	if strings.Contains(query, ";") {
		return badRequest("a semicolon in the address, behind the ?", "write it as %3B; & separates parameters")
	}
	return badRequest("the address, behind the ?: "+err.Error(), "write a percent sign as %25")
}

// readForm reads the form of a POST, in addition to what follows the ? of its address. It is in memory until release is called.
func (s *server) readForm(w http.ResponseWriter, r *http.Request) (release func(), err error) {
	release = func() {}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // which ParseForm would not tell from a body's
		return release, queryError(r.URL.RawQuery, err)
	}
	if r.Method == http.MethodPost && r.Body != http.NoBody {
		if err := s.gate.hold(formBytes); err != nil {
			return release, err
		}
		release = func() { s.gate.release(formBytes) }
		r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	}
	if err := r.ParseForm(); err != nil {
		return release, bodyError(err, formBytes)
	}
	return release, nil
}
