package repo

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// An object is a zstd frame, encrypted or not, followed by a skippable frame with the SHA-256 of all bytes before it (RFC 8878, 3.1.2): so any
// changed bit is found, also one that makes no difference to the decoder, and zstd -d still reads an object that is not encrypted.
var sealHead = []byte{0x5D, 0x2A, 0x4D, 0x18, sha256.Size, 0, 0, 0}

const sealSize = 8 + sha256.Size

// appendSeal puts the seal after what b holds.
func appendSeal(b []byte) []byte {
	h := sha256.Sum256(b)
	return append(append(b, sealHead...), h[:]...)
}

// sealWriter hashes what passes through it; seal ends it.
type sealWriter struct {
	w   io.Writer
	sum hash.Hash
}

func newSealWriter(w io.Writer) *sealWriter { return &sealWriter{w: w, sum: sha256.New()} }

func (s *sealWriter) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.sum.Write(b[:n])
	return n, err
}

func (s *sealWriter) seal() error {
	_, err := s.w.Write(sealOf(s.sum))
	return err
}

// sealOf is the seal for bytes that were hashed.
func sealOf(sum hash.Hash) []byte { return sum.Sum(bytes.Clone(sealHead)) }

// unsealer returns the bytes before the seal. At the end it fails with ErrDamaged when the seal does not agree.
type unsealer struct {
	r       io.Reader
	sum     hash.Hash
	buf     []byte // read, not given yet; its last sealSize bytes may be the seal
	trouble error  // of the way, not of the bytes
	eof     bool
}

func newUnsealer(r io.Reader) *unsealer {
	return &unsealer{r: r, sum: sha256.New(), buf: make([]byte, 0, 64<<10)}
}

func (u *unsealer) Read(b []byte) (int, error) {
	for len(u.buf) <= sealSize && !u.eof {
		room := u.buf[len(u.buf):cap(u.buf)]
		n, err := u.r.Read(room)
		u.buf = u.buf[:len(u.buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			u.eof = true
		case err != nil:
			u.trouble = err
			return 0, err
		}
	}
	if n := min(len(b), len(u.buf)-sealSize); n > 0 {
		copy(b, u.buf[:n])
		u.sum.Write(u.buf[:n])
		u.buf = u.buf[:copy(u.buf, u.buf[n:])]
		return n, nil
	}
	if len(b) == 0 {
		return 0, nil
	}
	if len(u.buf) < sealSize || !bytes.Equal(u.buf[:8], sealHead) || !bytes.Equal(u.buf[8:], u.sum.Sum(nil)) {
		return 0, fmt.Errorf("its seal does not match: %w", ErrDamaged)
	}
	return 0, io.EOF
}

// object reads what a sealed object holds, to the last byte of it.
type object struct {
	name  string
	inner *unsealer
	zr    *zstd.Decoder
	rc    io.Closer
}

// openObject opens an object, of an encrypted repository by its identities.
func (r *Repo) openObject(name string, rc io.ReadCloser) (*object, error) {
	return openObject(name, rc, r.cipher)
}

func openObject(name string, rc io.ReadCloser, c *cipher) (*object, error) {
	u := newUnsealer(rc)
	zr, err := zstd.NewReader(c.decrypt(u), zstd.WithDecoderConcurrency(1))
	if err != nil {
		rc.Close()
		return nil, err
	}
	return &object{name: name, inner: u, zr: zr, rc: rc}, nil
}

// Read returns what was put into the object. Bytes that the decoder or the seal refuses are ErrDamaged; read errors are not.
func (o *object) Read(b []byte) (int, error) {
	n, err := o.zr.Read(b)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case o.inner.trouble != nil:
		return n, fmt.Errorf("%s: %w", o.name, o.inner.trouble)
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrNoKey):
		return n, fmt.Errorf("%s: %w", o.name, err)
	}
	return n, fmt.Errorf("%s: %w: %w", o.name, ErrDamaged, err)
}

func (o *object) Close() error {
	o.zr.Close()
	return o.rc.Close()
}
