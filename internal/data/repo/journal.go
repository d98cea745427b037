package repo

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/zeebo/xxh3"
)

// journal is a file of this host that notes verified objects: the ID of the repository, then 8 bytes for each (its key's
// hash). What is only half written at the end does not count. A nil journal notes nothing.
type journal struct {
	path string
	had  map[uint64]struct{}

	mu sync.Mutex
	f  *os.File
	w  *bufio.Writer
	n  int
}

const journalHead = "risso verify 1 "

// full reports whether an error is that nothing more can be written: then nothing is noted, and an interrupted run starts over.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

func openJournal(file, repository string) (*journal, error) {
	if file == "" {
		return nil, nil
	}
	j, err := newJournal(file, repository)
	if full(err) {
		return nil, nil
	}
	return j, err
}

func newJournal(file, repository string) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &journal{path: file, had: map[uint64]struct{}{}, f: f}
	if err := j.read(journalHead + repository + "\n"); err != nil {
		f.Close()
		return nil, fmt.Errorf("journal %s: %w", file, err)
	}
	j.w = bufio.NewWriter(f)
	return j, nil
}

// read takes in what an earlier run noted; a file of something else is started over.
func (j *journal) read(head string) error {
	in := bufio.NewReader(j.f)
	got := make([]byte, len(head))
	_, err := io.ReadFull(in, got)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	at := int64(len(head))
	if !bytes.Equal(got, []byte(head)) {
		if _, err := j.f.WriteAt([]byte(head), 0); err != nil {
			return err
		}
	} else {
		var b [8]byte
		for {
			if _, err := io.ReadFull(in, b[:]); err != nil {
				break
			}
			j.had[binary.LittleEndian.Uint64(b[:])] = struct{}{}
			at += 8
		}
	}
	if err := j.f.Truncate(at); err != nil {
		return err
	}
	_, err = j.f.Seek(at, io.SeekStart)
	return err
}

// has reports whether an earlier run verified an object.
func (j *journal) has(key string) bool {
	if j == nil {
		return false
	}
	_, ok := j.had[xxh3.HashString(key)]
	return ok
}

// note adds an object. It is on disk soon, and what is not is verified again.
func (j *journal) note(key string) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], xxh3.HashString(key))
	_, err := j.w.Write(b[:])
	if j.n++; err == nil && j.n%64 == 0 {
		err = j.w.Flush()
	}
	if full(err) {
		j.w.Reset(io.Discard)
		return nil
	}
	return err
}

func (j *journal) close() {
	if j == nil || j.f == nil {
		return
	}
	j.w.Flush()
	j.f.Close()
	j.f = nil
}

// remove ends the journal: all was verified.
func (j *journal) remove() error {
	if j == nil {
		return nil
	}
	j.close()
	if err := os.Remove(j.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
