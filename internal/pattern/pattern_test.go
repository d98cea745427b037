package pattern

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestAllCompile compiles every expression that Risso's source passes to Lazy.
func TestAllCompile(t *testing.T) {
	n := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(x ast.Node) bool {
			call, ok := x.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fun, ok := call.Fun.(*ast.SelectorExpr); !ok || fun.Sel.Name != "Lazy" {
				return true
			}
			text, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: an expression that is no literal", files.Position(call.Pos()))
				return true
			}
			expr, err := strconv.Unquote(text.Value)
			if err == nil {
				_, err = regexp.Compile(expr)
			}
			if err != nil {
				t.Errorf("%s: %v", files.Position(call.Pos()), err)
			}
			n++
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 50 {
		t.Errorf("only %d expressions were found, want at least 50", n)
	}
}

func TestStars(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"shop.*", "shop.orders", true}, {"shop.*", "shops.orders", false}, {"*", "", true}, {"a*b*c", "aXbYbc", true}, {"a*b", "ab", true}, {"a*b", "aba", false}, {"x", "x", true}, {"x", "xx", false},
		{"", "", true}, {"", "x", false}, {"a*a", "a", false}, {"*ab*", "aab", true}, {"a/*", "a/b/c", true}, {"?[a]*", "?[a]x", true}, {"?", "x", false}, {`\*`, `\x`, true},
		{strings.Repeat("a*", 1000) + "b", strings.Repeat("a", 5000), false},
	} {
		if Stars(c.pattern, c.name) != c.want {
			t.Errorf("%.20q for %.20q is %v, want Stars(c.pattern, c.name) %v", c.pattern, c.name, !c.want, c.want)
		}
	}
}
