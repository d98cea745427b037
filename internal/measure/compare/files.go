package compare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
)

// ReadSide reads runs from files: JSON of one run, of many one after another or in a list, or with a list "runs"; a folder
// stands for all *.json in it, and several paths are parted by commas. Errors of files that hold no runs wrap
// workload.ErrUsage.
func ReadSide(name, paths string) (Side, error) {
	s := Side{Name: name, What: paths}
	for path := range strings.SplitSeq(paths, ",") {
		files := []string{path}
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
				return s, err
			}
			slices.Sort(files)
		}
		for _, f := range files {
			in, err := os.Open(f)
			if errors.Is(err, os.ErrNotExist) {
				return s, fmt.Errorf("%w: %s: no such file", workload.ErrUsage, f)
			}
			if err != nil {
				return s, fmt.Errorf("read results: %w", err)
			}
			runs, err := bench.Read(in)
			in.Close()
			if err != nil {
				return s, fmt.Errorf("%w: %s: %w", workload.ErrUsage, f, err)
			}
			for _, r := range runs {
				s.Runs = append(s.Runs, r.Result)
			}
		}
	}
	if len(s.Runs) == 0 {
		return s, fmt.Errorf("%w: %s holds no runs", workload.ErrUsage, paths)
	}
	return s, nil
}
