package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// The ways to wait that are findings outside virtual time: the package, its functions
// and the text of the finding.
var waits = []struct {
	pkg   string
	names []string
	text  string
}{
	{"time", []string{"Sleep", "After", "Tick", "NewTimer", "NewTicker"},
		"a test sleeps only in a bubble of testing/synctest; elsewhere it waits for a state with internal/wait"},
	{"runtime", []string{"NumGoroutine"}, "go.uber.org/goleak finds a leak; a count does not"},
}

// eventually are the functions of testify that give a state a fixed time to come.
var eventually = []string{
	"Eventually", "Eventuallyf", "EventuallyWithT", "EventuallyWithTf", "Never", "Neverf",
}

// comparisons are the functions of testify that compare two durations.
var comparisons = []string{
	"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "InDelta", "WithinDuration",
}

// Waiting finds tests that depend on the speed of the machine. A test file is one of
// these:
//
//   - a file on virtual time, which imports testing/synctest or internal/bubble. It may
//     sleep and measure. It does not use internal/wait, whose limit is real.
//   - a file of benchmarks, with a name that ends in bench_test.go. It may measure.
//   - any other file. It does not sleep, has no limit in seconds, compares no elapsed
//     time, and counts no goroutines.
func Waiting(tree *Tree) []Finding {
	var all []Finding
	for _, f := range tree.Files {
		if !f.Test() || strings.HasSuffix(f.Path, "bench_test.go") {
			continue
		}
		w := waiting{tree: tree, file: f, virtual: virtual(f)}
		ast.Inspect(f.Syntax, w.node)
		all = append(all, w.findings...)
	}
	return all
}

// virtual reports whether the tests of a file run in bubbles.
func virtual(f *File) bool {
	return slices.ContainsFunc(f.Syntax.Imports, func(spec *ast.ImportSpec) bool {
		name := strings.Trim(spec.Path.Value, `"`)
		return name == "testing/synctest" || strings.HasSuffix(name, "internal/bubble")
	})
}

type waiting struct {
	tree     *Tree
	file     *File
	virtual  bool
	findings []Finding
}

func (w *waiting) report(pos token.Pos, text string) {
	w.findings = append(w.findings, Finding{Path: w.file.Path, Line: w.tree.line(pos), Check: "waiting", Text: text})
}

func (w *waiting) node(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.ImportSpec:
		if w.virtual && strings.HasSuffix(strings.Trim(node.Path.Value, `"`), "internal/wait") {
			w.report(node.Pos(), "a file on virtual time does not use internal/wait; split it")
		}
	case *ast.SelectorExpr:
		w.selector(node)
	case *ast.CallExpr:
		if isOneOf(node.Fun, "require", comparisons) || isOneOf(node.Fun, "assert", comparisons) {
			w.compared(node.Args)
		}
	case *ast.BinaryExpr:
		switch node.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			w.compared([]ast.Expr{node.X, node.Y})
		}
	}
	return true
}

func (w *waiting) selector(node *ast.SelectorExpr) {
	if isOneOf(node, "require", eventually) || isOneOf(node, "assert", eventually) {
		w.report(node.Pos(), node.Sel.Name+" has a limit that a slow machine exceeds; use internal/wait")
	}
	for _, rule := range waits {
		if !w.virtual && isOneOf(node, rule.pkg, rule.names) {
			w.report(node.Pos(), rule.text)
		}
	}
}

// compared reports elapsed real time among the operands of a comparison.
func (w *waiting) compared(operands []ast.Expr) {
	for _, operand := range operands {
		ast.Inspect(operand, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if ok && !w.virtual && isOneOf(call.Fun, "time", []string{"Since"}) {
				w.report(call.Pos(), "a test asserts nothing about elapsed time; count the results")
			}
			return true
		})
	}
}

// isOneOf reports whether an expression is one of the names of a package.
func isOneOf(expr ast.Expr, pkg string, names []string) bool {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == pkg && slices.Contains(names, selector.Sel.Name)
}
