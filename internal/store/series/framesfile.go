package series

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// framesFile is the file of an hour's frames, or what will be one: frames that could not be written wait in memory.
type framesFile struct {
	path     string
	hour     int64
	size     int64
	refs     []*frameRef
	schemas  []schemaHash // that have a record in the file
	modified time.Time    // when the newest frame came
}

// frameRef is one frame. It is immutable except for mem.
type frameRef struct {
	start  int64
	ticks  uint64
	late   uint64
	schema *schema
	off    int64 // of the payload in the file
	n      int
	sum    uint32
	mem    []byte // the payload, while it is not in the file
}

func framesPath(dir string, hour int64) string {
	return filepath.Join(dir, time.Unix(hour, 0).UTC().Format("20060102T15")+framesSuffix)
}

const (
	framesSuffix = ".rsf"
	// besideSuffix ends the name of an hour's frames where a newer program has written the file that would hold them.
	besideSuffix = "-beside" + framesSuffix
)

// besidePath is where the frames of an hour go whose own file is of a newer program.
func besidePath(dir string, hour int64) string {
	return strings.TrimSuffix(framesPath(dir, hour), framesSuffix) + besideSuffix
}

// add takes a frame that was written at off, or waits in memory.
func newFrameRef(h frameHead, s *schema, payload []byte) *frameRef {
	return &frameRef{start: h.start, ticks: h.ticks, late: h.late, schema: s, n: len(payload),
		sum: crc32.Checksum(payload, castagnoli)}
}

// covered says which seconds of a minute the file has.
func (f *framesFile) covered(start int64) (ticks uint64) {
	for _, r := range f.refs {
		if r.start == start {
			ticks |= r.ticks
		}
	}
	return ticks
}

// append writes frames to the end of the file and makes them durable; on failure nothing changed.
func (f *framesFile) append(refs []*frameRef) (written int64, err error) {
	var buf []byte
	if f.size == 0 {
		buf = append(buf, framesMagic[:]...)
	}
	have := slices.Clone(f.schemas)
	offs := make([]int64, len(refs))
	for i, r := range refs {
		first := !slices.Contains(have, r.schema.hash)
		if first {
			have = append(have, r.schema.hash)
			buf = appendRecord(buf, recordSchema, r.schema.packed)
		}
		offs[i] = f.size + int64(len(buf)) + recordHead
		buf = appendRecord(buf, recordFrame, r.mem)
		if first { // again, after a frame: without names all frames of the hour say nothing
			buf = appendRecord(buf, recordSchema, r.schema.packed)
		}
	}
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return 0, fmt.Errorf("frames file: %w", err)
	}
	defer file.Close()
	if _, err = file.WriteAt(buf, f.size); err == nil {
		err = unix.Fdatasync(int(file.Fd()))
	}
	if err != nil {
		file.Truncate(f.size) // best effort: a torn tail is cut when the file is opened, too
		return 0, fmt.Errorf("frames file %s: %w", filepath.Base(f.path), err)
	}
	f.size += int64(len(buf))
	f.schemas = have
	for i, r := range refs {
		r.off, r.mem = offs[i], nil
	}
	return int64(len(buf)), nil
}

// unsaved lists the frames that wait in memory.
func (f *framesFile) unsaved() (list []*frameRef) {
	for _, r := range f.refs {
		if r.mem != nil {
			list = append(list, r)
		}
	}
	return list
}

// scannedFrames is what is in a frames file.
type scannedFrames struct {
	scanned
	schemas []schemaHash
	refs    []*frameRef
	foreign bool // frames of another instance or hour, or without schema
}

// scanFrames reads a frames file. Offsets of the frames are in the file.
func scanFrames(b []byte, instance string, cat *catalog) (scannedFrames, error) {
	var f scannedFrames
	torn, err := checkMagic(b, framesMagic)
	switch {
	case errors.Is(err, errVersion) || err != nil && len(b) < len(framesMagic):
		f.bad = true
		return f, err
	case torn:
		f.torn = len(b)
		return f, nil
	}
	f.scanned = scanRecords(b[len(framesMagic):])
	f.bad = f.bad || err != nil // a damaged magic says nothing of the records
	known := map[schemaHash]*schema{}
	for _, r := range f.records { // in the whole file: the one before a frame may be damaged
		if r.kind != recordSchema {
			continue
		}
		s, err := cat.parse(r.payload)
		if err != nil {
			f.foreign = true
			continue
		}
		known[s.hash] = s
		f.schemas = append(f.schemas, s.hash)
	}
	for _, r := range f.records {
		if r.kind != recordFrame {
			continue
		}
		h, err := readFrameHead(r.payload)
		if err != nil || h.instance != instance || known[h.schema] == nil {
			f.foreign = true
			continue
		}
		ref := newFrameRef(h, known[h.schema], r.payload)
		ref.off = int64(len(framesMagic) + r.off + recordHead)
		f.refs = append(f.refs, ref)
	}
	return f, err
}

// load reads and checks one frame.
func (f *framesFile) load(r *frameRef, s *Store) (*frame, error) {
	payload := r.mem
	if payload == nil {
		file, err := os.Open(f.path)
		if err != nil {
			return nil, fmt.Errorf("read frame: %w", err)
		}
		payload = make([]byte, r.n)
		_, err = file.ReadAt(payload, r.off)
		file.Close()
		if err != nil {
			return nil, &damageError{f.path, err}
		}
		if checksum(payload) != r.sum {
			return nil, &damageError{f.path, fmt.Errorf("frame of minute %d: %w", r.start, errSum)}
		}
	}
	h, err := readFrameHead(payload)
	if err == nil {
		var fr *frame
		if fr, err = openFrame(h, r.schema, s.dec); err == nil {
			return fr, nil
		}
	}
	return nil, &damageError{f.path, err}
}

// values writes what the frames have of a series to dst, a slot per second of the hour, where dst has none yet.
func (f *framesFile) values(s *Store, key string, dst []float64) error {
	var errs []error
	var last *schema
	at := -1
	for _, r := range f.refs {
		if r.schema != last {
			last, at = r.schema, r.schema.find(key)
		}
		if at < 0 {
			continue
		}
		fr, err := s.frames.get(f, r, s)
		if err == nil {
			err = fr.column(at, dst, int(r.start-f.hour))
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// nan fills v with absent values.
func nan(v []float64) {
	n := math.NaN()
	for i := range v {
		v[i] = n
	}
}
