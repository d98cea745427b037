package repo

import (
	"context"
	"fmt"
	"path"

	"github.com/rissodb/risso/internal/digits"
)

// manyFolders is from how many tables on one listing of all is quicker than one of each.
const manyFolders = 64

// Present makes sure that the objects which some lines of a backup's manifest need are in the place and as long as they should be; else
// it is ErrDamaged, and names the first. Nothing is read of them. lines hands over the lines, the same ones whenever it is called.
func (r *Repo) Present(ctx context.Context, id string, lines func(each func(Line) error) error) error {
	needed, folders := keySet{}, map[string]bool{}
	err := lines(func(l Line) error {
		for _, x := range refsOf(l) {
			key := x.key(id)
			needed.add(key, x.Size)
			folders[path.Dir(key)+"/"] = true
		}
		return nil
	})
	if err != nil || len(needed) == 0 {
		return err
	}
	if len(folders) > manyFolders {
		folders = map[string]bool{dataPrefix: true, partPrefix(id): true}
	}
	for prefix := range folders {
		err := r.store.List(ctx, prefix, func(key string, size int64) error {
			if want, ok := needed.size(key); ok && want == size {
				needed.remove(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	lacks, which := len(needed), ""
	if lacks == 0 {
		return nil
	}
	err = lines(func(l Line) error {
		for _, x := range refsOf(l) {
			if _, ok := needed.size(x.key(id)); ok && which == "" {
				which = x.key(id)
				if l.Table != nil {
					which += " of " + l.Table.Schema + "." + l.Table.Name
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("of the objects needed for backup %s %s missing or of a different size, the first %s: %w", id, digits.Plural(int64(lacks), "object is", "objects are"), which, ErrDamaged)
}
