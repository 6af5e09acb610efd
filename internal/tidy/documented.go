package tidy

import (
	"go/ast"
	"slices"
	"strings"
)

// Documented finds exported names without a comment, and functions, methods
// and types whose comment does not begin with their name. Commands, examples
// and tests are exempt: nothing imports them.
func Documented(tree *Tree) []Finding {
	var all []Finding
	for _, f := range tree.Files {
		if f.Test() || f.Syntax.Name.Name == "main" || strings.HasPrefix(f.Path, "examples/") {
			continue
		}
		d := documented{tree: tree, file: f}
		for _, decl := range f.Syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				d.function(decl)
			case *ast.GenDecl:
				d.declaration(decl)
			}
		}
		all = append(all, d.findings...)
	}
	return all
}

type documented struct {
	tree     *Tree
	file     *File
	findings []Finding
}

func (d *documented) report(node ast.Node, text string) {
	d.findings = append(d.findings, Finding{Path: d.file.Path, Line: d.tree.line(node.Pos()), Check: "documented", Text: text})
}

func (d *documented) function(fn *ast.FuncDecl) {
	if !fn.Name.IsExported() || fn.Recv != nil && !ast.IsExported(receiver(fn)) {
		return
	}
	d.name(fn.Name, fn.Doc)
}

// receiver returns the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// name checks the comment of a function or a type.
func (d *documented) name(name *ast.Ident, doc *ast.CommentGroup) {
	switch text := doc.Text(); {
	case text == "":
		d.report(name, name.Name+" is exported and has no comment")
	case !beginsWith(text, name.Name):
		d.report(name, "the comment of "+name.Name+" does not begin with its name")
	}
}

func beginsWith(text, name string) bool {
	for _, article := range []string{"A ", "An ", "The ", "Deprecated: "} {
		text = strings.TrimPrefix(text, article)
	}
	rest, found := strings.CutPrefix(text, name)
	return found && (rest == "" || !isWordByte(rest[0]))
}

func isWordByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func (d *documented) declaration(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			d.name(spec.Name, doc)
			d.members(spec, doc.Text())
		case *ast.ValueSpec:
			if decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				d.values(spec)
			}
		}
	}
}

func (d *documented) values(spec *ast.ValueSpec) {
	for _, name := range spec.Names {
		if name.IsExported() {
			d.report(name, name.Name+" is exported and has no comment")
		}
	}
}

// members checks the fields of a struct and the methods of an interface. A
// comment above several members without an empty line between them counts for
// all of them. So does the comment of the type for the members that it names.
func (d *documented) members(spec *ast.TypeSpec, doc string) {
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	last := -1
	for _, field := range fields.List {
		first := d.tree.line(field.Pos())
		if field.Doc == nil && field.Comment == nil && first != last+1 {
			for _, name := range field.Names {
				if name.IsExported() && !slices.Contains(wordPattern.FindAllString(doc, -1), name.Name) {
					d.report(name, spec.Name.Name+"."+name.Name+" is exported and has no comment")
				}
			}
			continue
		}
		last = -1
		if field.Doc != nil || field.Comment == nil {
			last = d.tree.line(field.End())
		}
	}
}
