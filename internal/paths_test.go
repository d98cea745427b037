package internal_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	repoPath = regexp.MustCompile(`^(cmd|docs|internal|script|tests|ui)(/[\w.-]+)*$`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInID  = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
	shown    = regexp.MustCompile("git show ([0-9a-f]{7,})`")
)

// TestNamedPaths: every path that a page of this repository names in backquotes is there, every link between the pages leads
// somewhere, and the commits that CONTRIBUTING.md names exist. The change log is left out: it tells of the past.
func TestNamedPaths(t *testing.T) {
	paths, links, ids := 0, 0, map[string][]string{}
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			if !repoPath.MatchString(m[1]) || strings.Contains(m[1], "/dist") {
				continue
			}
			paths++
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, id, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			links++
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, m[1])
			} else if id != "" && !slices.Contains(headings(t, path, ids), id) {
				t.Errorf("%s links to %s, and no heading there has that name", file, m[1])
			}
		}
	}
	if paths < 40 || links < 80 {
		t.Errorf("only %d paths and %d links were found; want paths at least 40, links at least 80", paths, links)
	}
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("git", "cat-file", "-e", "HEAD~200").Run(); err != nil {
		t.Skipf("no git or no history here: %v", err)
	}
	commits := shown.FindAllStringSubmatch(string(text), -1)
	if len(commits) < 6 {
		t.Errorf("CONTRIBUTING.md names %d commits, want at least 6", len(commits))
	}
	for _, m := range commits {
		if err := exec.Command("git", "cat-file", "-e", m[1]+"^{commit}").Run(); err != nil {
			t.Errorf("CONTRIBUTING.md names the commit %s, which does not exist", m[1])
		}
	}
}

// pages are the Markdown files that people read, relative to this folder.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"../README.md", "../CONTRIBUTING.md"}
	for _, root := range []string{"../docs", "../ui", "."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "dist") {
				return filepath.SkipDir
			}
			if strings.HasSuffix(path, ".md") {
				list = append(list, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// headings are the names by which links reach the headings of a page.
func headings(t *testing.T, path string, known map[string][]string) []string {
	t.Helper()
	if ids, ok := known[path]; ok {
		return ids
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		ids = append(ids, strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	known[path] = ids
	return ids
}

// TestRoomsListed: every package below internal has its row in README.md, and every row its package.
func TestRoomsListed(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = true
	}
	seen := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if dir := filepath.Dir(path); err == nil && dir != "." && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !seen[dir] {
			seen[dir] = true
			if !rows[dir] {
				t.Errorf("%s has no row in internal/README.md", dir)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range rows {
		if !seen[room] {
			t.Errorf("internal/README.md has a row for %s, which is no package", room)
		}
	}
}
