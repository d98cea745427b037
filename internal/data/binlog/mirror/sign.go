package mirror

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// A log that is complete is signed in its index. One that grows is signed as far as it is on disk, each time more is, in a file next to it: in
// two records in turn, so that if a process or a machine dies while it writes one, the other is whole.
const (
	extSigned  = ".signed" // of the file next to a log that grows
	signedSlot = 1024      // bytes of a record, filled up with blanks
)

// repository is the ID of that in the place; "": there is none.
func (p Place) repository() string {
	if p.Repo == nil {
		return ""
	}
	return p.Repo.ID
}

// complete is what is signed of a log with its index.
func (p Place) complete(key string, x binlog.Index) repo.LogClaim {
	l := repo.MirroredLog{Name: x.Name, Size: x.Size, SHA256: x.SHA256, HMAC: x.HMAC, StoredSHA256: x.StoredSHA256, Before: x.Before.String()}
	return l.Claim(p.repository(), key)
}

// newHash makes the hash of a log's bytes.
func (p Place) newHash() (hash.Hash, error) {
	if p.encrypted() {
		return p.Repo.NewHash()
	}
	return sha256.New(), nil
}

// accept checks a signature, and asks the policy.
func (p Place) accept(c repo.LogClaim, s *repo.LogSignature) error {
	if err := s.Accept(p.Policy, cmp.Or(p.repository(), p.Name), c); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// signedPart is a record next to a log that grows: what is signed of it.
type signedPart struct {
	Size      int64              `json:"size"`
	Sum       string             `json:"sum"`
	Signature *repo.LogSignature `json:"signature"`
	slot      int64
}

// signedParts reads the records next to a log; the longest comes first. Anything else is left out.
func (p Place) signedParts(key, path string) (list []signedPart, err error) {
	b, err := os.ReadFile(path + extSigned)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range int64(len(b) / signedSlot) {
		s := signedPart{slot: i}
		if json.Unmarshal(b[i*signedSlot:(i+1)*signedSlot], &s) != nil || s.Signature == nil {
			continue
		}
		if _, err := s.Signature.Check(p.grown(key, filepath.Base(path), s)); err == nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b signedPart) int { return cmp.Compare(b.Size, a.Size) })
	return list, nil
}

// grown is what is signed of a log that grows.
func (p Place) grown(key, name string, s signedPart) repo.LogClaim {
	return repo.LogClaim{Repository: p.repository(), Series: key, Name: name, Size: s.Size, Sum: s.Sum}
}

// notary signs a log as it grows.
type notary struct {
	place Place
	key   string
	path  string
	sum   hash.Hash // of what was written
	file  *os.File
	last  int64 // size that was signed last
	turn  int64
}

