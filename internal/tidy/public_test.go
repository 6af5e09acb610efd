package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine are the exported names of eoa/internal/account that no host needs. Package eoa gives
// all others to its users, as its own.
var machine = []string{"View", "NewView", "Job", "Outgoing", "KZG", "UseKZG", "Refusal", "Signed", "Join", "Prove", "Continued", "CheckRecord", "CheckPayload",
	"CheckReplacement", "DefaultRules", "MaxRetry", "NoEstimate", "Head", "Mark", "Stop", "Cause", "CauseNone", "CauseRolledBack", "CauseOtherChain",
	"OrderKind", "OrderCancel", "OrderReplace", "OrderReset", "OrderResume"}

// TestPublicNames: package eoa has an alias for each name of eoa/internal/account that its users
// need. The documentation of an alias of an internal type shows neither fields nor methods, so
// that the comment of the alias repeats them. With -update, the test writes the file.
func TestPublicNames(t *testing.T) {
	tree := loadAll(t)
	p := publisher{tree: tree}
	for _, f := range tree.Files {
		if f.Dir() == "eoa/internal/account" && !f.Test() {
			p.files = append(p.files, f)
		}
	}
	p.out.WriteString(written + " from package eoa/internal/account.\n\n" +
		"package eoa\n\nimport \"github.com/jamq/jamq/eoa/internal/account\"\n\n")
	for _, f := range p.files {
		p.file(f)
	}
	want, err := format.Source(p.out.Bytes())
	require.NoError(t, err)
	name := filepath.Join(root, "eoa/values.go")
	if *update {
		require.NoError(t, os.WriteFile(name, want, 0o644))
	}
	have, err := os.ReadFile(name)
	require.NoError(t, err, "run go test ./internal/tidy -update")
	require.Equal(t, string(want), string(have), "run go test ./internal/tidy -update")
}

type publisher struct {
	tree  *Tree
	files []*File
	out   bytes.Buffer
}

// file writes the aliases of the names in f.
func (p *publisher) file(f *File) {
	for _, decl := range f.Syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && public(d.Name) {
				p.out.WriteString(comment(d.Doc))
				p.function(f, d)
			}
		case *ast.GenDecl:
			p.group(f, d)
		}
	}
}

func public(name *ast.Ident) bool { return name.IsExported() && !slices.Contains(machine, name.Name) }

// function writes a function that calls another one.
func (p *publisher) function(f *File, d *ast.FuncDecl) {
	var args []string
	for _, field := range d.Type.Params.List {
		for _, name := range field.Names {
			args = append(args, name.Name)
		}
	}
	fmt.Fprintf(&p.out, "%s { return account.%s(%s) }\n\n", p.source(f, d.Pos(), d.Type.End()), d.Name.Name, strings.Join(args, ", "))
}

// group writes the aliases of the types, or the constants or variables, of a declaration.
func (p *publisher) group(f *File, d *ast.GenDecl) {
	var values bytes.Buffer
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if public(s.Name) {
				p.out.WriteString(comment(d.Doc))
				p.declaration(f, s)
				fmt.Fprintf(&p.out, "type %s = account.%s\n\n", s.Name.Name, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if public(name) {
					doc := s.Doc
					if doc == nil && !d.Lparen.IsValid() {
						doc = d.Doc
					}
					fmt.Fprintf(&values, "%s\t%s = account.%s\n", comment(doc), name.Name, name.Name)
				}
			}
		}
	}
	if values.Len() > 0 {
		if d.Lparen.IsValid() {
			p.out.WriteString(comment(d.Doc))
		}
		fmt.Fprintf(&p.out, "%s (\n%s)\n\n", d.Tok, values.String())
	}
}

// declaration writes the fields and the methods of a type into the comment of its alias.
func (p *publisher) declaration(f *File, s *ast.TypeSpec) {
	var parts []string
	if _, basic := s.Type.(*ast.Ident); !basic {
		parts = append(parts, "type "+p.source(f, s.Pos(), s.End()))
	}
	for _, file := range p.files {
		for _, decl := range file.Syntax.Decls {
			m, _ := decl.(*ast.FuncDecl)
			if m == nil || m.Recv == nil || !m.Name.IsExported() || strings.HasSuffix(m.Name.Name, "JSON") {
				continue
			}
			if strings.TrimPrefix(p.source(file, m.Recv.List[0].Type.Pos(), m.Recv.List[0].Type.End()), "*") == s.Name.Name {
				parts = append(parts, comment(m.Doc)+p.source(file, m.Pos(), m.Type.End()))
			}
		}
	}
	for _, part := range parts {
		p.out.WriteString("//\n")
		for line := range strings.Lines(part) {
			p.out.WriteString(strings.TrimRight("//\t"+line, "\n\t ") + "\n")
		}
	}
}

// comment returns the text of a comment.
func comment(doc *ast.CommentGroup) (text string) {
	if doc == nil {
		return ""
	}
	for _, c := range doc.List {
		text += c.Text + "\n"
	}
	return text
}

// source returns a part of a file.
func (p *publisher) source(f *File, from, to token.Pos) string {
	begin, end := p.tree.fset.Position(from), p.tree.fset.Position(to)
	lines := slices.Clone(f.Lines[begin.Line-1 : end.Line])
	lines[len(lines)-1] = lines[len(lines)-1][:end.Column-1]
	lines[0] = lines[0][begin.Column-1:]
	return strings.Join(lines, "\n")
}
