package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// The greatest sizes, in lines. Tests are exempt, because a table may be long, and so are
// files that are written by a test here.
const (
	MaxFunction = 60
	MaxFile     = 500
	MaxDoc      = 80 // a doc.go
)

// written begins a file that a test of this package writes.
const written = "// go test ./internal/tidy -update writes this file"

// Size finds functions and files that are too long.
func Size(tree *Tree) []Finding {
	var all []Finding
	report := func(path string, line int, format string, args ...any) {
		all = append(all, Finding{Path: path, Line: line, Check: "size", Text: fmt.Sprintf(format, args...)})
	}
	for _, f := range tree.Files {
		if f.Test() {
			continue
		}
		lines := len(f.Lines)
		if path.Base(f.Path) == "doc.go" {
			if lines > MaxDoc {
				report(f.Path, MaxDoc+1, "doc.go has %d lines; at most %d are allowed", lines, MaxDoc)
			}
		} else if lines > MaxFile && !strings.HasPrefix(f.Lines[0], written) {
			report(f.Path, MaxFile+1, "the file has %d lines; at most %d are allowed", lines, MaxFile)
		}
		for _, decl := range f.Syntax.Decls {
			fn, isFunc := decl.(*ast.FuncDecl)
			if !isFunc {
				continue
			}
			first, last := tree.line(fn.Pos()), tree.line(fn.End())
			if lines := last - first + 1; lines > MaxFunction {
				report(f.Path, first, "%s has %d lines; at most %d are allowed", fn.Name.Name, lines, MaxFunction)
			}
		}
	}
	return all
}
