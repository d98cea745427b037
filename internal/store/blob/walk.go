package blob

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// entry is what a folder holds: a folder, or a file that is a blob or a temporary one.
type entry struct {
	name     string // in its folder; walk returns the whole name
	dir      bool
	temp     bool // set by walk
	size     int64
	modified time.Time
}

// walk passes on all files below a folder whose names begin with prefix, in the order of the bytes of their whole names, until
// give says false. Only the folders on the way are in memory.
func walk(ctx context.Context, prefix string, readDir func(ctx context.Context, dir string) ([]entry, error), give func(entry) bool) error {
	top, _ := path.Split(prefix)
	if top != "" && ValidName(strings.TrimSuffix(top, "/")) != nil {
		return nil // no name begins so
	}
	_, err := walkDir(ctx, strings.TrimSuffix(top, "/"), prefix, readDir, give)
	return err
}

func walkDir(ctx context.Context, dir, prefix string, readDir func(ctx context.Context, dir string) ([]entry, error), give func(entry) bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	list, err := readDir(ctx, dir)
	if err != nil {
		return false, err
	}
	// A folder is sorted where the names below it are: "a/b" comes after "a-b".
	key := func(e entry) string {
		if e.dir {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(key(a), key(b)) })
	for _, e := range list {
		e.temp = strings.HasPrefix(e.name, tempPrefix)
		e.name = path.Join(dir, e.name)
		if e.dir {
			below := e.name + "/"
			if !strings.HasPrefix(below, prefix) && !strings.HasPrefix(prefix, below) {
				continue
			}
			if more, err := walkDir(ctx, e.name, prefix, readDir, give); err != nil || !more {
				return more, err
			}
			continue
		}
		if strings.HasPrefix(e.name, prefix) && !give(e) {
			return false, nil
		}
	}
	return true, nil
}
