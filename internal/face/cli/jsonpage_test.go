package cli

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
)

// schema is a JSON Schema (2020-12), as far as Go types need it.
type schema struct {
	Version     string             `json:"$schema,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"` // a name, or several
	Format      string             `json:"format,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Closed      *bool              `json:"additionalProperties,omitempty"`
	Values      *schema            `json:"-"`
	Items       *schema            `json:"items,omitempty"`
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	Defs        map[string]*schema `json:"$defs,omitempty"`

	order []string // of the properties, as the type has them
}

// MarshalJSON writes the schema of a map's values where JSON Schema has the ban on further properties.
func (s *schema) MarshalJSON() ([]byte, error) {
	type plain schema
	if s.Values == nil {
		return json.Marshal((*plain)(s))
	}
	return json.Marshal(struct {
		*plain
		Closed *schema `json:"additionalProperties"`
	}{(*plain)(s), s.Values})
}

// reflector makes schemas of Go types and takes what they say from the comments in their sources.
type reflector struct {
	t    *testing.T
	defs map[string]*schema
	docs map[string]map[string]string // by package: "Type" and "Type.Field" → comment

	words map[string]string // what fields without a comment say
}

func newReflector(t *testing.T) *reflector {
	t.Helper()
	r := &reflector{t: t, defs: map[string]*schema{}, docs: map[string]map[string]string{}, words: map[string]string{}}
	text, err := os.ReadFile("testdata/jsonwords.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		name, meaning, ok := strings.Cut(line, ": ")
		if !ok || r.words[name] != "" {
			t.Fatalf("testdata/jsonwords.txt: got %q; want ok true, r.words[name] \"\"", line)
		}
		r.words[name] = meaning
	}
	return r
}

const modulePath = "github.com/rissodb/risso/"

// commentsOf reads the comments of a package's types and fields.
func (r *reflector) commentsOf(pkg string) map[string]string {
	if known, ok := r.docs[pkg]; ok {
		return known
	}
	out := map[string]string{}
	r.docs[pkg] = out
	rel, ours := strings.CutPrefix(pkg, modulePath)
	if !ours {
		return out
	}
	files, err := filepath.Glob(filepath.Join("../../..", rel, "*.go"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("no sources of %s: %v", pkg, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			r.t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				return true
			}
			for _, s := range d.Specs {
				spec := s.(*ast.TypeSpec)
				doc := spec.Doc
				if doc == nil {
					doc = d.Doc
				}
				out[spec.Name.Name] = sentence(doc)
				if st, ok := spec.Type.(*ast.StructType); ok {
					fieldComments(out, spec.Name.Name, st)
				}
			}
			return true
		})
	}
	return out
}

func fieldComments(out map[string]string, name string, st *ast.StructType) {
	for _, f := range st.Fields.List {
		text := sentence(f.Comment)
		if text == "" {
			text = sentence(f.Doc)
		}
		for _, n := range f.Names {
			out[name+"."+n.Name] = text
		}
		inner := f.Type
		for {
			if a, ok := inner.(*ast.ArrayType); ok {
				inner = a.Elt
			} else if p, ok := inner.(*ast.StarExpr); ok {
				inner = p.X
			} else {
				break
			}
		}
		if s, ok := inner.(*ast.StructType); ok && len(f.Names) == 1 {
			fieldComments(out, name+"."+f.Names[0].Name, s)
		}
	}
}

func sentence(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	return strings.Join(strings.Fields(g.Text()), " ")
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
)

// of is the schema of a type.
func (r *reflector) of(t reflect.Type, where string) *schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[time.Duration]():
		return &schema{Type: "integer", Description: "nanoseconds"}
	case t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface:
		return &schema{}
	case t.Kind() == reflect.Pointer:
		return r.of(t.Elem(), where)
	case t.Implements(jsonMarshaler) && t.Kind() == reflect.Float64:
		return &schema{Type: []string{"number", "null"}}
	case t.Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler):
		return r.written(t, where)
	case t.Implements(textMarshaler):
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &schema{Type: "string", Description: "base64"}
		}
		items := r.of(t.Elem(), where+"[]")
		if name, basic := items.Type.(string); basic && t.Elem().Kind() == reflect.Pointer {
			items.Type = []string{name, "null"}
		}
		return &schema{Type: "array", Items: items}
	case reflect.Map:
		return &schema{Type: "object", Values: r.of(t.Elem(), where+"{}")}
	case reflect.Struct:
		return r.object(t, where)
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return &schema{Type: "integer"}
	}
	r.t.Errorf("%s: %v has no form in JSON", where, t)
	return &schema{}
}

// written are types that write themselves.
func (r *reflector) written(t reflect.Type, where string) *schema {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Float64 {
		return &schema{Type: "array", Items: &schema{Type: []string{"number", "null"}}}
	}
	r.t.Errorf("%s: %v writes itself in a form that nobody told here", where, t)
	return &schema{}
}

// meaning is what a field says: its comment, that of its type, or what fields of that name say everywhere.
func (r *reflector) meaning(where, name, field, pkg string, t reflect.Type) string {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, text := range []string{r.commentsOf(pkg)[field], r.words[where+"."+name], r.commentsOf(t.PkgPath())[t.Name()], r.words[name]} {
		if text != "" {
			return text
		}
	}
	r.t.Errorf("%s.%s (%v) has no meaning: give it a comment, or a line in testdata/jsonwords.txt", where, name, t)
	return "?"
}

func (r *reflector) object(t reflect.Type, where string) *schema {
	name := t.Name()
	if name == "" {
		return r.fields(t, where, where)
	}
	short := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:] + "." + name
	if short == "cli."+name {
		short = name
	}
	if _, ok := r.defs[short]; !ok {
		r.defs[short] = nil // it may hold itself
		s := r.fields(t, short, name)
		s.Description = r.commentsOf(t.PkgPath())[name]
		r.defs[short] = s
	}
	return &schema{Ref: "#/$defs/" + short}
}

func (r *reflector) fields(t reflect.Type, where, doc string) *schema {
	closed := false
	s := &schema{Type: "object", Properties: map[string]*schema{}, Closed: &closed}
	r.into(s, t, where, doc)
	return s
}

func (r *reflector) into(s *schema, t reflect.Type, where, doc string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && tag == "" && inner.Kind() == reflect.Struct:
			had := len(s.Required)
			r.into(s, inner, where, inner.Name())
			if f.Type.Kind() == reflect.Pointer { // all of it may be missing
				s.Required = s.Required[:had]
			}
			continue
		}
		name := tag
		if name == "" {
			name = f.Name
			r.t.Errorf("%s.%s has no name for JSON", where, f.Name)
		}
		one := r.of(f.Type, where+"."+name)
		one.Description = strings.TrimPrefix(one.Description+"; "+r.meaning(where, name, doc+"."+f.Name, t.PkgPath(), inner), "; ")
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
			if f.Type.Kind() == reflect.Pointer {
				one = &schema{AnyOf: []*schema{one, {Type: "null"}}, Description: one.Description}
			}
		}
		if s.Properties[name] == nil {
			s.order = append(s.order, name)
		}
		s.Properties[name] = one
	}
}

// document is the schema of all answers, by command.
func document(t *testing.T) *schema {
	t.Helper()
	r := newReflector(t)
	all := &schema{Version: "https://json-schema.org/draft/2020-12/schema", Description: "What the commands of risso write with -o json"}
	for _, a := range answers() {
		one := r.of(a.of, a.command)
		r.defs[a.name()] = one
		all.order = append(all.order, a.name())
	}
	all.Defs = r.defs
	return all
}

// name is what the answer is called in the schema.
func (a answer) name() string { return strings.TrimSpace("risso " + a.command + " " + a.when) }

// TestJSONPage holds docs/json.md and docs/json.schema.json against the types that commands encode: they are made from those,
// with RISSO_WRITE=1. No command that takes -o json is left out, and no field is without a meaning.
func TestJSONPage(t *testing.T) {
	all := document(t)
	told := map[string]bool{}
	for _, a := range answers() {
		told["risso "+a.command] = true
	}
	every(newRoot(screen.Streams{}), func(cmd *cobra.Command) {
		f := cmd.Flags().Lookup("output")
		if f == nil {
			f = cmd.InheritedFlags().Lookup("output")
		}
		v, ok := (*flags.Output)(nil), false
		if f != nil {
			v, ok = f.Value.(*flags.Output)
		}
		writes := ok && cmd.Runnable() && !cmd.HasSubCommands() && slices.Contains(v.Forms, "json")
		writes = writes || ok && slices.Contains([]string{"risso backup", "risso check", "risso advise", "risso accounts", "risso galera", "risso topology", "risso failover", "risso receipt", "risso chaos"}, cmd.CommandPath())
		if writes != told[cmd.CommandPath()] {
			t.Errorf("%s takes -o json: %t; it is on the page: %t; want told[cmd.CommandPath()]", cmd.CommandPath(), writes, told[cmd.CommandPath()])
		}
	})
	var schemaText bytes.Buffer
	e := json.NewEncoder(&schemaText)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"json.md": page(all), "json.schema.json": schemaText.String()} {
		path := filepath.Join("../../../docs", name)
		if os.Getenv("RISSO_WRITE") != "" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("docs/%s is not what the types say (%v): make it anew with RISSO_WRITE=1 go test ./internal/face/cli -run TestJSONPage; want string(got) %v",
				name, err, want)
		}
	}
}

// page writes the schemas for people.
func page(all *schema) string {
	var b strings.Builder
	b.WriteString(`# JSON of every command
What commands write with ` + "`-o json`" + `, on standard output; messages and progress go to standard error, exit codes are those of
[the command line](commands.md#exit-codes). Fields are added in later versions; existing fields keep their name, type and unit.
A field with a ? may be absent, null means unknown or none, lists are never null. Times are RFC 3339, in UTC unless they carry a zone.
A command that fails may write nothing: check the exit code first. The same as JSON Schema: [json.schema.json](json.schema.json).
This page is generated from the types that the commands write; a test runs each command and checks its output against them.

| command | with | writes |
|---|---|---|
`)
	for _, a := range answers() {
		fmt.Fprintf(&b, "| `risso %s` | %s | %s |\n", a.command, flagWords(a.when), link(all.Defs[a.name()]))
	}
	for _, name := range slices.Sorted(maps.Keys(all.Defs)) {
		s := all.Defs[name]
		if strings.HasPrefix(name, "risso ") {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n%s\n\n| field | type | meaning |\n|---|---|---|\n", name, s.Description)
		for _, field := range s.order {
			mark := ""
			if !slices.Contains(s.Required, field) {
				mark = "?"
			}
			p := s.Properties[field]
			fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", field, mark, link(p), strings.ReplaceAll(p.Description, "|", "\\|"))
		}
	}
	return b.String()
}

// flagWords sets flags off from words.
func flagWords(s string) string {
	if strings.HasPrefix(s, "--") {
		return "`" + s + "`"
	}
	return s
}

// link is a type in words, with the way to what it holds.
func link(s *schema) string {
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, "#/$defs/")
		return "[" + name + "](#" + strings.ToLower(strings.ReplaceAll(name, ".", "")) + ")"
	case len(s.AnyOf) > 0:
		return link(s.AnyOf[0]) + " or null"
	case s.Items != nil:
		return "list of " + link(s.Items)
	case s.Values != nil:
		return "by name: " + link(s.Values)
	case s.Format == "date-time":
		return "time"
	case s.Type == nil:
		return "any"
	}
	if several, ok := s.Type.([]string); ok {
		return strings.Join(several, " or ")
	}
	return s.Type.(string)
}
