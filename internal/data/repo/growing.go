package repo

import (
	"bufio"
	"bytes"
	stdcipher "crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/chacha20poly1305"
)

// A growing file is encrypted and can be appended to, also by a process that was killed in between, which age's files cannot:
// their last 64 KiB are sealed when they end. FORMAT.md describes it. Its key is made for it alone. It is stored at its beginning,
// encrypted by age to the recipients, and on this host, without which a process that can only write could not go on; there it is removed
// when the file has become an object.

// growingMagic begins a growing file.
const growingMagic = "risso growing 1\n"

const (
	growingFrame = 1 << 20 // most bytes of one frame, before encryption
	growingHead  = 1 << 16 // most bytes of the key, encrypted to many recipients
	// frameOver is what a frame has more than what it holds: length, nonce, tag.
	frameOver = 4 + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
)

// Growing is the key of a growing file. Its methods may be called by one goroutine at a time.
type Growing struct {
	aead stdcipher.AEAD
	head []byte
	key  []byte
	kept bool // on this host
}

// Encrypt encrypts to the repository's recipients what is written; Close ends it, but does not close w. If the repository is not
// encrypted everything passes unchanged.
func (r *Repo) Encrypt(w io.Writer) (io.WriteCloser, error) { return r.cipher.encrypt(w) }

// Decrypt reads what Encrypt wrote. Without an identity the first read is ErrNoKey.
func (r *Repo) Decrypt(in io.Reader) io.Reader { return r.cipher.decrypt(in) }

// NewHash makes a hash for what is in the repository: SHA-256, in an encrypted one HMAC-SHA-256 under the key of names, so
// that the hash of a short text does not reveal it.
func (r *Repo) NewHash() (hash.Hash, error) { return r.newHash() }

