package web

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

const cookieName = "risso_token"

// roleHeader tells the page what its viewer may do, so that it offers no more.
const roleHeader = "Risso-Role"

// viewer is the client.
type viewer struct {
	name string // of the token; empty: no token is asked for
	role state.Role
}

// viewerKey is where the context of a request has its viewer.
type viewerKey struct{}

func viewerOf(r *http.Request) viewer {
	v, _ := r.Context().Value(viewerKey{}).(viewer)
	return v
}

// who names the viewer in events.
func (v viewer) who() string {
	if v.name == "" {
		return "somebody on this machine"
	}
	return v.name
}

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

// guard lets a request through when no token is asked for, or it carries one with the required role: as a cookie, as
// Authorization: Bearer TOKEN, or as the password of HTTP basic authentication, which Grafana offers.
func (s *server) guard(needed state.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := s.tokensAsked(r.Context())
		if err != nil {
			writeError(w, errTokens)
			return
		}
		v := viewer{role: state.RoleAct}
		if asked {
			if v, err = s.known(r); err != nil {
				w.Header().Set("WWW-Authenticate", `Bearer realm="risso"`)
				writeError(w, err)
				return
			}
		}
		w.Header().Set(roleHeader, string(v.role))
		if !v.role.Allows(needed) {
			writeError(w, failed(http.StatusForbidden, "the token "+v.name+" may look and not act", "make one that may: risso token create NAME --role act"))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), viewerKey{}, v)))
	})
}

// known finds out whose token a request carries.
func (s *server) known(r *http.Request) (viewer, error) {
	for _, token := range tokensOf(r) {
		if token == "" {
			continue
		}
		t, err := s.Facts.VerifyToken(r.Context(), token)
		if err == nil {
			return viewer{t.Name, t.Role}, nil
		}
		if !errors.Is(err, state.ErrNotFound) {
			return viewer{}, errTokens
		}
	}
	return viewer{}, failed(http.StatusUnauthorized, "a token is required", "make one with: risso token create NAME")
}

// tokensOf returns what may be a token. The login of a proxy may be where a program puts its token: then the cookie counts.
func tokensOf(r *http.Request) (list []string) {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		list = append(list, strings.TrimSpace(t))
	}
	if _, password, ok := r.BasicAuth(); ok {
		list = append(list, password)
	}
	if c, err := r.Cookie(cookieName); err == nil {
		list = append(list, c.Value)
	}
	return list
}

// did writes down who did what, and to what.
func (s *server) did(r *http.Request, instance, subject, text string) {
	if s.Did != nil {
		s.Did(fleet.Event{Time: time.Now(), Instance: instance, Kind: fleet.EventAction, Subject: subject, New: viewerOf(r).name, Text: text + " by " + viewerOf(r).who()})
	}
}

// login takes a token once and keeps it in a cookie that scripts cannot read.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	b, release, err := s.readBody(w, r, smallBody)
	if err != nil {
		writeError(w, err)
		return
	}
	defer release()
	var body struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(b, &body); err != nil {
		writeError(w, badRequest("the body is not JSON with a token", ""))
		return
	}
	token, err := s.Facts.VerifyToken(r.Context(), strings.TrimSpace(body.Token))
	switch {
	case errors.Is(err, state.ErrNotFound):
		writeError(w, failed(http.StatusUnauthorized, "this token is not known", "make one with: risso token create NAME"))
		return
	case err != nil:
		writeError(w, errTokens)
		return
	}
	// A proxy that terminates TLS says so; a client that lies about it harms only itself.
	secure := r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: strings.TrimSpace(body.Token), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure, Expires: time.Now().AddDate(0, 3, 0)})
	writeStatus(w, http.StatusOK, map[string]string{"name": token.Name, "role": string(token.Role)})
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
