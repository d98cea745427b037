// Package mirror keeps copies of a server's binary logs: every event is on disk here before the server is told so, the
// bytes are the server's own, and nothing that was written is ever overwritten.
package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
)

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

const (
	root      = "binlog/" // of all mirrors in a place
	extPacked = ".zst"
	extIndex  = ".json"
	setAside  = ".damaged-" // in the names of files that were set aside
)

// Series is the logs of one server since they began to count, as far as they are mirrored.
type Series struct {
	Key  string // server_uuid, or domain-server-time of MariaDB; with .2 and so on after RESET
	Logs []Log
}

// Log is a mirrored log.
type Log struct {
	binlog.Index
	Finished bool `json:"finished"` // verified and in its place; else it is being written
}

// List reads which logs are in a place, and in the folder where they are written (the same folder where the place is one).
// Unfinished logs are scanned.
func List(ctx context.Context, place repo.Store, dir string) ([]Series, error) {
	var indexes []string
	err := place.List(ctx, root, func(key string, _ int64) error {
		if name, ok := strings.CutSuffix(key, extIndex); ok && path.Dir(path.Dir(name))+"/" == root {
			indexes = append(indexes, key)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the mirrored logs: %w", err)
	}
	series := map[string]*Series{}
	get := func(key string) *Series {
		if series[key] == nil {
			series[key] = &Series{Key: key}
		}
		return series[key]
	}
	for _, key := range indexes {
		x, err := readIndex(ctx, place, key)
		if err != nil {
			return nil, err
		}
		s := get(path.Base(path.Dir(key)))
		s.Logs = append(s.Logs, Log{Index: x, Finished: true})
	}
	local, err := localLogs(dir)
	if err != nil {
		return nil, err
	}
	for _, l := range local {
		s := get(l.key)
		if slices.ContainsFunc(s.Logs, func(x Log) bool { return x.Name == l.name }) {
			continue // finished, and not yet removed
		}
		x, err := scanFile(ctx, l.path)
		if err != nil && x.Size == 0 {
			continue // nothing in it yet
		}
		s.Logs = append(s.Logs, Log{Index: x})
	}
	var list []Series
	for _, s := range series {
		slices.SortFunc(s.Logs, func(a, b Log) int { return binlog.CompareNames(a.Name, b.Name) })
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Series) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

func readIndex(ctx context.Context, place repo.Store, name string) (x binlog.Index, err error) {
	in, err := place.Get(ctx, name)
	if err != nil {
		return x, err
	}
	defer in.Close()
	if err := json.NewDecoder(in).Decode(&x); err != nil {
		return x, fmt.Errorf("read %s: %w", name, err)
	}
	return x, nil
}

type localLog struct{ key, name, path string }

// localLogs are the logs that are not finished.
func localLogs(dir string) ([]localLog, error) {
	keys, err := os.ReadDir(filepath.Join(dir, root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []localLog
	for _, k := range keys {
		if !k.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, root, k.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if isLog(f.Name()) {
				list = append(list, localLog{k.Name(), f.Name(), filepath.Join(dir, root, k.Name(), f.Name())})
			}
		}
	}
	slices.SortFunc(list, func(a, b localLog) int {
		if a.key != b.key {
			return strings.Compare(a.key, b.key)
		}
		return binlog.CompareNames(a.name, b.name)
	})
	return list, nil
}

// isLog says whether a file's name is that of a log that is being written: it ends in its number.
func isLog(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.Contains(name, setAside) && binlog.Number(name) > 0
}

func scanFile(ctx context.Context, p string) (binlog.Index, error) {
	f, err := os.Open(p)
	if err != nil {
		return binlog.Index{}, err
	}
	defer f.Close()
	return binlog.Scan(ctx, filepath.Base(p), f)
}

// Files gives the logs of a series to read.
func (s Series) Files(place repo.Store, dir string) []binlog.File {
	list := make([]binlog.File, len(s.Logs))
	for i, l := range s.Logs {
		list[i] = binlog.File{Name: l.Name, Size: l.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			name := root + s.Key + "/" + l.Name
			in, err := place.Get(ctx, name+extPacked)
			if errors.Is(err, fs.ErrNotExist) {
				// It may have been finished since the list was made, or is being written.
				return os.Open(filepath.Join(dir, filepath.FromSlash(name)))
			} else if err != nil {
				return nil, err
			}
			return binlog.Uncompressed(in)
		}}
	}
	return list
}
