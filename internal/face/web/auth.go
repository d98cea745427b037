package web

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

const cookieName = "risso_token"

// guard lets a request through when Risso is open or the request carries a valid token: as a cookie, as
// Authorization: Bearer TOKEN, or as the password of HTTP basic authentication, which Grafana offers.
func (s *server) guard(next http.Handler) http.Handler {
	if s.Open {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := tokenOf(r)
		if token != "" {
			_, err := s.Facts.VerifyToken(r.Context(), token)
			switch {
			case err == nil:
				next.ServeHTTP(w, r)
				return
			case !errors.Is(err, state.ErrNotFound):
				writeError(w, &apiError{Status: http.StatusServiceUnavailable, Message: "tokens cannot be checked now"})
				return
			}
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="risso"`)
		writeError(w, &apiError{Status: http.StatusUnauthorized, Message: "a token is required", Hint: "make one with: risso token create NAME"})
	})
}

func tokenOf(r *http.Request) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(t)
	}
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	if c, err := r.Cookie(cookieName); err == nil {
		return c.Value
	}
	return ""
}

// login takes a token once and keeps it in a cookie that scripts cannot read.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&body); err != nil {
		writeError(w, badRequest("the body is not JSON with a token", ""))
		return
	}
	token, err := s.Facts.VerifyToken(r.Context(), strings.TrimSpace(body.Token))
	if err != nil {
		writeError(w, &apiError{Status: http.StatusUnauthorized, Message: "this token is not known", Hint: "make one with: risso token create NAME"})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: strings.TrimSpace(body.Token), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil, Expires: time.Now().AddDate(0, 3, 0)})
	writeJSON(w, http.StatusOK, map[string]string{"name": token.Name})
}

// hostCheck refuses, while no token is asked for, a Host header that does not name this machine: a page
// elsewhere could otherwise let its own name resolve to 127.0.0.1 and read everything.
func (s *server) hostCheck(next http.Handler) http.Handler {
	if !s.Open {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.knownHost(r.Host) {
			writeError(w, &apiError{Status: http.StatusForbidden, Message: "this Risso answers only to local names", Hint: "use 127.0.0.1 or localhost"})
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !s.knownHost(strings.TrimPrefix(strings.TrimPrefix(o, "http://"), "https://")) {
			writeError(w, &apiError{Status: http.StatusForbidden, Message: "requests from other pages are refused"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	for _, h := range s.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}
