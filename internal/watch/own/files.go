// Package own evaluates the user's own rules, which stand in Prometheus' rule files, with Prometheus' own package.
package own

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

// File is a rule file that was read.
type File struct {
	Path   string
	Groups []rulefmt.RuleGroup
}

// Problems are what is wrong in rule files, one in a line, each with its file and, where the reader knows it, with line and column.
type Problems []string

// Error implements error.
func (p Problems) Error() string { return strings.Join(p, "; ") }

// Find lists the files that patterns name. A pattern without * or the like names a file that must be there.
func Find(patterns []string) ([]string, error) {
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("rules: %q: %w", p, err)
		}
		if len(found) == 0 && !strings.ContainsAny(p, `*?[\`) {
			if _, err := os.Stat(p); err != nil {
				return nil, fmt.Errorf("rules: %w", err)
			}
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Read reads rule files. What is wrong in any of them is returned together, as Problems.
func Read(files []string) ([]File, error) {
	out := make([]File, 0, len(files))
	var wrong Problems
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			wrong = append(wrong, problem(path, err))
			continue
		}
		groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, newParser(), promslog.NewNopLogger())
		for _, err := range errs {
			wrong = append(wrong, problem(path, err))
		}
		if d := yaml.NewDecoder(bytes.NewReader(text)); d.Decode(new(yaml.Node)) == nil && !errors.Is(d.Decode(new(yaml.Node)), io.EOF) {
			wrong = append(wrong, path+": there is content after a line of ---, which would not be read")
		}
		if groups == nil {
			continue
		}
		for _, g := range groups.Groups {
			if d := time.Duration(g.Interval); d%time.Second != 0 {
				wrong = append(wrong, fmt.Sprintf("%s: group %q: interval %s: Risso evaluates by whole seconds", path, g.Name, d))
			}
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Record == "up" {
					wrong = append(wrong, fmt.Sprintf("%s: group %q: record: up: Risso itself makes that series", path, g.Name))
				}
			}
		}
		out = append(out, File{Path: path, Groups: groups.Groups})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

// problem is one error of a file, in one line that begins with its path.
func problem(path string, err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return path + ": " + pe.Err.Error()
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), path+": "), "yaml: ")
	text = strings.Join(strings.Fields(text), " ")
	if rest, ok := strings.CutPrefix(text, "line "); ok { // of the YAML reader; as the others have it
		text = rest
	}
	text = strings.TrimPrefix(text, "unmarshal errors: line ")
	sep := ": "
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		sep = ":"
	}
	return path + sep + text
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }
