package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// AccessFacts is what the store knows about who may do what.
type AccessFacts interface {
	VerifyToken(ctx context.Context, secret string) (state.Token, error)
	VerifySession(ctx context.Context, secret string) (state.Actor, error)
	TokensAsked(ctx context.Context) (bool, error)
	SignIn(ctx context.Context, name, password, address, device string) (state.Actor, string, error)
	SignInByToken(ctx context.Context, token, address string) (state.Actor, string, error)
	CheckSignIn(ctx context.Context, name, password string) (state.User, error)
	KnownDevice(ctx context.Context, name, device string) (bool, error)
	SignOut(ctx context.Context, key string) error
	SignOutEverywhere(ctx context.Context, user, key string) (int64, error)
	SetPassword(ctx context.Context, name, password, except string) error
	Users(ctx context.Context) ([]state.User, error)
	Tokens(ctx context.Context) ([]state.Token, error)
	RevokeToken(ctx context.Context, idOrName string) error
	Actions(ctx context.Context, q state.ActionQuery) ([]state.Action, error)
	Documents(ctx context.Context, kind string) ([]state.Document, error)
}

// The headers that tell the page who its viewer is and what he may do, so that it offers no more. There is no name where nobody was asked for one.
const (
	roleHeader = "Risso-Role"
	whoHeader  = "Risso-Who"
)

// Who is who makes a request, from its context.
func Who(ctx context.Context) state.Actor { return state.ActorOf(ctx) }

func viewerOf(r *http.Request) state.Actor { return Who(r.Context()) }

// askedFor remembers for a moment whether tokens are asked for.
type askedFor struct {
	mu    sync.Mutex
	at    time.Time
	asked bool
}

// askedEvery is how old that may be: a new token takes effect immediately for people.
const askedEvery = time.Second

// tokensAsked reports whether a token is asked for: beyond loopback always, on loopback since there is one. What comes from
// this machine may be a proxy, through which everybody comes.
func (s *server) tokensAsked(ctx context.Context) (bool, error) {
	if !s.Open {
		return true, nil
	}
	a := &s.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() && time.Since(a.at) < askedEvery {
		return a.asked, nil
	}
	asked, err := s.Facts.TokensAsked(ctx)
	if err != nil {
		return true, err
	}
	a.asked, a.at = asked, time.Now()
	return asked, nil
}

var errTokens = failed(http.StatusServiceUnavailable, "tokens cannot be checked now", "")

// route is what only those with a role reach.
type route struct {
	http.Handler
	needed state.Role
	part   bool // what it is about may be within what its caller is limited to
}

// guard lets a request through when nobody is asked who he is, or it says so and has the required role: by a session's cookie, or a token as
// Authorization: Bearer TOKEN or as the password of HTTP basic authentication, which Grafana offers. Those whose access is limited to some groups and
// servers may only look: see guardPart.
func (s *server) guard(needed state.Role, next http.Handler) *route {
	return &route{s.admit(needed, false, next), needed, false}
}

// guardPart is guard for what is about some servers or groups. The handler calls touches before it does anything.
func (s *server) guardPart(needed state.Role, next http.Handler) *route {
	return &route{s.admit(needed, true, next), needed, true}
}

func (s *server) admit(needed state.Role, part bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := s.tokensAsked(r.Context())
		if err != nil {
			writeError(w, errTokens)
			return
		}
		// Whoever is on the machine may fail over, but access itself is for those who may read the data folder.
		a := state.Actor{Role: state.RoleFailover}
		if asked {
			if a, err = s.known(r); err != nil {
				w.Header().Set("WWW-Authenticate", `Bearer realm="risso"`)
				writeError(w, err)
				return
			}
			w.Header().Set(whoHeader, url.PathEscape(a.Who()))
		}
		w.Header().Set(roleHeader, string(a.Role))
		a.Address, a.Call = clientAddress(r), r.Method+" "+r.URL.Path
		r = r.WithContext(state.WithActor(r.Context(), a))
		if err := a.Lacks(needed); err != nil {
			s.refuse(r, "", a.Call, a.Call+" was refused, because it needs the role "+string(needed)+"; tried")
			writeError(w, &apiError{err, http.StatusForbidden})
			return
		}
		if needed != state.RoleLook && !part {
			if err := s.within(r, nil); err != nil {
				writeError(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// touches is why the caller may not change these servers, or everything if there are none. A server is one thing with the groups that it is in.
func (s *server) touches(r *http.Request, servers ...string) error {
	a := viewerOf(r)
	if !a.Limited() {
		return nil
	}
	all := [][]state.Thing{nil}
	if len(servers) > 0 {
		all = nil
	}
	for _, id := range servers {
		things, err := s.thingsOf(r.Context(), id)
		if err != nil {
			return err
		}
		all = append(all, things)
	}
	return s.within(r, all...)
}

// touchesGroup is why the caller may not change a group.
func (s *server) touchesGroup(r *http.Request, name string) error {
	return s.within(r, []state.Thing{{Kind: state.OfGroup, Name: name}})
}

// within refuses what the caller may not change; each of the lists is one thing under all its names.
func (s *server) within(r *http.Request, all ...[]state.Thing) error {
	a := viewerOf(r)
	for _, things := range all {
		if err := a.Bars(things...); err != nil {
			s.refuse(r, "", a.Call, a.Call+" was refused: "+err.Error()+"; tried")
			return &apiError{err, http.StatusForbidden}
		}
	}
	return nil
}

// thingsOf are a server's names, and the groups that it is in: those that fail over together, and the one of the config file.
func (s *server) thingsOf(ctx context.Context, id string) ([]state.Thing, error) {
	things := []state.Thing{{Kind: state.OfServer, Name: id}}
	name := id
	for _, i := range s.Live.Instances() {
		if i.ID == id {
			name = i.Name
			things = []state.Thing{{Kind: state.OfServer, Name: i.Name}}
			if i.Group != "" {
				things = append(things, state.Thing{Kind: state.OfGroup, Name: i.Group})
			}
		}
	}
	list, err := s.Facts.Documents(ctx, state.OfGroup)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		var g group.Group
		if err := json.Unmarshal(d.Body, &g); err != nil {
			continue // a later Risso's: it gives no access
		}
		for _, m := range g.Members {
			if m.Name == name {
				things = append(things, state.Thing{Kind: state.OfGroup, Name: g.Name})
			}
		}
	}
	return things, nil
}

// The cookies. Where the way is encrypted the session's is one that no other host and no unencrypted page can set.
const (
	sessionCookie       = "risso_session"
	sessionCookieSecure = "__Host-risso_session"
	deviceCookie        = "risso_device" // by which a browser is known that has signed in before
	tokenCookie         = "risso_token"  // had the token itself, before there were sessions
)

// encrypted reports whether the client sees TLS. A proxy that terminates it says so; a client that lies about it harms only itself.
func encrypted(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// sessionOf is the secret of the session that a request carries, or empty.
func sessionOf(r *http.Request) string {
	name := sessionCookie
	if encrypted(r) {
		name = sessionCookieSecure
	}
	if c, err := r.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}

// clientAddress is where a request comes from. What comes from this machine may be a proxy, whose last word about its own client is believed: nobody else can
// put it last.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		list := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
		if told := net.ParseIP(strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])); told != nil {
			return told.String()
		}
	}
	return host
}

// known finds out who makes a request.
func (s *server) known(r *http.Request) (state.Actor, error) {
	wrong := false
	for _, token := range tokensOf(r) {
		if token == "" {
			continue
		}
		t, err := s.Facts.VerifyToken(r.Context(), token)
		if err == nil {
			return t.Actor(), nil
		}
		if !errors.Is(err, state.ErrNotFound) {
			return state.Actor{}, errTokens
		}
		wrong = true
	}
	if secret := sessionOf(r); secret != "" {
		a, err := s.Facts.VerifySession(r.Context(), secret)
		if err == nil {
			return a, nil
		}
		if !errors.Is(err, state.ErrNotFound) {
			return state.Actor{}, errTokens
		}
	}
	if wrong {
		s.refuseUnknown(r, "a token", "a request with a token that is not known, has expired or was revoked was refused; sent")
	}
	return state.Actor{}, failed(http.StatusUnauthorized, "a token is required, or to sign in", "make one with: risso token create NAME, or a user with: risso user add NAME")
}

// tokensOf returns what may be a token. The login of a proxy may be where a program puts its token: then a cookie counts.
func tokensOf(r *http.Request) (list []string) {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		list = append(list, strings.TrimSpace(t))
	}
	if _, password, ok := r.BasicAuth(); ok {
		list = append(list, password)
	}
	if c, err := r.Cookie(tokenCookie); err == nil {
		list = append(list, c.Value)
	}
	return list
}

// did writes down who did what, and to what. The text is a sentence that lacks who it was.
func (s *server) did(r *http.Request, instance, subject, text string) {
	s.tell(viewerOf(r), state.ActionDone, fleet.Event{Instance: instance, Subject: subject, Text: text})
}

// didNot writes down who tried to do what, and why it came to nothing.
func (s *server) didNot(r *http.Request, instance, subject, text string, err error) {
	s.tell(viewerOf(r), state.ActionFailed, fleet.Event{Instance: instance, Subject: subject, Text: text + " failed: " + err.Error() + "; asked for"})
}

func (s *server) tell(a state.Actor, outcome state.ActionOutcome, e fleet.Event) {
	if s.Did != nil {
		s.Did(state.ActionBy(a, outcome, e))
	}
}

// refuse writes down who was refused what, as long as it does not happen all the time.
func (s *server) refuse(r *http.Request, instance, subject, text string) {
	a := viewerOf(r)
	if more, ok := s.refusals.take(a.Who() + " " + a.Address + " " + subject); ok {
		s.tell(a, state.ActionRefused, fleet.Event{Severity: fleet.SeverityWarning, Instance: instance, Subject: subject, Text: text + more})
	}
}

// refuseUnknown is refuse, of somebody of whom no more is known than where he is.
func (s *server) refuseUnknown(r *http.Request, subject, text string) {
	a := state.Actor{Address: clientAddress(r), Call: r.Method + " " + r.URL.Path}
	a.Name = "somebody at " + cmp.Or(a.Address, "an unknown address")
	if more, ok := s.refusals.take(a.Address + " " + subject); ok {
		s.tell(a, state.ActionRefused, fleet.Event{Severity: fleet.SeverityWarning, Subject: subject, Text: text + more})
	}
}

// hostCheck refuses a Host header that does not name this Risso: a page elsewhere could otherwise let its own name resolve
// to Risso's address and read everything on behalf of its user. On loopback that holds for all names but local
// ones; elsewhere only when names are configured, as they are not known otherwise. Requests that another page makes are refused
// everywhere.
func (s *server) hostCheck(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, failed(http.StatusForbidden, "requests from other pages are refused", ""))
	}))
	next = cross.Handler(next)
	if !s.Open && len(s.Hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.knownHost(r.Host) {
			writeError(w, failed(http.StatusForbidden, "this Risso does not answer to that name", "use its address, or add the name to hosts in the config file"))
			return
		}
		if o := r.Header.Get("Origin"); o != "" {
			if u, err := url.Parse(o); err != nil || !s.knownHost(u.Host) {
				writeError(w, failed(http.StatusForbidden, "requests from other pages are refused", ""))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || !s.Open // no name, so it cannot be made to resolve to something else
	}
	for _, h := range s.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}
