package repo

import (
	"bufio"
	"bytes"
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

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// Entry is what a catalogue says about a backup.
type Entry struct {
	ID     string
	Whole  bool   // it has a manifest
	Header Header // of an encrypted repository without notes, and of the server variables and filters, which only the manifest has
	Err    error  // why the header cannot be read; only ID is known then
	// Renewed is when the note of a backup that is not whole was put last, by the place's clock: it runs, or was killed.
	Renewed time.Time
	// Accepted says that somebody knows that it may hold much less than the one before it.
	Accepted bool
	// Headless says that there is no manifest, but its companion objects: see Headless.
	Headless bool
	process  *Process // that takes it, or took it
	cut      bool     // its header can be read, and its manifest was cut
}

// Lives reports whether a backup that is not whole runs still, at a time by the place's clock.
func (e Entry) Lives(now time.Time) bool { return !e.Whole && !dead(e.process, e.Renewed, now) }

// Killed reports whether a backup that is not whole will never be: its process was of this machine and has ended, or its note is old.
func (e Entry) Killed(now time.Time) bool { return !e.Whole && !e.Lives(now) }

// Before orders two backups by when they began, below 0 when e did first. IDs have seconds, headers the rest; of those whose header cannot
// be read only the ID is known.
func (e Entry) Before(o Entry) int {
	return cmp.Or(strings.Compare(secondOf(e.ID), secondOf(o.ID)), e.Header.Began.Compare(o.Header.Began), strings.Compare(e.ID, o.ID))
}

// Catalogue lists all backups, the oldest first, whole or not. It reads a few hundred bytes of each.
func (r *Repo) Catalogue(ctx context.Context) ([]Entry, error) {
	has := map[string]map[string]bool{}
	manifests := map[string]int64{} // their sizes
	err := r.store.List(ctx, backupPrefix, func(key string, size int64) error {
		id, what, ok := strings.Cut(strings.TrimPrefix(key, backupPrefix), "/")
		if ok && has[id] == nil {
			has[id] = map[string]bool{}
		}
		if ok {
			has[id][what] = true
		}
		if ok && what == "manifest" {
			manifests[id] = size
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var list []Entry
	for id, files := range has {
		if files["manifest"] || files["unfinished"] {
			list = append(list, Entry{ID: id, Whole: files["manifest"], Accepted: files["accepted"]})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range list {
		g.Go(func() error {
			e := &list[i]
			if err := r.entry(ctx, e, has[e.ID]["head"]); err != nil || !e.Whole || e.Err != nil {
				return err
			}
			size, listed := manifests[e.ID]
			if !listed { // it has become whole just now
				return nil
			}
			err := r.sealed(ctx, manifestKey(e.ID), size)
			if told(err) {
				e.Err, e.cut = fmt.Errorf("backup %s: the manifest: %w", e.ID, err), true
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e Entry) bool { return e.ID == "" })
	slices.SortFunc(list, Entry.Before)
	return list, nil
}

// Headless lists what was a backup and has no manifest any more, so that it cannot be restored, the oldest first: a copy of files was
// cut, or a file was lost. Err says so, and Header is what is known. Those that run or were killed are not among them, nor what a prune that
// was killed left. Catalogue has none of them.
func (r *Repo) Headless(ctx context.Context) ([]Entry, error) {
	has := map[string]map[string]bool{}
	err := r.store.List(ctx, backupPrefix, func(key string, _ int64) error {
		id, what, ok := strings.Cut(strings.TrimPrefix(key, backupPrefix), "/")
		if ok && has[id] == nil {
			has[id] = map[string]bool{}
		}
		if ok {
			has[id][what] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var list []Entry
	for id, files := range has {
		if files["manifest"] || files["unfinished"] || files["lost"] || !files["head"] && !files["objects"] && !files["signature"] {
			continue
		}
		if _, err := r.store.Size(ctx, manifestKey(id)); !errors.Is(err, fs.ErrNotExist) { // it has become whole just now
			if err != nil {
				return nil, err
			}
			continue
		}
		e := Entry{ID: id, Headless: true, Err: fmt.Errorf("backup %s: its manifest is missing, so nothing of it can be restored: a copy of the place was interrupted or is not finished, or a file is lost: %w", id, ErrDamaged)}
		h, err := r.head(ctx, id)
		switch {
		case err == nil:
			e.Header = h
		case !told(err) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		list = append(list, e)
	}
	slices.SortFunc(list, Entry.Before)
	return list, nil
}

// entry reads the header of a backup. An error of the place ends it all; damage is noted.
func (r *Repo) entry(ctx context.Context, e *Entry, head bool) error {
	var err error
	switch {
	case !e.Whole:
		var note beginning
		if note, err = r.begun(ctx, e.ID); err == nil {
			e.Header, e.process = note.Header, note.Process
			e.Renewed, err = r.modified(ctx, unfinishedKey(e.ID))
		}
		if errors.Is(err, fs.ErrNotExist) { // ended just now, whole or given up
			return r.ended(ctx, e)
		}
	case head:
		e.Header, err = r.head(ctx, e.ID)
	default: // by a version that wrote none; callers that read more ask for a policy
		var sig *signature
		var m *Manifest
		if sig, err = r.signature(ctx, e.ID); err == nil {
			m, err = r.manifest(ctx, e.ID, sig)
		}
		if err == nil {
			e.Header = m.Header
			m.Close()
		}
	}
	if told(err) || errors.Is(err, ErrNoBackup) {
		e.Err = fmt.Errorf("backup %s: %w", e.ID, err)
		return nil
	}
	return err
}

// ranged is a store that reads a part of an object.
type ranged interface {
	GetFrom(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
}

// sealed checks whether an object of a size ends with a seal: one that was cut does not. Whether the seal agrees with what is before it,
// is for Verify to find out.
func (r *Repo) sealed(ctx context.Context, key string, size int64) error {
	from, ok := r.store.(ranged)
	if size < sealSize {
		return fmt.Errorf("it was truncated to %d bytes: %w", size, ErrDamaged)
	}
	if !ok {
		return nil
	}
	rc, err := from.GetFrom(ctx, key, size-sealSize)
	if errors.Is(err, fs.ErrNotExist) { // removed just now
		return nil
	}
	if err != nil {
		return err
	}
	defer rc.Close()
	b, err := io.ReadAll(io.LimitReader(rc, sealSize))
	if err == nil && !bytes.HasPrefix(b, sealHead) {
		err = fmt.Errorf("its end is missing: %w", ErrDamaged)
	}
	return err
}

// ended looks once more at a backup whose note has just gone: with a manifest it is whole, else there is none.
func (r *Repo) ended(ctx context.Context, e *Entry) error {
	_, err := r.store.Size(ctx, manifestKey(e.ID))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		*e = Entry{}
		return nil
	case err != nil:
		return err
	}
	e.Whole = true
	return r.entry(ctx, e, true) // its head was put before its manifest
}

// begun reads the note of a backup that is not whole.
func (r *Repo) begun(ctx context.Context, id string) (h beginning, err error) {
	rc, err := r.store.Get(ctx, unfinishedKey(id))
	if err != nil {
		return h, err
	}
	defer rc.Close()
	b, err := io.ReadAll(io.LimitReader(rc, 1<<20))
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, fmt.Errorf("%s: %w: %w", unfinishedKey(id), ErrDamaged, err)
	}
	return h, nil
}

// head reads the header of a backup stored next to its manifest.
func (r *Repo) head(ctx context.Context, id string) (h Header, err error) {
	if err := r.readPlain(ctx, headKey(id), "its head", 16<<20, &h); err != nil {
		return Header{}, err
	}
	if h.ID != id {
		return Header{}, fmt.Errorf("its head: %w", ErrDamaged)
	}
	return h, nil
}

// shown is the part of a header visible to anyone who can see the place.
func (r *Repo) shown(h Header) Header {
	if r.cipher != nil {
		h.Notes, h.Server.Variables, h.Server.LogDo, h.Server.LogIgnore = nil, nil, nil, nil
	}
	return h
}

// ref is a line of the list of objects of a backup: what it needs from the place.
type ref struct {
	Key  string `json:"o,omitempty"` // a chunk
	Part int    `json:"p,omitempty"` // or the number of a part of this backup, counted from 1
	Size int64  `json:"n"`
}

// refsOf are the objects that a line of a manifest needs.
func refsOf(l Line) []ref {
	switch {
	case l.Table != nil:
		refs := make([]ref, 0, len(l.Table.Chunks)+len(l.Table.Typed))
		for _, c := range slices.Concat(l.Table.Chunks, l.Table.Typed) {
			refs = append(refs, ref{Key: chunkKey(l.Table.Schema, l.Table.Name, c.Hash), Size: c.Stored})
		}
		return refs
	case l.Part != nil:
		return []ref{{Part: l.Part.Number + 1, Size: l.Part.Stored}}
	}
	return nil
}

// writePlain packs and seals what everyone who sees the place may read: prune and copy need no identity.
func writePlain(w io.Writer, write func(io.Writer) error) error {
	sealed := newSealWriter(w)
	zw, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if err := write(zw); err != nil {
		zw.Close()
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	return sealed.seal()
}

// readPlain reads what writePlain wrote: JSON of limited size. name is its name for messages.
func (r *Repo) readPlain(ctx context.Context, key, name string, most int64, to any) error {
	rc, err := r.store.Get(ctx, key)
	if err != nil {
		return err
	}
	o, err := openObject(name, rc, nil)
	if err != nil {
		return err
	}
	defer o.Close()
	b, err := io.ReadAll(io.LimitReader(o, most))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	return nil
}

// writeHead puts the header and the list of objects next to where the manifest will be.
func (r *Repo) writeHead(ctx context.Context, h Header, d *Draft) error {
	var b bytes.Buffer
	err := writePlain(&b, func(w io.Writer) error { return json.NewEncoder(w).Encode(r.shown(h)) })
	if err != nil {
		return err
	}
	if err := r.store.Put(ctx, headKey(h.ID), &b); err != nil {
		return err
	}
	return r.putStream(ctx, objectsKey(h.ID), func(w io.Writer) error { return writePlain(w, d.copyRefs) })
}

// putStream puts what write writes.
func (r *Repo) putStream(ctx context.Context, key string, write func(io.Writer) error) error {
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends when Put has read all, or has closed pr
		err := write(pw)
		pw.CloseWithError(err)
		done <- err
	}()
	err := r.store.Put(ctx, key, pr)
	pr.CloseWithError(err)
	if werr := <-done; err == nil {
		err = werr
	}
	return err
}

// Needs hands over the objects that a backup needs, with their sizes. One may come twice. It needs no identity.
func (r *Repo) Needs(ctx context.Context, id string, each func(key string, size int64) error) error {
	rc, err := r.store.Get(ctx, objectsKey(id))
	if errors.Is(err, fs.ErrNotExist) {
		return r.needsByManifest(ctx, id, each)
	}
	if err != nil {
		return err
	}
	o, err := openObject("list of objects of backup "+id, rc, nil)
	if err != nil {
		return err
	}
	defer o.Close()
	in := bufio.NewReaderSize(o, 64<<10)
	for n := 1; ; n++ {
		b, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(b) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var x ref
		if err := json.Unmarshal(b, &x); err != nil || (x.Key == "") == (x.Part == 0) || x.Key != "" && !strings.HasPrefix(x.Key, dataPrefix) {
			return fmt.Errorf("list of objects of backup %s: line %d: %w", id, n, ErrDamaged)
		}
		if err := each(x.key(id), x.Size); err != nil {
			return err
		}
	}
}

func (x ref) key(id string) string {
	if x.Part > 0 {
		return partKey(id, x.Part-1)
	}
	return x.Key
}

func (r *Repo) needsByManifest(ctx context.Context, id string, each func(key string, size int64) error) error {
	m, err := r.Manifest(ctx, id)
	if err != nil {
		return err
	}
	defer m.Close()
	return m.Each(func(l Line) error {
		for _, x := range refsOf(l) {
			if err := each(x.key(id), x.Size); err != nil {
				return err
			}
		}
		return nil
	})
}
