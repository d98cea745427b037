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
			b, err := os.ReadFile(f)
			if errors.Is(err, os.ErrNotExist) {
				return s, fmt.Errorf("%w: %s: no such file", workload.ErrUsage, f)
			}
			if err != nil {
				return s, fmt.Errorf("read results: %w", err)
			}
			runs, err := ParseRuns(b)
			if err != nil {
				return s, fmt.Errorf("%w: %s: %w", workload.ErrUsage, f, err)
			}
			s.Runs = append(s.Runs, runs...)
		}
	}
	if len(s.Runs) == 0 {
		return s, fmt.Errorf("%w: %s holds no runs", workload.ErrUsage, paths)
	}
	return s, nil
}

// errNoRun is JSON that is something else.
var errNoRun = errors.New("no results of risso bench run --output json")

// ParseRuns reads runs as ReadSide does.
func ParseRuns(b []byte) ([]Run, error) {
	var out []Run
	dec := json.NewDecoder(bytes.NewReader(b))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errNoRun
		}
		runs, err := parseValue(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, runs...)
	}
	if len(out) == 0 {
		return nil, errNoRun
	}
	return out, nil
}

func parseValue(raw json.RawMessage) ([]Run, error) {
	if bytes.HasPrefix(raw, []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, errNoRun
		}
		var out []Run
		for _, e := range list {
			runs, err := parseValue(e)
			if err != nil {
				return nil, err
			}
			out = append(out, runs...)
		}
		return out, nil
	}
	var head struct {
		Runs       json.RawMessage `json:"runs"`
		Throughput *float64        `json:"transactions_per_second"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, errNoRun
	}
	if head.Throughput == nil {
		if len(head.Runs) > 0 {
			return parseValue(head.Runs)
		}
		return nil, errNoRun
	}
	var r Run
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("not a result: %w", err)
	}
	return []Run{r}, nil
}