// Grow makes the key of a new growing file of an encrypted repository. Its head must be written first.
func (r *Repo) Grow(name string) (*Growing, error) {
	key := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	var sealed bytes.Buffer
	e, err := r.Encrypt(&sealed)
	if err != nil {
		return nil, err
	}
	if _, err := e.Write(key); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	if err := r.keepGrowing(name, key); err != nil {
		return nil, fmt.Errorf("keep the key of %s on this host: %w", name, err)
	}
	head := append([]byte(growingMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(head[len(growingMagic):], uint32(sealed.Len()))
	return newGrowing(key, append(head, sealed.Bytes()...), true)
}

func newGrowing(key, head []byte, kept bool) (*Growing, error) {
	aead, err := chacha20poly1305.NewX(key)
	return &Growing{aead, head, key, kept}, err
}

// Adopt keeps the key of a growing file on this host, which goes on with it.
func (r *Repo) Adopt(name string, g *Growing) error {
	if g.kept {
		return nil
	}
	if err := r.keepGrowing(name, g.key); err != nil {
		return fmt.Errorf("keep the key of %s on this host: %w", name, err)
	}
	g.kept = true
	return nil
}

// keepGrowing writes the key of a growing file, durably, before the file has a byte.
func (r *Repo) keepGrowing(name string, key []byte) error {
	if r.growing == "" {
		return nil
	}
	if err := os.MkdirAll(r.growing, 0o700); err != nil {
		return err
	}
	path := filepath.Join(r.growing, escape(name))
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(r.growing)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Grown removes the key that this host keeps of a growing file: it is an object now.
func (r *Repo) Grown(name string) error {
	if r.growing == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(r.growing, escape(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the key of %s from this host: %w", name, err)
	}
	return nil
}

// IsGrowing reports whether a file that begins so is a growing one.
func IsGrowing(head []byte) bool { return bytes.HasPrefix(head, []byte(growingMagic)) }

// GrowingHead is how many bytes IsGrowing looks at.
const GrowingHead = len(growingMagic)

// Regrow reads the head of a growing file and finds its key: on this host, else by an identity, else ErrNoKey. With the head
// cut off it is io.ErrUnexpectedEOF.
func (r *Repo) Regrow(name string, in io.Reader) (*Growing, error) {
	head, err := readGrowingHead(in)
	if err != nil {
		return nil, err
	}
	if r.growing != "" {
		if key, err := os.ReadFile(filepath.Join(r.growing, escape(name))); err == nil && len(key) == chacha20poly1305.KeySize {
			return newGrowing(key, head, true)
		}
	}
	key, err := io.ReadAll(io.LimitReader(r.Decrypt(bytes.NewReader(head[len(growingMagic)+4:])), 1<<10))
	switch {
	case errors.Is(err, ErrNoKey):
		return nil, fmt.Errorf("%s: %w", name, ErrNoKey)
	case err != nil || len(key) != chacha20poly1305.KeySize:
		return nil, fmt.Errorf("%s: its key: %w", name, errors.Join(ErrDamaged, err))
	}
	return newGrowing(key, head, false)
}

func readGrowingHead(in io.Reader) ([]byte, error) {
	head := make([]byte, len(growingMagic)+4)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, noEOF(err)
	}
	n := binary.LittleEndian.Uint32(head[len(growingMagic):])
	if !IsGrowing(head) || n > growingHead {
		return nil, fmt.Errorf("its head: %w", ErrDamaged)
	}
	head = append(head, make([]byte, n)...)
	_, err := io.ReadFull(in, head[len(growingMagic)+4:])
	return head, noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Head is what is at the beginning of the file.
func (g *Growing) Head() []byte { return g.head }

// Append encrypts what follows at a position, counted without encryption, as frames after what to holds. Nonces are random: a
// frame that was torn may be written once more with other bytes.
func (g *Growing) Append(to, plain []byte, pos int64) []byte {
	for len(plain) > 0 {
		n := min(len(plain), growingFrame)
		bound := frameHead(n, pos)
		to = append(to, bound[:4]...)
		at := len(to)
		to = append(to, make([]byte, chacha20poly1305.NonceSizeX)...)
		nonce := to[at : at+chacha20poly1305.NonceSizeX]
		_, _ = rand.Read(nonce) // never fails (crypto/rand)
		to = g.aead.Seal(to, nonce, plain[:n], bound[:])
		plain, pos = plain[n:], pos+int64(n)
	}
	return to
}

// frameHead is what a frame is bound to: its position, and its length with eleven bits that reveal a wrong one. The first four
// bytes come before it.
func frameHead(n int, pos int64) (b [12]byte) {
	binary.LittleEndian.PutUint32(b[:], uint32(n))
	binary.LittleEndian.PutUint64(b[4:], uint64(pos))
	binary.LittleEndian.PutUint32(b[:], uint32(n)<<11|crc32.ChecksumIEEE(b[:])&(1<<11-1))
	return b
}

// frameLength reads the first four bytes of a frame; 0: they are damaged.
func frameLength(head [4]byte, pos int64) int {
	n := int(binary.LittleEndian.Uint32(head[:]) >> 11)
	if again := frameHead(n, pos); n > growingFrame || [4]byte(again[:4]) != head {
		return 0
	}
	return n
}

// GrowingReader reads what a growing file holds. If the file ends within a frame, it is io.EOF, and Torn is true; a frame
// that is there and cannot be opened is ErrDamaged.
type GrowingReader struct {
	g        *Growing
	in       *bufio.Reader
	pos, end int64  // where the next frame begins, without encryption and in the file
	frame    []byte // encrypted
	left     []byte // opened and not read yet
	ends     []FrameEnd
	err      error
	blank    bool // there may be nothing after what was damaged
	Torn     bool
	Track    bool // remember where frames end, for Ended
}

// FrameEnd is where a frame ends.
type FrameEnd struct {
	Pos int64 // without encryption
	End int64 // in the file
}

// Reader reads what follows the head.
func (g *Growing) Reader(in io.Reader) *GrowingReader {
	return &GrowingReader{g: g, in: bufio.NewReaderSize(in, 256<<10), end: int64(len(g.head))}
}

// Read returns what the file holds.
func (r *GrowingReader) Read(b []byte) (int, error) {
	for len(r.left) == 0 {
		if r.err == nil {
			r.err = r.next()
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// next opens a frame.
func (r *GrowingReader) next() error {
	var size [4]byte
	if _, err := io.ReadFull(r.in, size[:]); err != nil {
		r.Torn = errors.Is(err, io.ErrUnexpectedEOF)
		return plainEOF(err)
	}
	n := frameLength(size, r.pos)
	if n == 0 {
		r.blank = size == [4]byte{}
		return fmt.Errorf("%w: at byte %d of the file: a frame without length", ErrDamaged, r.end)
	}
	length := n + frameOver - len(size)
	if cap(r.frame) < length {
		r.frame = make([]byte, length, max(length, 64<<10))
	}
	r.frame = r.frame[:length]
	if _, err := io.ReadFull(r.in, r.frame); err != nil {
		r.Torn = true
		return plainEOF(err)
	}
	bound := frameHead(n, r.pos)
	sealed := r.frame[chacha20poly1305.NonceSizeX:]
	plain, err := r.g.aead.Open(sealed[:0], r.frame[:chacha20poly1305.NonceSizeX], sealed, bound[:])
	if err != nil {
		r.blank = true
		return fmt.Errorf("%w: at byte %d of the file: a frame that cannot be opened", ErrDamaged, r.end)
	}
	r.left, r.pos, r.end = plain, r.pos+int64(n), r.end+int64(n)+frameOver
	if r.Track {
		r.ends = append(r.ends, FrameEnd{r.pos, r.end})
	}
	return nil
}

func plainEOF(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// Ended returns the last frame that ends at or before a position and forgets those before it. ok: it ends there exactly. A
// position may only be followed by later ones.
func (r *GrowingReader) Ended(pos int64) (f FrameEnd, ok bool) {
	i := 0
	for i < len(r.ends) && r.ends[i].Pos <= pos {
		f = r.ends[i]
		i++
	}
	r.ends = r.ends[:copy(r.ends, r.ends[i:])]
	return f, i > 0 && f.Pos == pos
}

// Tail reports, after ErrDamaged, whether nothing but zeros follows, as a crash leaves what did not reach the disk.
func (r *GrowingReader) Tail() bool {
	for r.blank {
		b, err := r.in.ReadByte()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		r.blank = b == 0
	}
	return false
}

// GrowingSize is how many bytes a growing file holds, without encryption, as far as its frames are whole: they are counted, not
// opened. in is all of the file.
func GrowingSize(in io.Reader) (n int64, err error) {
	b := bufio.NewReaderSize(in, 256<<10)
	if _, err := readGrowingHead(b); err != nil {
		return 0, err
	}
	for {
		var size [4]byte
		if _, err := io.ReadFull(b, size[:]); err != nil {
			return n, eofIsNone(err)
		}
		l := frameLength(size, n)
		if l == 0 {
			return n, nil
		}
		if _, err := b.Discard(l + frameOver - len(size)); err != nil {
			return n, eofIsNone(err)
		}
		n += int64(l)
	}
}

func eofIsNone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
