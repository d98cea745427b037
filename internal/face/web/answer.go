package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rissodb/risso/internal/fleet"
)

// answer is the answer to a question. It is made, packed and bounded in memory before the first byte is sent: what
// goes wrong is still reported with its status, and a slow reader holds these bytes and nothing else.
type answer struct {
	gate   *gate
	kind   string // Content-Type
	policy string // Content-Security-Policy; empty: that of all answers
	most   int64
	size   int64 // before it is packed
	held   int64
	chunks [][]byte
	takes  bool         // the client takes it packed
	zip    *gzip.Writer // nil: not while it is made, or the client does not take it
	packed bool
}

// zips are kept for the next answer: each has some hundred kilobytes.
var zips = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is one
	}
	return z
}}

func (g *gate) answer(r *http.Request) *answer {
	return &answer{gate: g, kind: "application/json", most: g.limits.Answer, takes: takesGzip(r) && r.Method != http.MethodHead}
}

// begin is called when the question has its place: who waits for one holds no packer.
func (a *answer) begin() {
	if a.takes {
		a.zip = zips.Get().(*gzip.Writer)
		a.zip.Reset(stored{a})
	}
}

// Write takes a piece of the answer; errTooLarge or errMemory when there is no room for it.
func (a *answer) Write(b []byte) (int, error) {
	if a.size += int64(len(b)); a.size > a.most {
		return 0, fmt.Errorf("%w: it has more than %d bytes; ask for less: fewer series, a shorter range, larger steps", errTooLarge, a.most)
	}
	if a.zip != nil {
		return a.zip.Write(b)
	}
	return stored{a}.Write(b)
}

// stored keeps what will be sent.
type stored struct{ a *answer }

const (
	firstChunk = 2 << 10
	mostChunk  = 256 << 10
)

// Write keeps b.
func (s stored) Write(b []byte) (int, error) {
	a, n := s.a, len(b)
	for len(b) > 0 {
		last := len(a.chunks) - 1
		if last < 0 || len(a.chunks[last]) == cap(a.chunks[last]) {
			size := firstChunk
			if last >= 0 {
				size = min(2*cap(a.chunks[last]), mostChunk)
			}
			if err := a.gate.hold(int64(size)); err != nil {
				return 0, err
			}
			a.held += int64(size)
			a.chunks = append(a.chunks, make([]byte, 0, size))
			continue
		}
		c := a.chunks[last]
		fit := min(len(b), cap(c)-len(c))
		a.chunks[last], b = append(c, b[:fit]...), b[fit:]
	}
	return n, nil
}

// done ends the making of the answer.
func (a *answer) done() (err error) {
	if a.zip != nil {
		err = a.zip.Close()
		a.unzip()
	}
	return err
}

func (a *answer) unzip() {
	a.zip.Reset(io.Discard)
	zips.Put(a.zip)
	a.zip, a.packed = nil, true
}

// free lets go of the memory.
func (a *answer) free() {
	if a.zip != nil {
		a.unzip()
	}
	a.gate.release(a.held)
	a.chunks, a.held = nil, 0
}

// send writes the answer. A client that went away, or reads too slowly, is not our concern.
func (a *answer) send(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	if a.policy != "" {
		h.Set("Content-Security-Policy", a.policy)
	}
	h.Set("Vary", "Accept-Encoding")
	if a.packed {
		h.Set("Content-Encoding", "gzip")
	}
	length := 0
	for _, c := range a.chunks {
		length += len(c)
	}
	h.Set("Content-Length", strconv.Itoa(length))
	deadline(w, a.gate.limits.Write)
	for i, c := range a.chunks {
		if _, err := w.Write(c); err != nil {
			return
		}
		a.chunks[i] = nil
	}
}

// deadline is when the client has to have read all that is sent to it.
func deadline(w http.ResponseWriter, d time.Duration) {
	// A writer that knows no deadlines is one of a test.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// question answers requests with what make writes. fail reports an error in the form of the API that was asked.
func (s *server) question(l *lane, fail func(http.ResponseWriter, error), make func(r *http.Request, a *answer) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := s.gate.answer(r)
		defer a.free()
		release, err := s.readForm(w, r)
		defer release()
		if err == nil {
			err = s.gate.run(r.Context(), l, func(ctx context.Context) error {
				a.begin()
				if err := make(r.WithContext(ctx), a); err != nil {
					return err
				}
				return a.done()
			})
		}
		if err != nil {
			fail(w, err)
			return
		}
		a.send(w)
	})
}

// apiError is an error that a client sees, with the status it goes with.
type apiError struct {
	error
	Status int
}

func (e *apiError) Unwrap() error { return e.error }

// failed is an error with its status and remedy, which may be empty.
func failed(status int, message, remedy string) *apiError {
	return &apiError{fleet.WithRemedy(errors.New(message), remedy), status}
}

func badRequest(message, remedy string) error { return failed(http.StatusBadRequest, message, remedy) }

// writeError tells an error in the words of Risso's own API.
func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{err, http.StatusInternalServerError}
		if status, _, ok := refusal(err); ok {
			e.Status = status
			if status == http.StatusServiceUnavailable { // others say what to ask instead
				e.error = fleet.WithRemedy(err, "ask again in some seconds")
			}
		}
	}
	writeStatus(w, e.Status, struct {
		Error  string `json:"error"`
		Remedy string `json:"remedy,omitempty"`
	}{e.Error(), fleet.RemedyOf(e)})
}

// writeStatus sends a short answer in JSON.
func writeStatus(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // a client that went away is not our concern
}

// retryAfter is when a question that was refused may be asked again, in seconds.
const retryAfter = "5"
