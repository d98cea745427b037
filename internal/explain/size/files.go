package size

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// fromFiles counts the tablespaces of tables by the files in the data directory, for a server that does not list all of them. Names of tables
// stay those of files, until readNames. It reports whether it could; if not, nothing was counted.
func (r *reader) fromFiles(ctx context.Context) bool {
	dir := r.c.Server.DataDir
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.unknown("files of tables in "+dir, err.Error(), "")
		return false
	}
	var folders []string
	for _, e := range entries {
		if st, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && st.IsDir() && !strings.HasPrefix(e.Name(), "#") {
			folders = append(folders, e.Name())
		}
	}
	schemas, err := r.fileNames(ctx, folders)
	if err != nil {
		r.unknown("files of tables in "+dir, err.Error(), "")
		return false
	}
	files := make([][]os.DirEntry, len(folders))
	for i, folder := range folders {
		if files[i], err = os.ReadDir(filepath.Join(dir, folder)); err != nil {
			r.unknown("files of tables in "+filepath.Join(dir, folder), err.Error(), "")
			return false
		}
	}
	n := 0
	for i, folder := range folders {
		for _, f := range files[i] {
			name, ending := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name())), filepath.Ext(f.Name())
			path := filepath.Join(dir, folder, f.Name())
			if ending == ".isl" { // the file is in another folder: DATA DIRECTORY
				b, err := os.ReadFile(path)
				if err != nil {
					r.unknown("the file of table "+schemas[i]+"."+name, err.Error(), "")
					continue
				}
				path = strings.TrimSpace(string(b))
			} else if ending != ".ibd" {
				continue
			}
			st, err := os.Stat(path)
			if err != nil {
				if !os.IsNotExist(err) {
					r.unknown("the file of table "+schemas[i]+"."+name, err.Error(), "")
				}
				continue
			}
			sum := sumOf(st)
			t := mysql.Tablespace{Schema: schemas[i], Table: name, Name: folder + "/" + name, File: sum.File, Allocated: sum.Allocated}
			if at := strings.Index(strings.ToLower(name), "#p#"); at > 0 {
				t.Table, t.Partition = name[:at], name[at+3:]
			}
			r.tally.Add(t)
			if n++; n%1000 == 0 {
				r.o.Progress("files", n)
			}
		}
	}
	r.raw = true
	return true
}

// fileNames are the names that names of files stand for.
func (r *reader) fileNames(ctx context.Context, names []string) (out []string, err error) {
	for chunk := range slices.Chunk(names, namesAtOnce) {
		err := r.c.QuietQuery(ctx, r.c.Server.FileNames(chunk), func(row []sqldriver.Value) error {
			for _, v := range row {
				out = append(out, mysql.Text(v))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read names of files: %w", err)
		}
	}
	return out, nil
}

// readNames gives the listed tables of InnoDB their own names, if they have those of files.
func (r *reader) readNames(ctx context.Context) error {
	if !r.raw {
		return nil
	}
	var list []*Table
	var names []string
	for i := range r.r.Tables {
		if t := &r.r.Tables[i]; t.Engine == "InnoDB" {
			list, names = append(list, t), append(names, t.Name)
		}
	}
	read, err := r.fileNames(ctx, names)
	if err != nil {
		return err
	}
	for i, t := range list {
		t.Name = read[i]
	}
	return nil
}
