package tidy

import (
	"go/ast"
	"go/types"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// ordered are the packages whose files are read from the first to the last one.
var ordered = map[string][]string{
	"txpool": {
		"doc.go", "pool.go", "restore.go", "reset.go", "session.go", "held.go", "admit.go", "read.go", "check.go", "step.go",
		"settle.go", "decide.go", "apply.go", "core.go", "chain.go", "caps.go", "delegation.go", "order.go", "event.go",
		"deliver.go", "floor.go", "departure.go", "record.go", "inspect.go", "account.go", "entry.go", "config.go", "errors.go",
	},
	"eoa": {
		"doc.go", "fleet.go", "health.go", "handle.go", "outbox.go", "client.go", "run.go", "step.go", "observe.go", "estimate.go",
		"send.go", "account.go", "history.go", "commit.go", "gascall.go", "timeouts.go", "diagnose.go", "stats.go",
		"executor.go", "config.go", "inbox.go", "witness.go", "signals.go", "store.go", "chain.go", "signer.go",
		"encoding.go", "errors.go", "values.go",
	},
	"eoa/internal/account": {
		"doc.go", "cancel.go", "trust.go", "confirm.go", "broadcast.go", "bump.go", "choose.go", "assign.go", "sign.go", "retain.go",
		"problem.go", "refuse.go", "stop.go", "refusal.go", "gas.go", "price.go", "view.go", "batch.go", "rules.go", "policy.go",
		"fees.go", "job.go", "look.go", "order.go", "head.go", "enums.go", "record.go", "request.go", "blob.go", "kzg.go",
		"classify.go", "messages.go", "event.go", "state.go", "failures.go",
	},
}

// explicit are those of them in which no assignment is hidden.
var explicit = []string{"txpool"}

// TestOrderOfFiles: in a package with an order of files, no function is used below its file.
func TestOrderOfFiles(t *testing.T) {
	tree := loadAll(t)
	for dir, order := range ordered {
		files, info := typeCheck(t, tree, dir)
		require.Len(t, files, len(order))
		found := Order(tree, files, order, info)
		if slices.Contains(explicit, dir) {
			found = append(found, Hidden(tree, files)...)
		}
		for _, f := range found {
			t.Error(f)
		}
	}
}

// typeCheck checks the types of a package, without its tests.
func typeCheck(t *testing.T, tree *Tree, dir string) (files []*File, info *types.Info) {
	t.Helper()
	var syntax []*ast.File
	for _, f := range tree.Files {
		if f.Dir() == dir && !f.Test() {
			files, syntax = append(files, f), append(syntax, f.Syntax)
		}
	}
	info = &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: compiled(t, tree.fset, "./"+dir)}
	_, err := config.Check(dir, tree.fset, syntax, info)
	require.NoError(t, err)
	return files, info
}

func TestOrder(t *testing.T) {
	tree, err := Load(fstest.MapFS{
		"a.go": {Data: []byte("package p\n\ntype t struct{}\n\nfunc (t) up() { down() }\n")},
		"b.go": {Data: []byte("package p\n\nfunc down() {\n\tt{}.up()\n}\n")},
		"c.go": {Data: []byte("package p\n")},
	})
	require.NoError(t, err)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var syntax []*ast.File
	for _, f := range tree.Files {
		syntax = append(syntax, f.Syntax)
	}
	_, err = new(types.Config).Check("p", tree.fset, syntax, info)
	require.NoError(t, err)
	var all []string
	for _, f := range Order(tree, tree.Files, []string{"a.go", "b.go"}, info) {
		all = append(all, f.String())
	}
	require.Equal(t, []string{
		"b.go:4: order: up is declared above, in a.go; a file uses functions of files below it",
		"c.go:1: order: the file has no place in the order of its package",
	}, all)
}

func TestHidden(t *testing.T) {
	hidden := func(tree *Tree) []Finding { return Hidden(tree, tree.Files) }
	for _, code := range []string{
		"if n := f(); n > 0 {\n\t}", "if n = f(); n > 0 {\n\t}", "if err := g(); err == nil {\n\t}",
		"switch n := f(); {\n\t}", "switch n := f(); n {\n\t}", "switch n := f(); x := y.(type) {\n\t}",
		"if n > 0 {\n\t} else if n := f(); n > 0 {\n\t}",
	} {
		require.Len(t, run(t, hidden, "func h() {\n\t"+code+"\n}\n", ""), 1, code)
	}
	require.Empty(t, run(t, hidden, "func h() {\n\tif err := g(); err != nil {\n\t}\n\tfor i := 0; i < 3; i++ {\n\t}\n}\n", ""))
}