// newNotary begins to sign a log of which nothing is written yet, in an encrypted file or not; nil if nothing is signed.
func newNotary(place Place, path string, encrypted bool) (*notary, error) {
	if place.Signer == nil {
		return nil, nil
	}
	sum := sha256.New()
	if encrypted {
		var err error
		if sum, err = place.newHash(); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path+extSigned, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &notary{place: place, key: filepath.Base(filepath.Dir(path)), path: path, sum: sum, file: f}, nil
}

// wrote takes what was written to the log, in order.
func (n *notary) wrote(b []byte) {
	if n != nil {
		n.sum.Write(b)
	}
}

// now is the hash of what was written until now; "" if nothing is signed.
func (n *notary) now() string {
	if n == nil {
		return ""
	}
	return hex.EncodeToString(n.sum.Sum(nil))
}

// sign signs what is on disk. It waits for no disk: what a crash of the machine loses is compared with the server when the mirror goes on.
func (n *notary) sign(size int64, sum string) error {
	if n == nil || size == n.last {
		return nil
	}
	s := signedPart{Size: size, Sum: sum}
	var err error
	if s.Signature, err = repo.SignLog(n.place.Signer, n.place.grown(n.key, filepath.Base(n.path), s)); err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err == nil && len(b) >= signedSlot {
		err = fmt.Errorf("the signature data of %s takes %d bytes", logName(n.path), len(b))
	}
	if err == nil {
		b = append(append(b, bytes.Repeat([]byte{' '}, signedSlot-len(b)-1)...), '\n')
		_, err = n.file.WriteAt(b, n.turn*signedSlot)
	}
	if err != nil {
		return fmt.Errorf("%w: sign %s: %w", errDisk, logName(n.path), err)
	}
	n.last, n.turn = size, 1-n.turn
	return nil
}

// forget removes what was signed until now.
func (n *notary) forget() error {
	if n == nil {
		return nil
	}
	n.last, n.turn = 0, 0
	return n.file.Truncate(0)
}

// close puts what was signed on disk.
func (n *notary) close() error {
	if n == nil {
		return nil
	}
	return errors.Join(n.file.Sync(), n.file.Close())
}

// own are the records that this mirror signed itself.
func (n *notary) own() ([]signedPart, error) {
	list, err := n.place.signedParts(n.key, n.path)
	mine := repo.PublicOf(n.place.Signer)
	return slices.DeleteFunc(list, func(s signedPart) bool { return s.Signature.Key != mine }), err
}

// again goes on with a log that was left with so many bytes. It returns how many of them were signed; a signature that does not match
// them is ErrDamaged: somebody changed the file.
func (n *notary) again(size int64) (signed int64, err error) {
	list, err := n.own()
	if err != nil {
		return 0, err
	}
	for len(list) > 0 && list[0].Size > size { // of what a disk lost: that record goes first
		n.turn = list[0].slot
		list = list[1:]
	}
	if len(list) == 2 {
		n.turn = list[1].slot
	} else if len(list) == 1 && n.turn == list[0].slot {
		n.turn = 1 - n.turn
	}
	in, err := openLocal(n.place, n.path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if len(list) > 0 {
		signed = list[0].Size
	}
	if _, err := io.CopyN(n.sum, in, signed); err != nil {
		return 0, err
	}
	if signed > 0 && n.now() != list[0].Sum {
		return 0, fmt.Errorf("%w: %s is not what this mirror wrote and signed", binlogevent.ErrDamaged, logName(n.path))
	}
	_, err = io.CopyN(n.sum, in, size-signed)
	return signed, err
}

// vouch makes sure that a log that a process left is the server's, and signs it: what that process signed, else what the server
// has at that place. ErrDamaged: it is not.
func (f *follower) vouch(ctx context.Context, w *writer) error {
	if w.notary == nil {
		return nil
	}
	if len(w.buf) > 0 { // nothing is written of it
		return w.notary.forget()
	}
	signed, err := w.notary.again(w.pos)
	if err != nil {
		return err
	}
	if signed = max(signed, int64(len(binlogevent.Magic))); signed < w.pos {
		if err := f.sameFrom(ctx, w, signed); err != nil {
			return err
		}
	}
	return w.notary.sign(w.pos, w.notary.now())
}

// sameFrom compares a log from an event on with what the server has of it.
func (f *follower) sameFrom(ctx context.Context, w *writer, from int64) error {
	in, err := openLocal(f.o.Place, w.path)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.CopyN(io.Discard, in, from); err != nil {
		return err
	}
	d, err := f.o.Target.Dump(ctx, mysql.DumpOptions{Identity: f.identity, File: w.name(), Pos: from})
	if err != nil {
		return err
	}
	defer d.Close()
	differs := fmt.Errorf("%w: %s is not signed from byte %d on, and differs from the server's", binlogevent.ErrDamaged, logName(w.path), from)
	sums := w.sums
	for at := from; at < w.pos; {
		raw, _, err := d.Next(patienceOfOne)
		if mysql.LogRefused(err) || errors.Is(err, wire.ErrEndOfLogs) || errors.Is(err, binlogevent.ErrDamaged) {
			return differs
		}
		if err != nil {
			return err
		}
		if len(raw) < binlogevent.HeaderLen {
			return fmt.Errorf("%w: an event of %d bytes", binlogevent.ErrDamaged, len(raw))
		}
		h := binlogevent.ParseHeader(raw)
		begins := at == int64(len(binlogevent.Magic))
		switch {
		case h.Type == binlogevent.TypeHeartbeat || h.Type == binlogevent.TypeHeartbeatV2 || h.Artificial():
			continue
		case h.Type == binlogevent.TypeFormatDescription && !begins, h.Type == binlogevent.TypeStartEncryption && from > int64(len(binlogevent.Magic)):
			continue
		case h.Type == binlogevent.TypeFormatDescription:
			if format, err := binlogevent.ParseFormat(raw); err == nil {
				sums = format.Checksum
			}
		}
		raw = slices.Clone(raw)
		binlogevent.ClearInUse(raw)
		theirs := binlogevent.Readable(raw, sums)
		ours := make([]byte, len(theirs))
		if _, err := io.ReadFull(in, ours); err != nil || at+int64(len(ours)) > w.pos || !bytes.Equal(ours, theirs) {
			return differs
		}
		at += int64(len(ours))
	}
	return nil
}

// sign signs the index of a complete log whose bytes are those that the mirror signed while it grew.
func (f *follower) sign(l localLog, x *binlog.Index) error {
	if f.o.Place.Signer == nil {
		return nil
	}
	n := &notary{place: f.o.Place, key: l.key, path: l.path}
	list, err := n.own()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(s signedPart) bool { return s.Size == x.Size && s.Sum == x.SHA256+x.HMAC }) {
		f.note(true, "%s is not signed: it is not, or not entirely, what this mirror wrote and signed; a restore reads it only with --allow-unsigned", l.name)
		return nil
	}
	x.Signature, err = repo.SignLog(f.o.Place.Signer, f.o.Place.complete(l.key, *x))
	return err
}

// trusted is a log that is read only as it was signed. It may be opened several times; bytes that are others at a later time are
// noticed before anybody gets them.
type trusted struct {
	open func(ctx context.Context) (io.ReadCloser, error)
	// look says what of the log is signed: its length and sum.
	look func(ctx context.Context) (size int64, sum string, err error)
	hash func() (hash.Hash, error)

	mu     sync.Mutex
	known  bool
	size   int64
	blocks [][sha256.Size]byte
}

// trustedBlock is how many bytes are compared at a time.
const trustedBlock = 1 << 20

// Open reads the log to the end of what is signed. The first Open reads all of that in advance.
func (t *trusted) Open(ctx context.Context) (io.ReadCloser, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		if err := t.learn(ctx); err != nil {
			return nil, err
		}
		t.known = true
	}
	in, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return &trustedReader{t: t, in: in}, nil
}

