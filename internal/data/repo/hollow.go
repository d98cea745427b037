package repo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Hollow says which whole backups hold so little that they prove nothing and replace none, and why, by ID; list is the oldest first.
// Logical ones are hollow without a table, or with less than half of the tables, or a tenth of the rows, of the last full one before
// them of their server and kind; physical ones with less than a tenth of its bytes. One that was accepted (Header.Smaller, Accept)
// is full, and what comes after it is compared with it.
func Hollow(list []Entry) map[string]string {
	out := map[string]string{}
	full := map[string]*Header{}
	for i, e := range list {
		h := &list[i].Header
		if !e.Whole || e.Err != nil || h.Stream != nil && h.Stream.FromLSN > 0 { // an incremental one is as small as what changed
			continue
		}
		if why := h.hollow(full[h.group()]); why != "" && !h.Smaller && !e.Accepted {
			out[e.ID] = why
		} else {
			full[h.group()] = h
		}
	}
	return out
}

// hollow compares a backup with the last full one before it, which may be nil.
func (h *Header) hollow(full *Header) string {
	switch {
	case h.Kind == Logical && h.Tables == 0:
		return "it has no tables"
	case full == nil:
	case h.Kind == Logical && 2*h.Tables < full.Tables:
		return fmt.Sprintf("it has %s, %s had %d", digits.Counted(h.Tables, "table"), full.ID, full.Tables)
	case h.Kind == Logical && 10*h.Rows < full.Rows:
		return fmt.Sprintf("it has %s, %s had %d", digits.Counted(h.Rows, "row"), full.ID, full.Rows)
	case h.Kind == Physical && 10*h.Bytes < full.Bytes:
		return fmt.Sprintf("it has %s, %s had %d", digits.Counted(h.Bytes, "byte"), full.ID, full.Bytes)
	}
	return ""
}

// group distinguishes backups of one kind of one server, of the same parts of it, from others.
func (h *Header) group() string {
	return strings.Join(append([]string{h.Server.Identity, string(h.Kind)}, h.Partial...), "\x00")
}

// Hollow says which backups of the place are hollow, and why. Those that count for nothing make no other hollow.
func (r *Repo) Hollow(ctx context.Context) (map[string]string, error) {
	list, err := r.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	strangers, err := r.Strangers(ctx, list)
	if err != nil {
		return nil, err
	}
	return Hollow(slices.DeleteFunc(list, func(e Entry) bool { return strangers[e.ID] != "" })), nil
}

// HollowBeside reports whether a backup that is about to be written would be hollow compared with the existing ones, and why.
func (r *Repo) HollowBeside(ctx context.Context, h Header) (string, error) {
	list, err := r.Catalogue(ctx)
	if err != nil {
		return "", err
	}
	return Hollow(append(list, Entry{ID: h.ID, Whole: true, Header: h}))[h.ID], nil
}

// acceptance is what Accept writes down.
type acceptance struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"`
}

// Accept notes that a whole backup may hold as little as it does; "" is the newest. It returns its ID. by says who accepts it.
func (r *Repo) Accept(ctx context.Context, id, by string) (string, error) {
	if id == "" {
		var err error
		if id, err = r.newest(ctx); err != nil {
			return "", err
		}
	}
	if _, err := r.store.Size(ctx, manifestKey(id)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNoBackup, id)
	} else if err != nil {
		return "", err
	}
	err := r.putStream(ctx, acceptedKey(id), func(w io.Writer) error {
		return writePlain(w, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(acceptance{time.Now().UTC(), cmp.Or(by, "unknown")})
		})
	})
	if err != nil {
		return "", fmt.Errorf("accept backup %s: %w", id, err)
	}
	return id, nil
}
