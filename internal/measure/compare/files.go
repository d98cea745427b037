package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/rivals"
	"github.com/rissodb/risso/internal/measure/workload"
)

// ReadSide reads runs from files: JSON of one run, of many one after another or in a list, or with a list "runs", or what sysbench, pgbench
// and others print (package rivals); a folder means all *.json in it, and several paths are separated by commas. Errors of files that hold
// no runs wrap workload.ErrUsage.
func ReadSide(name, paths string) (Side, error) {
	s := Side{Name: name, What: paths}
	parts := strings.Split(paths, ",")
	if _, err := os.Stat(paths); err == nil {
		parts = []string{paths} // its name has a comma
	}
	for _, path := range parts {
		files := []string{path}
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			if files, err = resultsIn(path); err != nil {
				return s, err
			}
		}
		for _, f := range files {
			runs, err := readFile(f)
			if err != nil {
				return s, err
			}
			s.Runs = append(s.Runs, runs...)
		}
	}
	if len(s.Runs) == 0 {
		return s, fmt.Errorf("%w: %s holds no runs", workload.ErrUsage, paths)
	}
	return s, nil
}

// resultsIn returns the *.json of a folder, by name.
func resultsIn(dir string) (files []string, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if filepath.Ext(e.Name()) == ".json" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// largestFile is how much of one file is read: a day with a line each second takes less.
const largestFile = 64 << 20

// readFile reads results of Risso, or of another program.
func readFile(path string) ([]*bench.Result, error) {
	in, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: no such file", workload.ErrUsage, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, largestFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read results: %w", err)
	case len(b) > largestFile:
		return nil, fmt.Errorf("%w: %s is larger than %s", workload.ErrUsage, path, digits.Bytes(largestFile))
	}
	if t := bytes.TrimSpace(b); len(t) > 0 && !bytes.ContainsAny(t[:1], "{[") {
		runs, err := rivals.Read(string(b))
		if errors.Is(err, rivals.ErrUnknown) {
			return nil, fmt.Errorf("%w: %s: %w, and %w", workload.ErrUsage, path, bench.ErrNoResult, err)
		} else if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", workload.ErrUsage, path, err)
		}
		if st, err := in.Stat(); err == nil {
			for i, r := range runs {
				r.Began = st.ModTime().Add(time.Duration(i)) // they do not say it, and two of them may have the same figures
			}
		}
		return runs, nil
	}
	named, err := bench.Read(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", workload.ErrUsage, path, err)
	}
	var out []*bench.Result
	for _, r := range named {
		out = append(out, r.Result)
	}
	return out, nil
}

// ErrTwice is a run that is on both sides of a comparison, or twice on one.
var ErrTwice = errors.New("one and the same run")

// eachOnce refuses a run that is there twice, on both sides or on one: it says nothing more the second time.
func eachOnce(a, b Side) error {
	seen := map[string]string{} // a run as text, and the side that it is of
	for _, side := range []Side{a, b} {
		for _, r := range side.Runs {
			text, err := json.Marshal(r)
			if err != nil {
				return fmt.Errorf("write a result as JSON: %w", err)
			}
			first, twice := seen[string(text)]
			switch {
			case twice && first != side.Name:
				return fmt.Errorf("%w: %w (%s) is on both sides: give each side its own results", workload.ErrUsage, ErrTwice, begun(r))
			case twice:
				return fmt.Errorf("%w: %w (%s) is given twice as a run of %s: give each result once", workload.ErrUsage, ErrTwice, begun(r), side.Name)
			}
			seen[string(text)] = side.Name
		}
	}
	return nil
}

// begun names a run by when it began.
func begun(r *bench.Result) string {
	if r.Began.IsZero() {
		return r.Workload + ", without a time"
	}
	return r.Workload + ", began " + r.Began.UTC().Format(time.DateTime) + " UTC"
}

// Comparable refuses sides that hold a run twice, and sides that did different work: a transaction of one is then no transaction of the other, and no rate or
// latency of them compares. Errors wrap workload.ErrUsage.
func Comparable(a, b Side) error {
	if err := eachOnce(a, b); err != nil {
		return err
	}
	var names []string
	for _, r := range slices.Concat(a.Runs, b.Runs) {
		if r.Workload != bench.UnknownWorkload && !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
	}
	if len(names) > 1 {
		return fmt.Errorf("%w: A ran %s, B %s: their transactions differ, so neither rates nor latencies are comparable; risso bench report shows both",
			workload.ErrUsage, valuesOf(a.Runs, workloadOf), valuesOf(b.Runs, workloadOf))
	}
	x, y := statements(a.Runs), statements(b.Runs)
	if x > 0 && y > 0 && (x > y*differentWork || y > x*differentWork) {
		return fmt.Errorf("%w: a transaction of A has %s statements, one of B %s: neither rates nor latencies are comparable; risso bench report shows both",
			workload.ErrUsage, digits.Count(x), digits.Count(y))
	}
	return nil
}

// differentWork is by how much the statements of a transaction may differ: retries and mixed transactions make some.
const differentWork = 1.5

func workloadOf(r *bench.Result) string { return r.Workload }

// statements is how many of them a transaction had; 0: unknown.
func statements(runs []*bench.Result) float64 {
	var queries, transactions int64
	for _, r := range runs {
		queries, transactions = queries+r.Queries, transactions+r.Transactions
	}
	if queries == 0 || transactions == 0 {
		return 0
	}
	return float64(queries) / float64(transactions)
}
