package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
)

// Order finds references to functions and methods that go up: a package whose files have an
// order is read from the first file to the last one, so a function is used in its own file and
// in those above it only. The files must have been type-checked with info. Order also finds
// files that have no place.
func Order(tree *Tree, files []*File, order []string, info *types.Info) []Finding {
	var all []Finding
	place := func(name string) int { return slices.Index(order, path.Base(name)) }
	for _, f := range files {
		at := place(f.Path)
		if at < 0 {
			all = append(all, Finding{Path: f.Path, Line: 1, Check: "order", Text: "the file has no place in the order of its package"})
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			name, _ := n.(*ast.Ident)
			used, _ := info.Uses[name].(*types.Func)
			if name == nil || used == nil {
				return true
			}
			declared := tree.fset.Position(used.Origin().Pos()).Filename
			if above := place(declared); path.Dir(declared) == f.Dir() && above >= 0 && above < at {
				all = append(all, Finding{
					Path: f.Path, Line: tree.line(name.Pos()), Check: "order",
					Text: fmt.Sprintf("%s is declared above, in %s; a file uses functions of files below it", name.Name, path.Base(declared)),
				})
			}
			return true
		})
	}
	return all
}
