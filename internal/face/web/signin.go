package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// signInRoutes are the paths about who is there.
func (s *server) signInRoutes(mux *routes) {
	mux.HandleFunc("POST /api/login", s.login)
	mux.HandleFunc("POST /api/logout", s.logout)
	mux.Handle("POST /api/logout/everywhere", s.guard(state.RoleLook, s.json(s.gate.quick, s.logoutEverywhere)))
	mux.Handle("POST /api/password", s.guard(state.RoleLook, s.posted(s.gate.passwords, smallBody, s.changePassword)))
	mux.Handle("GET /api/whoami", s.guard(state.RoleLook, s.json(s.gate.quick, s.whoami)))
	s.accessRoutes(mux)
}

// whoAnswer is who somebody is.
type whoAnswer struct {
	state.Actor
	Who string `json:"who"` // as it is said in events
}

// whoami is GET /api/whoami.
func (s *server) whoami(r *http.Request) (any, error) {
	a := viewerOf(r)
	if a.Limits == nil {
		a.Limits = []state.Only{}
	}
	return whoAnswer{a, a.Who()}, nil
}

// credentials are what somebody signs in with: a token, or a user and a password.
type credentials struct {
	Token    string `json:"token"`
	User     string `json:"user"`
	Password string `json:"password"`
}

// login takes a token, or a user and a password, once, and begins a session, whose secret is in a cookie that scripts cannot read.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	b, release, err := s.readBody(w, r, smallBody)
	if err != nil {
		writeError(w, err)
		return
	}
	defer release()
	var c credentials
	if err := json.Unmarshal(b, &c); err != nil {
		writeError(w, badRequest("the body is not JSON with a token, or a user and a password", `send {"token": "…"} or {"user": "…", "password": "…"}`))
		return
	}
	var a state.Actor
	var secret, device string
	if c.User != "" || c.Password != "" {
		a, secret, device, err = s.byPassword(r, c)
	} else {
		a, secret, err = s.byToken(r, strings.TrimSpace(c.Token))
	}
	if err != nil {
		if wait, ok := errors.AsType[*waitError](err); ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.wait.Seconds()))))
			err = failed(http.StatusTooManyRequests, wait.Error(), "a token may be used meanwhile")
		}
		writeError(w, err)
		return
	}
	if old := sessionOf(r); old != "" { // what was there before, by whoever's hand, is nobody's session now
		if was, err := s.Facts.VerifySession(r.Context(), old); err == nil {
			_ = s.Facts.SignOut(r.Context(), was.Session) // it ends by itself otherwise
		}
	}
	a.Address, a.Call = clientAddress(r), "POST /api/login"
	s.tell(a, state.ActionDone, fleet.Event{Subject: "session", Text: "a session was begun with a " + strings.TrimSuffix(a.Via, " ") + ", from " + a.Address + ","})
	s.setCookies(w, r, secret, device)
	writeStatus(w, http.StatusOK, map[string]any{"name": a.Who(), "role": a.Role})
}

// setCookies gives a browser its session, and what it is known by later. The token that older pages kept goes.
func (s *server) setCookies(w http.ResponseWriter, r *http.Request, session, device string) {
	secure := encrypted(r)
	name := sessionCookie
	if secure {
		name = sessionCookieSecure
	}
	set := func(name, value string, age time.Duration) {
		c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure, MaxAge: int(age.Seconds())}
		if value == "" {
			c.MaxAge = -1
		}
		http.SetCookie(w, c)
	}
	set(name, session, 30*24*time.Hour)
	if device != "" {
		set(deviceCookie, device, 365*24*time.Hour)
	}
	if _, err := r.Cookie(tokenCookie); err == nil {
		set(tokenCookie, "", 0)
	}
}

// waitError says that too many tries failed.
type waitError struct{ wait time.Duration }

func (e *waitError) Error() string {
	return "too many sign-ins failed; the next one may be tried in " + digits.Span(max(e.wait, time.Second))
}

func (s *server) byToken(r *http.Request, token string) (state.Actor, string, error) {
	a, secret, err := s.Facts.SignInByToken(r.Context(), token, clientAddress(r))
	switch {
	case errors.Is(err, state.ErrNotFound):
		s.refuseUnknown(r, "session", "a sign-in with a token that is not known, has expired or was revoked was refused; tried")
		return a, "", failed(http.StatusUnauthorized, "this token is not known", "make one with: risso token create NAME")
	case err != nil:
		return a, "", errTokens
	}
	return a, secret, nil
}

