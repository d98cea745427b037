package agent

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/health"
)

// Report is what an agent tells a controller.
type Report struct {
	Group  string    `json:"group"`
	Member string    `json:"member"`
	Nonce  string    `json:"nonce"` // of the question
	Time   time.Time `json:"time"`
	Server Sight     `json:"server"`
	// TTL is after how long without a confirmation it fences, with --fence lost; 0: it is older, and does not tell.
	TTL      time.Duration `json:"ttl_ns,omitempty"`
	ReadOnly *bool         `json:"read_only"` // nil: not known now
	Claims   Claims        `json:"claims"`    // it takes writes as a primary does
	Standing Standing      `json:"standing"`
}

// order is one to fence the server.
type order struct {
	Group  string `json:"group"`
	Member string `json:"member"` // its name
	// Address is the member's, for an agent that was given that; an older controller sends none.
	Address string `json:"address,omitempty"`
	Epoch   uint64 `json:"epoch"` // the server is not the primary as of it

	answer chan outcome
}

// Errors of witnesses.
var (
	ErrSignature = errors.New("its answer is not signed with the token that it shares with the controllers")
	errOther     = errors.New("the order is for another group or server")
)

// signature is the header with the signature of a body.
const signature = "Risso-Signature"

// sign makes it.
func sign(token string, body []byte) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

// signed reports whether a body has the signature that goes with a token. Without a token nothing has.
func signed(token string, body []byte, header string) bool {
	return token != "" && hmac.Equal([]byte(sign(token, body)), []byte(header))
}

// Look asks an agent at a URL what it sees. The answer is signed, and to this question.
func Look(ctx context.Context, client *http.Client, at, token string) (Report, error) {
	nonce := rand.Text()
	var r Report
	body, err := exchange(ctx, client, http.MethodGet, at+"/witness?nonce="+url.QueryEscape(nonce), token, nil)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("read the answer of the agent %s: %w", at, err)
	}
	if r.Nonce != nonce {
		return Report{}, fmt.Errorf("the agent %s: %w", at, ErrSignature)
	}
	return r, nil
}

// Order lets an agent at a URL fence its server, which is a member of a group and not the primary as of an epoch, and says what became of that. The agent may know the member by its
// name or by its address.
func Order(ctx context.Context, client *http.Client, at, token, of string, member group.Server, epoch uint64) (*fence.Result, error) {
	text, err := json.Marshal(order{Group: of, Member: member.Name, Address: member.Address, Epoch: epoch})
	if err != nil {
		return nil, err
	}
	body, err := exchange(ctx, client, http.MethodPost, at+"/fence", token, text)
	if err != nil {
		return nil, err
	}
	var r fence.Result
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read the answer of the agent %s: %w", at, err)
	}
	return &r, nil
}

// exchange sends a signed body, and returns one that is signed.
func exchange(ctx context.Context, client *http.Client, method, at, token string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set(signature, sign(token, body))
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the agent: %w", err)
	case !signed(token, answer, resp.Header.Get(signature)):
		return nil, fmt.Errorf("the agent %s: %w", req.URL.Host, ErrSignature)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the agent %s: %s", req.URL.Host, strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

// Report is what the agent tells now.
func (a *Agent) Report(nonce string) Report {
	r := Report{Group: a.o.Group, Member: a.o.Member, Nonce: nonce, Time: time.Now().UTC(), TTL: a.o.TTL, Server: a.eyes.now(), Claims: a.claims(), Standing: a.Standing()}
	if s := a.prober.Seen(); !s.Began.IsZero() && s.Err == nil && time.Since(s.Began) < health.DefaultMaxAge {
		is := s.Health.ReadOnly
		r.ReadOnly = &is
	}
	return r
}

// Handler answers load balancers at /primary, /replica and the like, or the same below /health, as risso health does; and controllers at /witness and /fence.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	plain := health.Handler(health.Question{}, func(r *http.Request) (*health.Prober, string) {
		path := strings.TrimPrefix(r.URL.EscapedPath(), "/health")
		if path == "" || path == "/" {
			path = "/up"
		}
		return a.prober, path + "?" + r.URL.RawQuery
	})
	primary := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := a.Standing().unfit(); why != "" {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		plain.ServeHTTP(w, r)
	})
	mux.Handle("/", plain)
	mux.Handle("/primary", primary)
	mux.Handle("/health/primary", primary)
	mux.HandleFunc("GET /witness", func(w http.ResponseWriter, r *http.Request) {
		body, err := json.Marshal(a.Report(r.URL.Query().Get("nonce")))
		a.reply(w, body, err, http.StatusInternalServerError)
	})
	mux.HandleFunc("POST /fence", a.takeOrder)
	return mux
}

// unfit says why no client that writes may come, whatever the server itself says; "": it may. That is so as soon as it is known, though fencing takes a moment, or is not for this agent to do.
func (s Standing) unfit() string {
	switch {
	case s.Deposed:
		return "Another server is the primary."
	case s.Fenced:
		return "This server is fenced."
	case s.Fence == FenceLost && !s.Valid:
		return "Nobody confirms that this server is the primary."
	}
	return ""
}

// reply writes a signed answer.
func (a *Agent) reply(w http.ResponseWriter, body []byte, err error, code int) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	if err != nil {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		body = []byte(err.Error() + "\n")
	} else {
		code = http.StatusOK
	}
	if a.o.Token != "" {
		h.Set(signature, sign(a.o.Token, body))
	}
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// takeOrder fences the server for a controller, and answers when that is done.
func (a *Agent) takeOrder(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer))
	o := order{answer: make(chan outcome, 1)}
	if err == nil && !signed(a.o.Token, text, r.Header.Get(signature)) {
		a.reply(w, nil, errors.New("the order is not signed with the token that this agent shares with the controllers"), http.StatusForbidden)
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err == nil && (o.Group != a.o.Group || !a.me(group.Server{Name: o.Member, Address: o.Address})) {
		err = errOther
	}
	if err != nil {
		a.reply(w, nil, err, http.StatusBadRequest)
		return
	}
	select {
	case a.orders <- o:
	case <-r.Context().Done():
		return
	}
	select {
	case out := <-o.answer:
		body := []byte(nil)
		if err = out.err; err == nil {
			body, err = json.Marshal(out.result)
		}
		a.reply(w, body, err, http.StatusConflict)
	case <-r.Context().Done():
	}
}

// ordered takes an order.
func (a *Agent) ordered(o order) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.other != "" {
		return errors.New(a.other)
	}
	if err := a.lease.Order(o.Epoch, now()); err != nil {
		return err
	}
	a.raise()
	a.o.Tell(fmt.Sprintf("a controller orders: %s is not the primary as of epoch %d", a.o.Target.Address(), o.Epoch))
	return nil
}
