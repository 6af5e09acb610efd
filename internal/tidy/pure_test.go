package tidy

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pure are the packages whose exported calls depend on their arguments alone.
var pure = []string{".", "anchor", "anchor/chainview", "bundlequeue", "bundlequeue/told", "canonical", "canonical/proof", "eoa/internal/account", "submit/codec"}

// pureFindings type-checks the pure packages and checks them.
func pureFindings(t *testing.T, tree *Tree) []Finding {
	t.Helper()
	var paths []string
	for _, dir := range pure {
		paths = append(paths, "./"+dir)
	}
	config := types.Config{Importer: compiled(t, tree.fset, paths...)}
	var all []Finding
	args := []string{"-f", "{{.ImportPath}} {{join .GoFiles \" \"}}"}
	for _, line := range goList(t, root, append(args, paths...)...) {
		fields := strings.Fields(line)
		all = append(all, checkPure(t, tree, path.Join(".", inHouse(fields[0])), fields[1:], config)...)
	}
	return all
}

// compiled imports packages, and those that they import, as the compiler left them.
func compiled(t *testing.T, fset *token.FileSet, paths ...string) types.Importer {
	t.Helper()
	exports := map[string]string{}
	args := []string{"-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	for _, line := range goList(t, root, append(args, paths...)...) {
		if name, file, found := strings.Cut(line, "="); found {
			exports[name] = file
		}
	}
	return importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
}

func checkPure(t *testing.T, tree *Tree, dir string, names []string, config types.Config) []Finding {
	t.Helper()
	var files []*File
	var syntax []*ast.File
	for _, f := range tree.Files {
		if f.Dir() == dir && !f.Test() && slices.Contains(names, path.Base(f.Path)) {
			files, syntax = append(files, f), append(syntax, f.Syntax)
		}
	}
	require.NotEmpty(t, files, dir)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	_, err := config.Check(dir, tree.fset, syntax, info)
	require.NoError(t, err)
	return Pure(tree, files, info)
}