// byPassword signs a user in. A wrong name and a wrong password have the same answer, after the same work.
func (s *server) byPassword(r *http.Request, c credentials) (a state.Actor, secret, device string, err error) {
	g, device := s.guessOf(r, c.User)
	err = s.gate.run(r.Context(), s.gate.passwords, func(ctx context.Context) error {
		if wait := s.guesses.take(g); wait > 0 {
			s.refuseUnknown(r, "session", "sign-ins are refused for "+digits.Span(wait)+", because too many failed; tried")
			return &waitError{wait}
		}
		if device == "" {
			device = rand.Text()
		}
		a, secret, err = s.Facts.SignIn(ctx, c.User, c.Password, g.address, device)
		return err
	})
	switch {
	case err == nil:
		s.guesses.right(g)
		return a, secret, device, nil
	case errors.Is(err, state.ErrPassword):
		s.refuseUnknown(r, "session", "a sign-in "+s.named(r.Context(), c.User)+" was refused; tried")
		return a, "", "", failed(http.StatusUnauthorized, err.Error(), "")
	}
	if _, ok := errors.AsType[*waitError](err); !ok {
		if _, _, refused := refusal(err); !refused {
			err = errTokens
		}
	}
	return a, "", "", err
}

// guessOf is what a sign-in counts for, and the browser's name if it is known.
func (s *server) guessOf(r *http.Request, user string) (g guess, device string) {
	g = guess{user: user, address: clientAddress(r)}
	if name, err := state.UserName(user); err == nil {
		g.user = name
	} else if len(g.user) > 64 {
		g.user = g.user[:64]
	}
	if c, err := r.Cookie(deviceCookie); err == nil && len(c.Value) < 100 {
		if known, err := s.Facts.KnownDevice(r.Context(), user, c.Value); err == nil && known {
			return guess{user: g.user, address: g.address, device: c.Value}, c.Value
		}
	}
	return g, ""
}

// named is whose sign-in failed. Names that nobody has are not written down: they may be passwords in the wrong field.
func (s *server) named(ctx context.Context, user string) string {
	name, err := state.UserName(user)
	if err == nil {
		list, err := s.Facts.Users(ctx)
		for _, u := range list {
			if err == nil && u.Name == name {
				return "as " + name + " with a wrong password"
			}
		}
	}
	return "as a user that there is not"
}

// logout ends the session of a browser. It needs none: what has ended, ends.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	if secret := sessionOf(r); secret != "" {
		a, err := s.Facts.VerifySession(r.Context(), secret)
		if err == nil {
			if err := s.Facts.SignOut(r.Context(), a.Session); err != nil {
				writeError(w, errTokens)
				return
			}
			a.Address, a.Call = clientAddress(r), "POST /api/logout"
			s.tell(a, state.ActionDone, fleet.Event{Subject: "session", Text: "a session was ended"})
		} else if !errors.Is(err, state.ErrNotFound) {
			writeError(w, errTokens)
			return
		}
	}
	s.setCookies(w, r, "", "")
	writeStatus(w, http.StatusOK, map[string]any{"signed_out": true})
}

// logoutEverywhere ends all sessions of whoever asks.
func (s *server) logoutEverywhere(r *http.Request) (any, error) {
	a := viewerOf(r)
	n, err := s.Facts.SignOutEverywhere(r.Context(), a.User, a.Session)
	if err != nil {
		return nil, err
	}
	s.did(r, "", "session", fmt.Sprintf("all sessions of %s (%d) were ended", a.Who(), n))
	return map[string]any{"ended": n}, nil
}

// changePassword is POST /api/password: the present one is asked for, as whoever finds an open page must not take it over. Other sessions end.
func (s *server) changePassword(r *http.Request, body []byte) (any, error) {
	a := viewerOf(r)
	var b struct {
		Current string `json:"current"`
		New     string `json:"new"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, badRequest("the body is no JSON with a password", `send {"current": "…", "new": "…"}`)
	}
	if a.User == "" || a.Session == "" {
		return nil, failed(http.StatusForbidden, "only a user who has signed in has a password to change", "")
	}
	g, _ := s.guessOf(r, a.User)
	if wait := s.guesses.take(g); wait > 0 {
		return nil, failed(http.StatusTooManyRequests, (&waitError{wait}).Error(), "")
	}
	if _, err := s.Facts.CheckSignIn(r.Context(), a.User, b.Current); errors.Is(err, state.ErrPassword) {
		s.refuse(r, "", "password", "the change of a password was refused, because the present one was wrong; asked for")
		return nil, failed(http.StatusForbidden, "the present password is another one", "")
	} else if err != nil {
		return nil, err
	}
	s.guesses.right(g)
	if err := state.CheckPassword(a.User, b.New); err != nil {
		return nil, badRequest(err.Error(), fleet.RemedyOf(err))
	}
	if err := s.Facts.SetPassword(r.Context(), a.User, b.New, a.Session); err != nil {
		return nil, err
	}
	s.did(r, "", "password", "the password of "+a.User+" was changed, and other sessions ended,")
	return map[string]any{"changed": a.User}, nil
}
