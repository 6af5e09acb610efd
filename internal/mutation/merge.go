package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// selector is the environment variable that selects the mutation of a merged
// source by its number. Unset or 0 selects the original code.
const selector = "JAMQ_MUTATION"

// selectorSource declares the variable that the switches of merged functions
// read. The package that contains a merged file needs it once.
func selectorSource(pkg string) string {
	return fmt.Sprintf(`package %s

import (
	mutationOS "os"
	mutationStrconv "strconv"
)

var mutationNumber = func() int {
	n, _ := mutationStrconv.Atoi(mutationOS.Getenv(%q))
	return n
}()
`, pkg, selector)
}

// merged collects versions of the functions of one source file.
type merged struct {
	source   string
	pkg      string // the name in the package clause
	funcs    []function
	versions []map[int]string // by function: the body of each mutation
}

// function is a function declaration with a body.
type function struct {
	decl       *ast.FuncDecl
	body, rest string // the text of its body, and the text before it since the last body
}

// newMerged parses the source of a file.
func newMerged(source string) (*merged, error) {
	pkg, funcs, err := functions(source)
	if err != nil {
		return nil, err
	}
	m := &merged{source: source, pkg: pkg, funcs: funcs, versions: make([]map[int]string, len(funcs))}
	for i := range m.versions {
		m.versions[i] = make(map[int]string)
	}
	return m, nil
}

// functions returns the name of the package and the functions of a source file.
// The last entry has no declaration: it holds the text after the last body.
func functions(source string) (pkg string, out []function, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	done := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := offset(file, f.Body.Pos()), offset(file, f.Body.End())
		out = append(out, function{decl: f, body: source[from:to], rest: source[done:from]})
		done = to
	}
	return file.Name.Name, append(out, function{rest: source[done:]}), nil
}

// offset returns the place of a position in the only file of a file set.
func offset(file *ast.File, at token.Pos) int { return int(at - file.FileStart) }

// add takes an edited version of the source as the mutation with a number. It
// reports whether it can: the edit may change only bodies of functions, and
// these must be functions that other code can call.
func (m *merged) add(number int, edited string) bool {
	_, funcs, err := functions(edited)
	same := err == nil && slices.EqualFunc(m.funcs, funcs, func(a, b function) bool { return a.rest == b.rest })
	if !same {
		return false
	}
	var changed []int
	for i := range funcs {
		if funcs[i].body != m.funcs[i].body {
			if !callable(m.funcs[i].decl) {
				return false
			}
			changed = append(changed, i)
		}
	}
	for _, i := range changed {
		m.versions[i][number] = funcs[i].body
	}
	return len(changed) > 0
}

// callable reports whether a switch can call versions of a function.
func callable(f *ast.FuncDecl) bool {
	directive := f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:") })
	return !directive && f.Name.Name != "_" && (f.Recv != nil || f.Name.Name != "init" && f.Name.Name != "main")
}

// text returns the source with a switch in place of each function that has
// several versions.
func (m *merged) text() string {
	var out strings.Builder
	for i, f := range m.funcs {
		if len(m.versions[i]) == 0 {
			out.WriteString(f.rest + f.body)
			continue
		}
		// A position begins with 1.
		head := f.rest[:len(f.rest)-(int(f.decl.Body.Pos())-int(f.decl.Pos()))]
		call := newCall(m.source, f.decl)
		out.WriteString(head + call.declaration("", call.dispatch(m.versions[i])))
		out.WriteString("\n\n" + call.declaration(version(0), f.body))
		for _, number := range sorted(m.versions[i]) {
			out.WriteString("\n\n" + call.declaration(version(number), m.versions[i][number]))
		}
	}
	return out.String()
}

// version is the suffix of a function's name in the mutation with a number.
func version(number int) string { return fmt.Sprintf("Mutation%d", number) }

// sorted returns the keys of a map in order.
func sorted(versions map[int]string) []int {
	var out []int
	for number := range versions {
		out = append(out, number)
	}
	slices.Sort(out)
	return out
}

// call holds the parts of a function's declaration and of a call of it.
type call struct {
	name       string
	receiver   string // declared, with parentheses, or empty
	on         string // "x." for a method with receiver x
	typeParams string // declared, with brackets, or empty
	typeArgs   string
	params     string // declared
	args       string
	results    string
	original   struct{ receiver, params string } // with the names of the source
}

// newCall reads a declaration. Parameters without a name get one.
func newCall(source string, f *ast.FuncDecl) *call {
	text := func(n ast.Node) string { return source[int(n.Pos())-1 : int(n.End())-1] }
	c := &call{name: f.Name.Name}
	if f.Recv != nil {
		var on []string
		c.receiver, on = named(f.Recv, text, "mutationReceiver")
		c.receiver, c.on = "("+c.receiver+") ", on[0]+"."
		c.original.receiver = text(f.Recv) + " "
	}
	if p := f.Type.TypeParams; p != nil {
		c.typeParams = text(p)
		var names []string
		for _, field := range p.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		c.typeArgs = "[" + strings.Join(names, ", ") + "]"
	}
	var args []string
	c.params, args = named(f.Type.Params, text, "mutationParam")
	c.args = strings.Join(args, ", ")
	c.original.params = text(f.Type.Params)
	if r := f.Type.Results; r != nil {
		c.results = text(r) + " "
	}
	return c
}

// named returns a parameter list in which each parameter has a name, and the
// arguments that pass these parameters on.
func named(list *ast.FieldList, text func(ast.Node) string, prefix string) (params string, args []string) {
	var out []string
	for _, field := range list.List {
		names := field.Names
		if len(names) == 0 {
			names = []*ast.Ident{{Name: "_"}}
		}
		for _, n := range names {
			name, after := n.Name, ""
			if name == "_" {
				name = fmt.Sprint(prefix, len(args))
			}
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				after = "..."
			}
			out = append(out, name+" "+text(field.Type))
			args = append(args, name+after)
		}
	}
	return strings.Join(out, ", "), args
}

// declaration returns the function with a suffix to its name and another body.
func (c *call) declaration(suffix, body string) string {
	if suffix == "" {
		return "func " + c.receiver + c.name + c.typeParams + "(" + c.params + ") " + c.results + body
	}
	return "func " + c.original.receiver + c.name + suffix + c.typeParams + c.original.params + " " + c.results + body
}

// dispatch returns the body that calls the selected version.
func (c *call) dispatch(versions map[int]string) string {
	pass := func(number int) string {
		expression := c.on + c.name + version(number) + c.typeArgs + "(" + c.args + ")"
		if c.results != "" {
			return "return " + expression
		}
		return expression
	}
	out := "{\n\tswitch mutationNumber {\n"
	for _, number := range sorted(versions) {
		out += fmt.Sprintf("\tcase %d:\n\t\t%s\n", number, pass(number))
	}
	return out + "\tdefault:\n\t\t" + pass(0) + "\n\t}\n}"
}
