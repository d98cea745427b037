package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/all"
	"github.com/rissodb/risso/internal/pattern"
)

var postgresForm = pattern.Lazy(`^postgres(-[0-9]+)?$`)

// Postgres reports whether a server is PostgreSQL.
func Postgres(server string) bool { return postgresForm().MatchString(server) }

// postgresLine begins start-up options of PostgreSQL, which others would refuse.
const postgresLine = "postgres."

// lines are the start-up options of a cell's server.
func (f *File) lines(server string, options Set) (out []string) {
	for _, line := range slices.Concat(f.Common, options.Lines) {
		if name, ok := strings.CutPrefix(line, postgresLine); ok == Postgres(server) {
			out = append(out, name)
		}
	}
	return out
}

// checkLines finds start-up options and storage engines that no server would take.
func (f *File) checkLines() error {
	postgres := slices.ContainsFunc(f.Servers, Postgres)
	other := slices.ContainsFunc(f.Servers, func(s string) bool { return !Postgres(s) })
	all := slices.Clone([]string(f.Common))
	for _, set := range f.Options {
		all = append(all, set.Lines...)
	}
	for _, line := range all {
		switch theirs := strings.HasPrefix(line, postgresLine); {
		case theirs && !postgres:
			return fmt.Errorf("options: %s is for PostgreSQL, which is not among the servers", line)
		case !theirs && !other:
			return fmt.Errorf("options: %s: write options of PostgreSQL with the prefix postgres., such as postgres.shared_buffers=256MB", line)
		}
	}
	if postgres && slices.ContainsFunc(f.Engines, func(e string) bool { return e != "" }) {
		return errors.New("engines: PostgreSQL has none; measure it without them, or leave it out")
	}
	return nil
}

// split cuts a workload's name: script:FILE and replay:FILE have a file.
func split(name string) (kind, file string) {
	kind, file, _ = strings.Cut(name, ":")
	return kind, file
}

// path is where a file that this one names lies.
func (f *File) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.dir, name)
}

// readFiles makes sums of the files that this one names, so that other contents are other runs.
func (f *File) readFiles() error {
	names := []string{f.Load}
	for _, w := range f.Workloads {
		kind, file := split(w)
		if has := kind == "script" || kind == "replay"; has && file == "" {
			return fmt.Errorf("workloads: write %s with its file, %s:FILE", kind, kind)
		} else if !has && file != "" {
			return fmt.Errorf("workloads: %s has no file", kind)
		}
		names = append(names, file)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		sum, err := sumOf(f.path(name))
		var p *fs.PathError
		if errors.As(err, &p) {
			return fmt.Errorf("%s: %w", p.Path, p.Err)
		} else if err != nil {
			return err
		}
		f.sums[name] = sum
	}
	return nil
}

// sumOf reads a file, which may be a dump of any size. Each server reads it again, so it may be no pipe.
func sumOf(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s: not a file that can be read twice", path))
	}
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Recordings are the paths of the recordings that have to be read before the matrix is run.
func (f *File) Recordings() (out []string) {
	for _, w := range f.Workloads {
		if kind, file := split(w); kind == "replay" {
			out = append(out, f.path(file))
		}
	}
	return out
}

// SetRecording hands a recording in. Errors wrap workload.ErrUsage.
func (f *File) SetRecording(path string, r *workload.Recording) error {
	f.recordings[path] = r
	for _, w := range f.Workloads {
		if _, file := split(w); f.path(file) == path {
			if err := f.checkWorkload(w); err != nil {
				return fmt.Errorf("%w: %w", workload.ErrUsage, err)
			}
		}
	}
	return nil
}

// checkWorkload tries a workload with all that varies.
func (f *File) checkWorkload(name string) error {
	for _, server := range f.Servers {
		for _, size := range f.TableSize {
			for _, engine := range f.Engines {
				p := f.params(name, dialectOf(server), size, engine, 1)
				if kind, _ := split(name); kind == "replay" && p.Recording == nil && p.Dialect == drive.MySQL {
					continue // it comes later
				}
				if _, err := f.workload(name, p); err != nil {
					return errors.New(strings.TrimPrefix(err.Error(), workload.ErrUsage.Error()+": "))
				}
			}
		}
	}
	return nil
}

func dialectOf(server string) drive.Dialect {
	if Postgres(server) {
		return drive.Postgres
	}
	return drive.MySQL
}

// workload makes one.
func (f *File) workload(name string, p workload.Params) (workload.Workload, error) {
	kind, _ := split(name)
	return all.New(kind, p)
}

// params are those of a workload.
func (f *File) params(name string, d drive.Dialect, size int, engine string, threads int) workload.Params {
	p := workload.Defaults()
	p.Tables, p.TableSize, p.Engine, p.Distribution, p.Warehouses, p.Scale, p.Clients = f.Tables, size, engine, f.Distribution, f.Warehouses, f.Scale, threads
	p.Dialect, p.ReplayMode, p.ReplaySpeed, p.ReplayWrites = d, "mix", 1, f.Writes
	if _, file := split(name); file != "" {
		p.File = f.path(file)
		p.Recording = f.recordings[p.File]
	}
	return p
}

// parameters are what a result of a cell records.
func (f *File) parameters(c Cell) map[string]any {
	kind, file := split(c.Workload)
	have := map[string]any{"tables": f.Tables, "table-size": c.TableSize, "distribution": f.Distribution, "scale": f.Scale, "file": file}
	out := map[string]any{}
	for _, name := range all.Size(kind) {
		if v, ok := have[name]; ok {
			out[strings.ReplaceAll(name, "-", "_")] = v
		}
	}
	return out
}

// database is where the tables of a workload are: each has its own, so that none finds another's.
func database(name string) string {
	kind, file := split(name)
	if file == "" {
		return "risso_bench_" + kind
	}
	h := sha256.Sum256([]byte(file))
	return "risso_bench_" + kind + "_" + hex.EncodeToString(h[:4])
}
