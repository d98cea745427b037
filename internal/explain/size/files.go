package size

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
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
		if !strings.HasPrefix(t.Name, altering) { // such names are not encoded
			t.Name = read[i]
		}
	}
	return nil
}

// altering begins the names of files that an ALTER TABLE makes. Those of one that was cut off stay.
const altering = "#sql"

// altered notes that the server lists a tablespace of an ALTER TABLE.
func (r *reader) altered(name string) {
	if _, table, _ := strings.Cut(name, "/"); strings.HasPrefix(table, altering) {
		if r.altering == nil {
			r.altering = map[string]bool{}
		}
		r.altering[name] = true
	}
}

// leftOver looks for files of ALTER TABLE that the server lists nowhere: of such as were cut off, or of other engines' that run.
func (r *reader) leftOver() {
	dir := r.c.Server.DataDir
	s := Space{Kind: KindTemporary, Name: "files of ALTER TABLE"}
	n, one := 0, ""
	folders, err := os.ReadDir(dir)
	if err != nil {
		r.unknown(s.Name+" in "+dir, err.Error(), "")
		return
	}
	for _, folder := range folders {
		files, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if err != nil || strings.HasPrefix(folder.Name(), "#") { // a file, or a folder of InnoDB's
			continue
		}
		for _, f := range files {
			name := f.Name()
			inFolder := folder.Name() + "/" + strings.TrimSuffix(name, filepath.Ext(name))
			if !strings.HasPrefix(name, altering) || filepath.Ext(name) == ".ibd" && (r.raw || r.altering[inFolder]) { // counted as a table's
				continue
			}
			if st, err := f.Info(); err == nil && st.Mode().IsRegular() {
				s.add(sumOf(st))
				n, one = n+1, folder.Name()+"/"+name
			}
		}
	}
	if n > 0 {
		s.Note = digits.Counted(n, "file") + ", such as " + one + ", of an ALTER TABLE that runs, or of one that was cut off"
		r.r.Spaces = append(r.r.Spaces, s)
	}
}

// csv looks at the file of a table of the engine CSV, of which the server says that it takes nothing.
func (r *reader) csv(t *Table) {
	if name, ok := mysql.InnoDBName(mysql.TableName{Schema: t.Schema, Name: t.Name}); ok && r.o.Local {
		if st, err := os.Stat(filepath.Join(r.c.Server.DataDir, name+".CSV")); err == nil {
			t.Sum, t.Data = sumOf(st), nil
			return
		}
	}
	if r.sheets == nil {
		r.sheets = map[string]bool{}
	}
	r.sheets[t.Schema+"."+t.Name] = true
}
