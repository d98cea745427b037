package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Door is the name of the socket in the data folder at which the risso serve of this machine takes changes of a shared file from commands.
const Door = "controller.sock"

// endings are how proposals end, as they are named over HTTP, between controllers and at the door.
var endings = map[string]error{"stale": ErrStale, "no leader": ErrNoLeader, "rejected": ErrRejected, "unsure": ErrUnsure}

// Ending names how a proposal ended; empty: by an error that has no name.
func Ending(err error) string {
	for name, e := range endings {
		if errors.Is(err, e) {
			return name
		}
	}
	return ""
}

// Ended is how a request ended that another process answered with an error.
type Ended struct {
	Ending error  // nil: it has no name
	Text   string // in the other process' words
	At     uint64 // up to which change the other process' file is
}

// Error is the text.
func (e *Ended) Error() string { return e.Text }

// Unwrap is the ending.
func (e *Ended) Unwrap() error { return e.Ending }

// doorClient agrees on changes by the risso serve that works on the same file.
type doorClient struct{ path string }

func doorOf(file string) Sharing { return doorClient{filepath.Join(filepath.Dir(file), Door)} }

// ErrShut says that a shared file cannot be changed, because no risso serve works on it.
var ErrShut = errors.New("controllers share this state: it is changed by the risso serve of this data folder, which does not run; start it")

// Propose hands a change to risso serve.
func (d doorClient) Propose(ctx context.Context, c Change) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("%w: write down the change: %w", ErrRejected, err)
	}
	_, err = DialDoor(d.path).Ask(ctx, http.MethodPost, "/propose", body)
	return err
}

// Level waits until risso serve's file, which is this one, is level.
func (d doorClient) Level(ctx context.Context) error {
	_, err := DialDoor(d.path).Ask(ctx, http.MethodPost, "/level", nil)
	return err
}

// Asker asks a risso serve something over HTTP.
type Asker struct {
	Client *http.Client
	Base   string
	Away   error // what an error wraps if nobody listens
}

// DialDoor makes what asks at the door of a data folder.
func DialDoor(path string) Asker {
	return Asker{Base: "http://door", Away: ErrShut, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialUnix(ctx, path) }}}}
}

// dialUnix connects to a socket, whose path may be longer than a socket's address can be.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", ShortPath(dir, filepath.Base(path)))
}

// ShortPath is the path of a socket in an open folder, short enough for any.
func ShortPath(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}

// The headers of an answer to a request that failed: its Ending, and up to which change the file is.
const (
	EndingHeader = "Risso-Ending"
	AtHeader     = "Risso-At"
)

// Ask sends a request and returns the body of the answer. If nobody listens, the error wraps Away; ErrUnsure if it is not known whether the request arrived.
func (a Asker) Ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := a.Client.Do(r)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", a.Away, err)
		}
		if u := (*url.Error)(nil); errors.As(err, &u) { // of an address that is none to people
			err = fmt.Errorf("no answer: %w", u.Err)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnsure, err)
	case answer.StatusCode == http.StatusOK:
		return text, nil
	}
	e := &Ended{Ending: endings[answer.Header.Get(EndingHeader)], Text: strings.TrimSpace(string(text))}
	e.At, _ = strconv.ParseUint(answer.Header.Get(AtHeader), 10, 64) // absent: 0
	return nil, e
}
