// Package blob keeps bytes under names somewhere else: in a folder, in an S3 bucket, on a host reached by SFTP. It knows
// nothing about their contents. Every adapter passes the conformance suite in blobtest.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// ErrNotFound is wrapped by Get and Stat when there is no blob of that name.
var ErrNotFound = errors.New("not found")

// ErrExists is wrapped by Put with Fresh when there is a blob of that name.
var ErrExists = errors.New("there is one already")

// errDamagedUpload says that a server keeps something else than what it was sent.
var errDamagedUpload = errors.New("the server did not store what it was sent")

// Info describes a blob. List leaves nothing out of it, so there is no need to ask for each one.
type Info struct {
	Name     string
	Size     int64     // bytes
	Modified time.Time // when it was put, by the clock of the place
}

// PutOptions say more about a blob that is put. The zero value is right for most.
type PutOptions struct {
	// Resume lets an interrupted Put of the same name go on where it was cut, where the place can (S3: finished parts
	// are not sent again). The caller promises that the bytes of a name never change. What was sent before is compared
	// with the given bytes, by hash, before it is used.
	Resume bool
	// Fresh makes Put fail with ErrExists if there is a blob of that name, atomically: of several that put one at the same time
	// one wins, and after a broken connection the existing blob may be the caller's own. The blob fits into one request. A place that
	// has no such operation (S3 without If-None-Match, a file system without links) is asked first.
	Fresh bool
}

// Store is a place for blobs. A name is a path with slashes, see ValidName. All methods may be called from several
// goroutines; all of them wait and try again where the cause may pass (see Options.Patience), and end when ctx does.
type Store interface {
	// Put keeps all of r under the name, in place of what was there. Others see the old blob until the new one is there
	// whole and safe against a loss of power; on an error, and after a kill at any moment, they see the old one still.
	// r need not say its size. If it is an io.ReaderAt with a Size (bytes.Reader, io.SectionReader), it is read from
	// there without a copy in memory, again when the network makes that necessary.
	Put(ctx context.Context, name string, r io.Reader, o PutOptions) (Info, error)
	// Get reads length bytes from offset on; a negative length means to the end. If the blob ends earlier, so does the
	// reader, without an error. A connection that breaks is reopened and reading goes on.
	Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// Stat describes one blob.
	Stat(ctx context.Context, name string) (Info, error)
	// List returns all blobs whose names begin with prefix ("" for all), in the order of the bytes of their names, as they
	// come: the list is never whole in memory. It lists no blob that is only half there. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete takes a blob away. One that is not there is no error, so it may be repeated.
	Delete(ctx context.Context, name string) error
	// Leftovers lists what uploads that began before a time have left without a name, for instance of a killed process.
	// They cost space and money, and Discard removes one. An upload that still runs is cut by that: choose the time well.
	Leftovers(ctx context.Context, before time.Time) iter.Seq2[Leftover, error]
	Discard(ctx context.Context, l Leftover) error
	// Place is where this is, as Open reads it, without secrets.
	Place() string
	// Close ends connections. It does not wait for calls that run; they fail.
	Close() error
}

// Leftover is what an interrupted Put left.
type Leftover struct {
	Name  string    // the blob that it was to become; for a folder and SFTP the temporary file
	Began time.Time // when, by the clock of the place
	Size  int64     // bytes; -1 where the place does not say
	id    string
}

// tempPrefix begins the names of files that are not blobs yet. No blob has a part of its name begin so.
const tempPrefix = ".risso-"

// maxName is the longest name in bytes: S3 allows 1,024 for prefix and name together.
const maxName = 900

// ValidName says what is wrong with a name: nil when it can be kept at every place. It is made of parts between single
// slashes, each of at most 255 bytes of [A-Za-z0-9_%.,=+@-], none of them "." or "..", none beginning with ".risso-".
func ValidName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("blob name of %d bytes: must be 1 to %d", len(name), maxName)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Errorf("blob name %q: the part %q is not allowed", name, part)
		case len(part) > 255:
			return fmt.Errorf("blob name %q: a part is longer than 255 bytes", name)
		case strings.HasPrefix(part, tempPrefix):
			return fmt.Errorf("blob name %q: a part begins with %s, as temporary files do", name, tempPrefix)
		}
		for i := range len(part) {
			c := part[i]
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_%.,=+@-", c) >= 0) {
				return fmt.Errorf("blob name %q: the byte %q is not allowed", name, c)
			}
		}
	}
	return nil
}

// sized is a source that can be read again from any place.
type sized interface {
	io.ReaderAt
	Size() int64
}

// again returns a source that can be read more than once, from where r is; nil if r cannot.
func again(r io.Reader) *io.SectionReader {
	s, ok := r.(sized)
	if !ok {
		return nil
	}
	var at int64
	if seeker, ok := r.(io.Seeker); ok {
		var err error
		if at, err = seeker.Seek(0, io.SeekCurrent); err != nil {
			return nil
		}
	}
	return io.NewSectionReader(s, at, s.Size()-at)
}

// reader is an io.Reader that ends with the context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// writer is an io.Writer that ends with the context.
type writer struct {
	ctx context.Context
	w   io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// fail puts the operation and the place before an error, once.
func fail(op, place, name string, err error) error {
	if err == nil {
		return nil
	}
	if name == "" {
		return fmt.Errorf("%s %s: %w", op, place, err)
	}
	return fmt.Errorf("%s %s in %s: %w", op, name, place, err)
}
