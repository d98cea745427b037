package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// fate is what became of a fault.
type fate int

const (
	untried fate = iota // somebody stopped it before
	killed
	hung      // the tests did not end in time
	survived  // they passed
	unreached // no test comes there
	same      // listed as equivalent
)

// fault is one small change of the code.
type fault struct {
	id     int
	at     token.Position
	change string // "< → <="
	line   string // of the source, trimmed
	edits  []edit
	fate   fate
}

// key is how equivalent.txt names a fault.
func (f *fault) key() string { return filepath.Base(f.at.Filename) + "\t" + f.change + "\t" + f.line }

// edit replaces a piece of a file. What opens and what closes at one place is put in by nesting.
type edit struct {
	from, to int
	opens    bool
	depth    int
	text     string
}

// room is a package with its faults.
type room struct {
	dir, name string
	fset      *token.FileSet
	sources   map[string][]byte
	info      *types.Info
	pkg       *types.Package
	faults    []*fault
	file      *ast.File // being read
	depth     int
	unseen    map[ast.Expr]bool // what is skipped
}

// load reads a package and thinks of its faults.
func load(dir string, only []string) (*room, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export,GoFiles,DepOnly", "./"+dir).Output()
	if err != nil {
		return nil, fmt.Errorf("no such room as %s: %w", dir, err)
	}
	exports := map[string]string{}
	r := &room{dir: dir, fset: token.NewFileSet(), sources: map[string][]byte{}, unseen: map[ast.Expr]bool{}}
	var names []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name, Export string
			GoFiles                  []string
			DepOnly                  bool
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			r.name, names = p.Name, p.GoFiles
		}
	}
	var files []*ast.File
	for _, name := range names {
		path := filepath.Join(dir, name)
		if r.sources[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(r.fset, path, r.sources[path], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(r.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	r.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if r.pkg, err = conf.Check(dir, r.fset, files, r.info); err != nil {
		return nil, err
	}
	for _, f := range files {
		if name := filepath.Base(r.fset.Position(f.Pos()).Filename); len(only) == 0 || slices.Contains(only, name) {
			r.file = f
			ast.Walk(visitor{r}, f)
		}
	}
	return r, nil
}

// write writes the files with their faults, and the overlay that replaces the room's with them.
func (r *room) write(scratch string) (string, error) {
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		path, err := filepath.Abs(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		replace[path] = filepath.Join(scratch, name)
		return os.WriteFile(replace[path], text, 0o600)
	}
	for path, text := range r.sources {
		var edits []edit
		for _, f := range r.faults {
			if f.at.Filename == path {
				edits = append(edits, f.edits...)
			}
		}
		slices.SortStableFunc(edits, func(a, b edit) int {
			switch {
			case a.from != b.from:
				return a.from - b.from
			case a.opens != b.opens: // what ends here goes before what begins here
				if b.opens {
					return -1
				}
				return 1
			case a.opens:
				return a.depth - b.depth
			}
			return b.depth - a.depth
		})
		var out []byte
		at := 0
		for _, e := range edits {
			out = append(append(out, text[at:e.from]...), e.text...)
			at = e.to
		}
		if err := put(filepath.Base(path), append(out, text[at:]...)); err != nil {
			return "", err
		}
	}
	last := 0
	if n := len(r.faults); n > 0 {
		last = r.faults[n-1].id
	}
	hits := fmt.Sprintf("\nvar mutantHits [%d]atomic.Bool // by number\n", last+1)
	if err := put("mutants_switches.go", []byte("package "+r.name+"\n"+switches+hits)); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// add notes a fault at a place, and returns its number.
func (r *room) add(at token.Pos, change string) *fault {
	p := r.fset.Position(at)
	line := strings.Split(string(r.sources[p.Filename]), "\n")[p.Line-1]
	f := &fault{id: len(r.faults) + 1, at: p, change: change, line: strings.TrimSpace(line)}
	r.faults = append(r.faults, f)
	return f
}

// wrap puts text before and after a node. Of two wraps of one node the later one is inside.
func (r *room) wrap(f *fault, n ast.Node, before, behind string) {
	r.depth++
	from, to := r.fset.Position(n.Pos()).Offset, r.fset.Position(n.End()).Offset
	f.edits = append(f.edits, edit{from, from, true, r.depth, before}, edit{to, to, false, r.depth, behind})
}

// replace puts other text in place of an operator or a name.
func (r *room) replace(f *fault, at token.Pos, old, text string) {
	from := r.fset.Position(at).Offset
	f.edits = append(f.edits, edit{from, from + len(old), true, 1 << 30, text})
}

// visitor thinks of faults from the outside of an expression to its inside.
type visitor struct{ *room }

func (v visitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.GenDecl:
		if n.Tok != token.VAR {
			return nil // a constant is faulty where it is used
		}
	case *ast.ArrayType:
		return nil
	case *ast.ReturnStmt:
		v.failure(n)
	case *ast.BlockStmt:
		v.statements(n.List)
	case *ast.CaseClause:
		v.statements(n.Body)
	case *ast.CompositeLit:
		return v.composite(n)
	case *ast.AssignStmt:
		if (n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN) && v.is(n.Rhs[0], types.IsNumeric) {
			f := v.add(n.TokPos, map[token.Token]string{token.ADD_ASSIGN: "+= → -=", token.SUB_ASSIGN: "-= → +="}[n.Tok])
			v.wrap(f, n.Rhs[0], fmt.Sprintf("mutantNegate(%d, ", f.id), ")")
		}
	case ast.Expr:
		if v.unseen[n] {
			return nil
		}
		if v.info.Types[n].Value != nil {
			v.constant(n)
			return nil
		}
		v.expression(n)
	}
	return v
}

// composite skips what has to be constant: the indexes of an array's elements.
func (v visitor) composite(n *ast.CompositeLit) ast.Visitor {
	switch v.info.Types[n].Type.Underlying().(type) {
	case *types.Array, *types.Slice:
	default:
		return v
	}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		ast.Walk(v, e)
	}
	return nil
}

// failure skips a number that is returned together with an error, or with a false: it is not used.
func (v visitor) failure(n *ast.ReturnStmt) {
	if len(n.Results) < 2 {
		return
	}
	switch last := types.ExprString(n.Results[len(n.Results)-1]); {
	case last == "false", last == "err", strings.HasPrefix(last, "fmt.Errorf("), strings.HasPrefix(last, "errors."):
		for _, e := range n.Results[:len(n.Results)-1] {
			if v.info.Types[e].Value != nil {
				v.unseen[e] = true
			}
		}
	}
}

// statements leaves one out at a time: calls, assignments, and what goes on with a loop or leaves it.
func (v visitor) statements(list []ast.Stmt) {
	for _, s := range list {
		change := "left out"
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok {
				continue
			}
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s.Lhs) {
				continue
			}
		case *ast.IncDecStmt:
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE && s.Tok != token.BREAK {
				continue
			}
		default:
			continue
		}
		f := v.add(s.Pos(), change)
		v.wrap(f, s, fmt.Sprintf("if !mutant(%d) { ", f.id), " }")
	}
}

