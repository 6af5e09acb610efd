package tidy

import (
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pure are the packages whose exported calls depend on their arguments alone.
var pure = []string{".", "anchor", "anchor/chainview", "bundlequeue", "bundlequeue/told", "canonical", "canonical/proof", "submit/codec"}

// pureFindings type-checks the pure packages and checks them.
func pureFindings(t *testing.T, tree *Tree) []Finding {
	t.Helper()
	args := []string{"-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	for _, dir := range pure {
		args = append(args, "./"+dir)
	}
	exports := map[string]string{}
	for _, line := range goList(t, root, args...) {
		name, file, found := strings.Cut(line, "=")
		if found {
			exports[name] = file
		}
	}
	config := types.Config{Importer: importer.ForCompiler(tree.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	var all []Finding
	for _, dir := range pure {
		all = append(all, checkPure(t, tree, dir, config)...)
	}
	return all
}

func checkPure(t *testing.T, tree *Tree, dir string, config types.Config) []Finding {
	t.Helper()
	names := goList(t, root, "-f", "{{join .GoFiles \" \"}}", "./"+dir)
	var files []*File
	var syntax []*ast.File
	for _, f := range tree.Files {
		if f.Dir() == dir && !f.Test() && strings.Contains(" "+names[0]+" ", " "+f.Path[strings.LastIndex(f.Path, "/")+1:]+" ") {
			files, syntax = append(files, f), append(syntax, f.Syntax)
		}
	}
	require.NotEmpty(t, files, dir)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	_, err := config.Check(dir, tree.fset, syntax, info)
	require.NoError(t, err)
	return Pure(tree, files, info)
}
