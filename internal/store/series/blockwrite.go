package series

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/home"
)

// blockWriter writes a block file next to its final name; finish puts it in place atomically.
type blockWriter struct {
	f     *os.File
	path  string
	out   *bufio.Writer
	zstd  *zstd.Encoder
	dir   []byte
	count int
	off   uint64
	head  []byte
}

const tempSuffix = ".tmp"

func createBlock(path string, z *zstd.Encoder) (*blockWriter, error) {
	f, err := os.OpenFile(path+tempSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, fmt.Errorf("create block: %w", err)
	}
	w := &blockWriter{f: f, path: path, zstd: z, out: bufio.NewWriterSize(f, 128<<10), off: blockHead}
	_, err = w.out.Write(make([]byte, blockHead))
	if err != nil {
		w.abandon()
		return nil, fmt.Errorf("write block: %w", err)
	}
	return w, nil
}

// abandon removes the unfinished file.
func (w *blockWriter) abandon() {
	w.f.Close()
	os.Remove(w.path + tempSuffix)
}

// segment writes the next series. chunks[i] belongs to entries[i].
func (w *blockWriter) segment(entries []entry, chunks [][]byte) error {
	absent := true
	for i := range entries {
		absent = absent && entries[i].kind == columnAbsent
	}
	w.count++
	if absent {
		w.dir = append(w.dir, 0)
		return nil
	}
	w.head = appendEntries(w.head[:0], entries)
	head := binary.AppendUvarint(nil, uint64(len(w.head)))
	head = append(head, w.head...)
	head = binary.LittleEndian.AppendUint32(head, checksum(head))
	n := len(head)
	w.out.Write(head) // errors stick to the bufio.Writer and come back from Flush
	for _, c := range chunks {
		if len(c) > 0 {
			w.out.Write(c)
			w.out.Write(binary.LittleEndian.AppendUint32(nil, checksum(c)))
			n += len(c) + 4
		}
	}
	w.off += uint64(n)
	w.dir = binary.AppendUvarint(w.dir, uint64(n))
	return nil
}

// finish writes what follows the segments, then the header, makes all of it durable
// and renames the file to its name. It returns the file's size.
func (w *blockWriter) finish(start int64, hours []hourInfo, s *schema) (int64, error) {
	size, err := w.complete(start, hours, s)
	if err != nil {
		w.abandon()
		return 0, fmt.Errorf("write block %s: %w", filepath.Base(w.path), err)
	}
	return size, nil
}

func (w *blockWriter) complete(start int64, hours []hourInfo, s *schema) (int64, error) {
	packed := w.zstd.EncodeAll(appendHours(nil, hours), nil)
	h := blockHeader{version: blockVersion, start: start, hours: len(hours), series: w.count, schema: s.hash, tail: w.off,
		schemaLen: uint32(len(s.packed)), hoursLen: uint32(len(packed)), dirLen: uint32(len(w.dir))}
	for range 2 {
		for _, b := range [][]byte{s.packed, packed, w.dir} {
			w.out.Write(b)
			w.out.Write(binary.LittleEndian.AppendUint32(nil, checksum(b)))
		}
	}
	w.out.Write(h.encode())
	w.out.Write(blockFooter(h.total()))
	if err := w.out.Flush(); err != nil {
		return 0, err
	}
	if _, err := w.f.WriteAt(h.encode(), 0); err != nil {
		return 0, err
	}
	if err := w.f.Sync(); err != nil {
		return 0, err
	}
	if err := w.f.Close(); err != nil {
		return 0, err
	}
	if err := os.Rename(w.path+tempSuffix, w.path); err != nil {
		return 0, err
	}
	return int64(h.total()), home.SyncDir(filepath.Dir(w.path))
}