// learn reads the log once, compares it with what was signed, and keeps the hashes of its blocks.
func (t *trusted) learn(ctx context.Context) error {
	size, want, err := t.look(ctx)
	if err != nil {
		return err
	}
	in, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	sum, err := t.hash()
	if err != nil {
		return err
	}
	t.size, t.blocks = 0, nil
	block := make([]byte, trustedBlock)
	for t.size < size {
		n, err := io.ReadFull(in, block[:min(trustedBlock, size-t.size)])
		sum.Write(block[:n])
		t.blocks = append(t.blocks, sha256.Sum256(block[:n]))
		t.size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if t.size != size || want != "" && hex.EncodeToString(sum.Sum(nil)) != want {
		return fmt.Errorf("%w: %w", repo.ErrForged, repo.ErrDamaged)
	}
	return nil
}

type trustedReader struct {
	t    *trusted
	in   io.ReadCloser
	n    int    // blocks that were read
	left []byte // of the last
	buf  []byte
}

func (r *trustedReader) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		if r.n == len(r.t.blocks) {
			return 0, io.EOF
		}
		if r.buf == nil {
			r.buf = make([]byte, trustedBlock)
		}
		r.left = r.buf[:min(trustedBlock, r.t.size-int64(r.n)*trustedBlock)]
		if _, err := io.ReadFull(r.in, r.left); err != nil {
			r.left = nil
			return 0, fmt.Errorf("what was read before: %w", noEnd(err))
		}
		if sha256.Sum256(r.left) != r.t.blocks[r.n] {
			r.left = nil
			return 0, fmt.Errorf("it has changed since it was checked: %w: %w", repo.ErrForged, repo.ErrDamaged)
		}
		r.n++
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// noEnd makes an end that comes too early one.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *trustedReader) Close() error { return r.in.Close() }
