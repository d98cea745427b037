package size

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// spaces reads what belongs to no single table.
func (r *reader) spaces(ctx context.Context, shared []mysql.Tablespace) {
	for _, s := range shared {
		r.r.Spaces = append(r.r.Spaces, Space{Kind: kindOf(s.Name, ""), Name: s.Name, Sum: Sum{s.File, s.Allocated}})
	}
	r.sharedFiles(ctx)
	r.inSystem()
	r.sessionTemporary(ctx)
	r.redo(ctx)
	r.binaryLogs(ctx)
	r.relayLogs(ctx)
	if r.o.Local {
		r.local()
	} else {
		r.elsewhere()
	}
	order := []string{KindSystem, KindShared, KindUndo, KindRedo, KindDoublewrite, KindTemporary, KindBinlog, KindRelay, KindLog}
	slices.SortStableFunc(r.r.Spaces, func(a, b Space) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
}

// kindOf is what a tablespace is for, by the names that the server gives, and the type of its file.
func kindOf(name, fileType string) string {
	switch {
	case name == "innodb_system" || name == "mysql":
		return KindSystem
	case name == "innodb_temporary" || fileType == "TEMPORARY":
		return KindTemporary
	case strings.HasPrefix(name, "innodb_undo") || fileType == "UNDO LOG":
		return KindUndo
	}
	return KindShared
}

// sharedFiles adds the tablespaces that only information_schema.FILES has, and what is free in all of them.
func (r *reader) sharedFiles(ctx context.Context) {
	statement := r.c.Server.SharedFiles()
	if statement == "" || r.r.Source != SourceFiles {
		return
	}
	files := map[string]*Space{} // the system tablespace may have several
	var names []string
	err := r.c.Query(ctx, statement, func(row []sqldriver.Value) error {
		name := mysql.Text(row[0])
		s := files[name]
		if s == nil {
			free := int64(0)
			s = &Space{Kind: kindOf(name, mysql.Text(row[1])), Name: name, Free: &free}
			files[name] = s
			names = append(names, name)
		}
		bytes := number(mysql.Text(row[2]))
		s.add(Sum{bytes, bytes})
		*s.Free = max(*s.Free, number(mysql.Text(row[3]))) // each file of a tablespace has that of all
		return nil
	})
	if err != nil {
		r.failed("the system tablespace, and free space in shared ones", err, "PROCESS")
		return
	}
	for _, name := range names {
		s := files[name]
		i := slices.IndexFunc(r.r.Spaces, func(x Space) bool { return x.Name == name })
		switch {
		case i < 0:
			s.Note = inExtents
			r.r.Spaces = append(r.r.Spaces, *s)
		case r.r.Spaces[i].File == 0:
			s.Note = inExtents
			r.r.Spaces[i] = *s
		default:
			r.r.Spaces[i].Kind, r.r.Spaces[i].Free = s.Kind, s.Free // only here its type is told
		}
	}
}

// inExtents says how exact a size of information_schema.FILES is. Holes are in it.
const inExtents = "in whole extents"

// sharedHere takes the size of a tablespace from its files, which a setting names as ibdata1:12M;ibdata2:12M:autoextend, if the server did not
// tell it exactly. Source: MySQL manual, "innodb_data_file_path".
func (r *reader) sharedHere(name, setting string) {
	i := slices.IndexFunc(r.r.Spaces, func(s Space) bool { return s.Name == name && strings.HasPrefix(s.Note, inExtents) })
	if i < 0 {
		return
	}
	var sum Sum
	for _, file := range strings.Split(r.vars[setting], ";") {
		file, _, _ = strings.Cut(file, ":")
		if !filepath.IsAbs(file) {
			file = filepath.Join(r.path(r.vars["innodb_data_home_dir"]), file)
		}
		st, err := os.Stat(file)
		if err != nil || !st.Mode().IsRegular() { // a raw device, or a name that is not known
			return
		}
		sum.add(sumOf(st))
	}
	r.r.Spaces[i].Sum = sum
	r.r.Spaces[i].Note = strings.TrimPrefix(strings.TrimPrefix(r.r.Spaces[i].Note, inExtents), "; ")
}

// inSystem says what else lives in the system tablespace. Sources: MySQL manual, "The System Tablespace"; MariaDB documentation, "InnoDB
// Doublewrite Buffer".
func (r *reader) inSystem() {
	var holds []string
	if !r.c.Server.DoublewriteFiles() && !strings.EqualFold(r.vars["innodb_doublewrite"], "OFF") {
		holds = append(holds, "the doublewrite buffer ("+digits.Bytes(2<<20)+")")
	}
	if !slices.ContainsFunc(r.r.Spaces, func(s Space) bool { return s.Kind == KindUndo }) {
		holds = append(holds, "undo")
	}
	i := slices.IndexFunc(r.r.Spaces, func(s Space) bool { return s.Name == "innodb_system" })
	if i >= 0 && len(holds) > 0 {
		if r.r.Spaces[i].Note != "" {
			holds = append([]string{r.r.Spaces[i].Note}, "holds "+strings.Join(holds, " and "))
			r.r.Spaces[i].Note = strings.Join(holds, "; ")
			return
		}
		r.r.Spaces[i].Note = "holds " + strings.Join(holds, " and ")
	}
}

func (r *reader) sessionTemporary(ctx context.Context) {
	statement := r.c.Server.SessionTemporary()
	if statement == "" {
		return
	}
	err := r.c.Query(ctx, statement, func(row []sqldriver.Value) error {
		bytes := number(mysql.Text(row[1]))
		r.r.Spaces = append(r.r.Spaces, Space{Kind: KindTemporary, Name: "temporary tables of sessions", Sum: Sum{bytes, bytes}, Note: digits.Counted(number(mysql.Text(row[0])), "file")})
		return nil
	})
	if err != nil {
		r.failed("temporary tables of sessions", err, "PROCESS")
	}
}

// redo is the size of the redo log: as MySQL since 8.0.30 tells it, or of the files that the settings ask for.
func (r *reader) redo(ctx context.Context) {
	bytes := int64(0)
	err := r.c.Query(ctx, "SHOW /* risso: sizes of files */ GLOBAL STATUS LIKE 'Innodb_redo_log_physical_size'", func(row []sqldriver.Value) error {
		bytes = number(mysql.Text(row[1]))
		return nil
	})
	if err == nil && bytes == 0 {
		bytes = number(r.vars["innodb_log_file_size"]) * max(number(r.vars["innodb_log_files_in_group"]), 1)
	}
	if err != nil || bytes == 0 {
		r.unknown("the redo log", "the server does not tell its size", "")
		return
	}
	r.r.Spaces = append(r.r.Spaces, Space{Kind: KindRedo, Name: "redo log", Sum: Sum{bytes, bytes}})
}

func (r *reader) binaryLogs(ctx context.Context) {
	if !strings.EqualFold(r.vars["log_bin"], "ON") {
		return
	}
	files, bytes := 0, int64(0)
	err := r.c.Query(ctx, "SHOW /* risso: sizes of files */ BINARY LOGS", func(row []sqldriver.Value) error {
		files++
		bytes += number(mysql.Text(row[1]))
		return nil
	})
	if err != nil {
		r.failed("binary logs", err, r.c.Server.LogsPrivilege())
		return
	}
	r.r.Spaces = append(r.r.Spaces, Space{Kind: KindBinlog, Name: "binary logs", Sum: Sum{bytes, bytes}, Note: digits.Counted(files, "file")})
}

func (r *reader) relayLogs(ctx context.Context) {
	rows, err := r.c.Maps(ctx, r.c.Server.ReplicaStatusStatement())
	if err != nil {
		r.failed("relay logs", err, r.c.Server.ReplicaPrivilege())
		return
	}
	for _, row := range rows {
		bytes := number(row["Relay_Log_Space"])
		name := "relay logs"
		if channel := row["Channel_Name"] + row["Connection_name"]; channel != "" {
			name += " of " + channel
		}
		r.r.Spaces = append(r.r.Spaces, Space{Kind: KindRelay, Name: name, Sum: Sum{bytes, bytes}})
	}
}

// elsewhere says what only those see who are on the server's machine.
func (r *reader) elsewhere() {
	what := "temporary files, text logs and the disk"
	if r.doublewriteFiles() {
		what = "the doublewrite buffer, " + what
	}
	why := "the server does not tell them, and its files are not on this machine"
	if r.o.Elsewhere != "" {
		why += " (" + r.o.Elsewhere + ")"
	}
	r.unknown(what, why, "run risso size there")
}

func (r *reader) doublewriteFiles() bool {
	return r.c.Server.DoublewriteFiles() && !strings.EqualFold(r.vars["innodb_doublewrite"], "OFF")
}

// local looks at files that the server does not tell of.
func (r *reader) local() {
	dir := r.c.Server.DataDir
	if r.doublewriteFiles() {
		in := r.path(r.vars["innodb_doublewrite_dir"])
		r.files(KindDoublewrite, "doublewrite files", []string{in}, "#ib_*.dblwr", "")
	}
	tmp := append(strings.Split(r.vars["tmpdir"], ":"), r.vars["innodb_tmpdir"])
	tmp = slices.DeleteFunc(tmp, func(d string) bool { return d == "" })
	slices.Sort(tmp)
	r.sharedHere("innodb_system", "innodb_data_file_path")
	r.sharedHere("innodb_temporary", "innodb_temp_data_file_path")
	r.leftOver()
	r.files(KindTemporary, "files in tmpdir", slices.Compact(tmp), "#sql*", "of those with a name; servers remove the names of most")
	for _, name := range []string{"log_error", "slow_query_log_file", "general_log_file"} {
		path := r.vars[name]
		if path == "" || path == "stderr" {
			continue
		}
		if st, err := os.Stat(r.path(path)); err == nil && st.Mode().IsRegular() {
			r.r.Spaces = append(r.r.Spaces, Space{Kind: KindLog, Name: filepath.Base(path), Sum: sumOf(st), Note: name})
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			r.unknown("the file of "+name, err.Error(), "")
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		r.unknown("the disk of the data directory", err.Error(), "")
		return
	}
	r.r.Disk = &Disk{Path: dir, Size: int64(fs.Blocks) * fs.Bsize, Left: int64(fs.Bavail) * fs.Bsize}
}

// path is a file of the server; names are below its data directory.
func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.c.Server.DataDir, name)
}

// files adds what matches a pattern in some folders.
func (r *reader) files(kind, name string, dirs []string, pattern, note string) {
	s := Space{Kind: kind, Name: name, Note: note}
	n := 0
	for _, dir := range dirs {
		list, err := os.ReadDir(dir)
		if err != nil {
			r.unknown(name+" in "+dir, err.Error(), "")
			return
		}
		for _, f := range list {
			if ok, err := filepath.Match(pattern, f.Name()); err != nil || !ok || f.IsDir() {
				continue
			}
			if st, err := f.Info(); err == nil { // it may be gone by now
				s.add(sumOf(st))
				n++
			}
		}
	}
	if n > 0 || note == "" {
		r.r.Spaces = append(r.r.Spaces, s)
	}
}

// sumOf is what a file takes. Blocks are of 512 bytes, whatever the file system's are: stat(2).
func sumOf(st os.FileInfo) Sum {
	s := Sum{st.Size(), st.Size()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		s.Allocated = sys.Blocks * 512
	}
	return s
}

// String is the box that a space is in, in words.
func (s Space) String() string { return fmt.Sprintf("%s: %s", s.Kind, s.Name) }