func blank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return !ok || id.Name != "_" })
}

func (v visitor) is(e ast.Expr, info types.BasicInfo) bool {
	t := v.info.Types[e].Type
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0 && b.Info()&types.IsComplex == 0
}

func (v visitor) expression(n ast.Expr) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		v.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.SUB {
			f := v.add(n.Pos(), "-x → x")
			v.wrap(f, n, fmt.Sprintf("mutantNegate(%d, ", f.id), ")")
		}
		if n.Op == token.NOT {
			f := v.add(n.Pos(), "!x → x")
			v.wrap(f, n, "(", fmt.Sprintf(" != mutant(%d))", f.id))
		}
	case *ast.CallExpr:
		v.call(n)
	}
}

func (v visitor) binary(n *ast.BinaryExpr) {
	op := n.Op.String()
	turned := map[token.Token]string{token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">", token.EQL: "!=", token.NEQ: "==", token.LAND: "||", token.LOR: "&&",
		token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*", token.AND: "|", token.OR: "&", token.SHL: ">>", token.SHR: "<<"}[n.Op]
	switch n.Op {
	case token.EQL, token.NEQ:
		f := v.add(n.OpPos, op+" → "+turned)
		v.wrap(f, n, "((", fmt.Sprintf(") != mutant(%d))", f.id))
	case token.LAND, token.LOR: // by De Morgan: X || Y is !(!X && !Y)
		f := v.add(n.OpPos, op+" → "+turned)
		m := fmt.Sprintf(" != mutant(%d)", f.id)
		v.wrap(f, n, "((", ")"+m+")"+m)
		f.edits[0].text = "((("
		f.edits[1].text = ")" + m + ")" + m + ")"
		v.replace(f, n.OpPos, op, ")"+m+" "+op+" (")
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		equal := map[token.Token]string{token.LSS: "<=", token.GEQ: ">", token.GTR: ">=", token.LEQ: "<"}[n.Op]
		f := v.add(n.OpPos, op+" → "+equal)
		g := v.add(n.OpPos, op+" → "+turned)
		v.wrap(f, n, fmt.Sprintf("mutantOrder(%d, %d, %q, ", f.id, g.id, op), ")")
		v.replace(f, n.OpPos, op, ",")
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM, token.AND, token.OR, token.SHL, token.SHR:
		if !v.is(n, types.IsNumeric) {
			return
		}
		helper := "mutantCount"
		switch n.Op {
		case token.REM, token.AND, token.OR:
			helper = "mutantBits"
		case token.SHL, token.SHR:
			helper = "mutantShift"
		}
		f := v.add(n.OpPos, op+" → "+turned)
		v.wrap(f, n, fmt.Sprintf("%s(%d, %q, ", helper, f.id, op), ")")
		v.replace(f, n.OpPos, op, ",")
	}
}

// call turns the order of a comparison, and takes min for max.
func (v visitor) call(n *ast.CallExpr) {
	name := types.ExprString(n.Fun)
	switch name {
	case "min", "max":
		f := v.add(n.Pos(), map[string]string{"min": "min → max", "max": "max → min"}[name])
		v.replace(f, n.Fun.Pos(), name, map[string]string{"min": "mutantMin", "max": "mutantMax"}[name])
		from := v.fset.Position(n.Lparen).Offset + 1
		f.edits = append(f.edits, edit{from, from, true, 0, fmt.Sprintf("%d, ", f.id)})
	case "cmp.Compare", "strings.Compare", "bytes.Compare":
		f := v.add(n.Pos(), "a, b → b, a")
		v.wrap(f, n, fmt.Sprintf("mutantNegate(%d, ", f.id), ")")
	}
}

// constant makes a number one more or twice as large, and turns a bool.
func (v visitor) constant(n ast.Expr) {
	tv := v.info.Types[n]
	b, ok := tv.Type.Underlying().(*types.Basic)
	if !ok {
		return
	}
	text := types.ExprString(n)
	if b.Info()&types.IsBoolean != 0 {
		f := v.add(n.Pos(), text+" → !"+text)
		v.wrap(f, n, "(", fmt.Sprintf(" != mutant(%d))", f.id))
		return
	}
	kind, ok := v.typeName(tv.Type)
	if !ok || !v.is(n, types.IsNumeric) {
		return
	}
	size, _ := constant.Float64Val(constant.ToFloat(tv.Value))
	span := kind == "time.Duration" || kind == "Duration"
	whole := b.Info()&types.IsInteger != 0 && !span // a nanosecond more is no fault
	wrap := func(helper, change string) {
		f := v.add(n.Pos(), text+" → "+change)
		v.wrap(f, n, helper+"["+kind+"]("+strconv.Itoa(f.id)+", ", ")")
	}
	if whole || size == 0 && !span {
		wrap("mutantNext", text+" + 1")
	}
	if size != 0 && (!whole || size >= 10) && b.Kind() != types.Int32 { // a rune has no double
		wrap("mutantTwice", "2 × "+text)
	}
}

// typeName is how a type is written in the file that is being read.
func (v visitor) typeName(t types.Type) (string, bool) {
	ok := true
	name := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == v.pkg {
			return ""
		}
		for _, imp := range v.file.Imports {
			if path, _ := strconv.Unquote(imp.Path.Value); path == p.Path() {
				if imp.Name != nil {
					return imp.Name.Name
				}
				return p.Name()
			}
		}
		ok = false
		return ""
	})
	return name, ok
}
