package repo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/fleet"
)

// ErrDamaged says that what a place returned is not what was put there.
var ErrDamaged = fleet.WithRemedy(errors.New("damaged"), "risso verify --from … shows what else is damaged; another backup, or its copy, may be intact")

// Draft collects the lines of a manifest while a backup runs. Its methods may be called from several goroutines. Lines are
// in files that have no name, so that 650,000 tables need no memory and a killed process leaves nothing behind.
type Draft struct {
	mu     sync.Mutex
	spools [ranks]*spool
	refs   *spool // the objects that the lines need
}

type spool struct {
	file *os.File
	zw   *zstd.Encoder
}

// NewDraft begins a manifest. The caller ends it with Close.
func NewDraft() *Draft { return &Draft{} }

// Add takes a line.
func (d *Draft) Add(l Line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spools[l.rank()]
	if s == nil {
		if s, err = newSpool(); err != nil {
			return err
		}
		d.spools[l.rank()] = s
	}
	if _, err := s.zw.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return d.addRefs(refsOf(l))
}

// addRefs notes objects; the lock is held.
func (d *Draft) addRefs(list []ref) (err error) {
	if d.refs == nil && len(list) > 0 {
		if d.refs, err = newSpool(); err != nil {
			return err
		}
	}
	for _, x := range list {
		b, err := json.Marshal(x)
		if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		if _, err := d.refs.zw.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	return nil
}

// copyRefs writes the lines of objects.
func (d *Draft) copyRefs(w io.Writer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refs == nil {
		return nil
	}
	return d.refs.copyTo(w)
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "risso-manifest-*")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("manifest: %w", err)
	}
	zw, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return &spool{file: f, zw: zw}, nil
}

// Close releases what was collected.
func (d *Draft) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range append(d.spools[:], d.refs) {
		if s != nil {
			s.zw.Close()
			s.file.Close()
		}
	}
	d.spools, d.refs = [ranks]*spool{}, nil
}

// writeObject writes the whole manifest as an object.
func (d *Draft) writeObject(w io.Writer, h Header, c *cipher) error {
	sealed := newSealWriter(w)
	enc, err := c.encrypt(sealed)
	if err != nil {
		return err
	}
	zw, err := zstd.NewWriter(enc, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if _, err := d.writeTo(zw, h); err != nil {
		zw.Close()
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	if err := enc.Close(); err != nil {
		return err
	}
	return sealed.seal()
}

// encodeLine returns a line of a manifest with its end.
func encodeLine(l Line) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	return b.Bytes(), err
}

// writeTo writes the whole manifest, uncompressed, and returns the hash of all lines but the last, in hex.
func (d *Draft) writeTo(w io.Writer, h Header) (hash string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := sha256.New()
	lines := &lineCounter{w: io.MultiWriter(w, sum)}
	first, err := encodeLine(Line{Backup: &h})
	if err != nil {
		return "", err
	}
	if _, err := lines.Write(first); err != nil {
		return "", err
	}
	for _, s := range d.spools {
		if s == nil {
			continue
		}
		if err := s.copyTo(lines); err != nil {
			return "", err
		}
	}
	hash = hex.EncodeToString(sum.Sum(nil))
	return hash, json.NewEncoder(w).Encode(Line{End: &Trailer{Lines: lines.n, SHA256: hash}})
}

func (s *spool) copyTo(w io.Writer) error {
	if err := s.zw.Close(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	zr, err := zstd.NewReader(s.file, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer zr.Close()
	_, err = io.Copy(w, zr)
	return err
}

type lineCounter struct {
	w io.Writer
	n int64
}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.n += int64(bytes.Count(b, []byte{'\n'}))
	return c.w.Write(b)
}

// Manifest reads a manifest line by line.
type Manifest struct {
	Header Header

	src   io.Closer
	in    *bufio.Reader
	sum   hash.Hash
	lines int64
	ended bool

	signature *signature // nil: it has none
}

func newManifest(r io.ReadCloser, sig *signature) (*Manifest, error) {
	m := &Manifest{in: bufio.NewReaderSize(r, 64<<10), sum: sha256.New(), src: r, signature: sig}
	l, err := m.Next()
	if err != nil {
		m.Close()
		return nil, err
	}
	if l.Backup == nil {
		m.Close()
		return nil, fmt.Errorf("manifest: the first line is no header: %w", ErrDamaged)
	}
	if l.Backup.Format > Format {
		m.Close()
		return nil, fmt.Errorf("the backup has format %d, this risso reads up to %d: take a newer one", l.Backup.Format, Format)
	}
	m.Header = *l.Backup
	return m, nil
}

// Signer is the key that signed the backup; "" if it is not signed.
func (m *Manifest) Signer() PublicKey {
	if m.signature == nil {
		return ""
	}
	return m.signature.Key
}

// Next returns the next line; io.EOF only when the manifest was read to its end and is whole.
func (m *Manifest) Next() (Line, error) {
	if m.ended {
		return Line{}, io.EOF
	}
	b, err := m.in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return Line{}, fmt.Errorf("manifest: ends after line %d: %w", m.lines, ErrDamaged)
	}
	if err != nil {
		return Line{}, fmt.Errorf("manifest: line %d: %w", m.lines+1, err)
	}
	var l Line
	if err := json.Unmarshal(b, &l); err != nil {
		return Line{}, fmt.Errorf("manifest: line %d: %w: %w", m.lines+1, ErrDamaged, err)
	}
	if l.End != nil {
		if l.End.Lines != m.lines || l.End.SHA256 != hex.EncodeToString(m.sum.Sum(nil)) {
			return Line{}, fmt.Errorf("manifest: its checksum does not match: %w", ErrDamaged)
		}
		if _, err := m.in.ReadByte(); !errors.Is(err, io.EOF) { // reads up to the seal
			if err == nil {
				err = ErrDamaged
			}
			return Line{}, fmt.Errorf("manifest: after its end: %w", err)
		}
		if m.signature != nil {
			if err := m.signature.fits(m.signature.Lines, l.End.SHA256); err != nil {
				return Line{}, err
			}
		}
		m.ended = true
		return Line{}, io.EOF
	}
	m.sum.Write(b)
	if m.lines++; m.lines == 1 && m.signature != nil {
		if err := m.signature.fits(m.signature.Header, hex.EncodeToString(m.sum.Sum(nil))); err != nil {
			return Line{}, err
		}
	}
	return l, nil
}

// Each hands all remaining lines to f, and fails when the manifest is not whole.
func (m *Manifest) Each(f func(Line) error) error {
	for {
		l, err := m.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(l); err != nil {
			return err
		}
	}
}

// Close lets go of the place.
func (m *Manifest) Close() error { return m.src.Close() }
