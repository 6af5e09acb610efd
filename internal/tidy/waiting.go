package tidy

import (
	"go/ast"
	"go/constant"
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
	{"time", []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"a test sleeps only in a bubble of testing/synctest; elsewhere it waits for a state with internal/wait"},
	{"runtime", []string{"NumGoroutine"}, "go.uber.org/goleak finds a leak; a count does not"},
}

// eventually are the functions of testify that give a state a fixed time to come.
var eventually = []string{
	"Eventually", "Eventuallyf", "EventuallyWithT", "EventuallyWithTf", "Never", "Neverf",
}

// comparisons are the functions of testify that compare two durations or times.
var comparisons = []string{
	"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "InDelta", "InEpsilon", "WithinDuration", "WithinRange",
	"Lessf", "LessOrEqualf", "Greaterf", "GreaterOrEqualf", "InDeltaf", "InEpsilonf", "WithinDurationf", "WithinRangef",
}

// Waiting finds tests that depend on the speed of the machine. A test does not sleep, has
// no limit in seconds, compares no elapsed time, counts no goroutines, and gives no other
// program a port that it has found to be free. These rules are for real time, and not for
// the following:
//
//   - function literals, except those of subtests and goroutines, and helpers in a file
//     that imports testing/synctest or internal/bubble: they run in bubbles. Such a file
//     does not use internal/wait, whose limit is real.
//   - a benchmark, and the helpers in a file with a name that ends in bench_test.go.
//
// A file that imports testing is a helper of tests, also without the name of a test file.
// internal/wait and internal/bubble are the two ways to wait.
func Waiting(tree *Tree) []Finding {
	var all []Finding
	for _, f := range tree.Files {
		if !f.Test() && !imports(f, "testing") || isWay(f.Path) {
			continue
		}
		w := waiting{tree: tree, file: f, bubbles: imports(f, "testing/synctest", "internal/bubble")}
		w.checkImports()
		for _, decl := range f.Syntax.Decls {
			w.declaration(decl)
		}
		all = append(all, w.findings...)
	}
	return all
}

// isWay reports whether a file is of a package that all others use to wait.
func isWay(path string) bool {
	return strings.Contains(path, "internal/wait/") || strings.Contains(path, "internal/bubble/")
}

// imports reports whether a file imports a package with one of the names or endings.
func imports(f *File, names ...string) bool {
	return slices.ContainsFunc(f.Syntax.Imports, func(spec *ast.ImportSpec) bool {
		path := strings.Trim(spec.Path.Value, `"`)
		return slices.ContainsFunc(names, func(name string) bool {
			return path == name || strings.HasSuffix(path, "/"+name)
		})
	})
}

// waiting checks a file.
type waiting struct {
	tree     *Tree
	file     *File
	bubbles  bool            // the file has bubbles
	elapsed  map[string]bool // variables of the declaration that have elapsed time
	moments  map[string]bool // variables of the declaration that are time.Now()
	findings []Finding
}

func (w *waiting) report(pos token.Pos, text string) {
	w.findings = append(w.findings, Finding{Path: w.file.Path, Line: w.tree.line(pos), Check: "waiting", Text: text})
}

func (w *waiting) checkImports() {
	for _, spec := range w.file.Syntax.Imports {
		if w.bubbles && strings.HasSuffix(strings.Trim(spec.Path.Value, `"`), "internal/wait") {
			w.report(spec.Pos(), "a file on virtual time does not use internal/wait; split it")
		}
	}
}

// declaration checks a function, or something else that is declared.
func (w *waiting) declaration(decl ast.Decl) {
	f, ok := decl.(*ast.FuncDecl)
	isTest := ok && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz"))
	isBenchmark := ok && strings.HasPrefix(f.Name.Name, "Benchmark")
	if isBenchmark || !isTest && strings.HasSuffix(w.file.Path, "bench_test.go") {
		return
	}
	w.elapsed, w.moments = make(map[string]bool), make(map[string]bool)
	if ok && f.Body != nil {
		w.checkPorts(f.Body)
	}
	w.walk(decl, w.bubbles && !isTest)
}

// walk checks a part of a declaration.
func (w *waiting) walk(root ast.Node, virtual bool) {
	ast.Inspect(root, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			w.assigned(node.Lhs, node.Rhs)
		case *ast.ValueSpec:
			names := make([]ast.Expr, len(node.Names))
			for i, name := range node.Names {
				names[i] = name
			}
			w.assigned(names, node.Values)
		case *ast.SelectorExpr:
			w.selector(node, virtual)
		case *ast.BinaryExpr:
			switch node.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				w.compared([]ast.Expr{node.X, node.Y}, virtual)
			}
		case *ast.CallExpr:
			return w.call(node, virtual)
		case *ast.GoStmt:
			if f, ok := node.Call.Fun.(*ast.FuncLit); ok {
				w.walk(f.Body, virtual) // it has the time of its caller
				return false
			}
		case *ast.FuncLit:
			if w.bubbles && !virtual {
				w.walk(node.Body, true)
				return false
			}
		}
		return true
	})
}

// call checks a call. It reports whether the arguments remain to be checked.
func (w *waiting) call(call *ast.CallExpr, virtual bool) bool {
	if isOneOf(call.Fun, "require", comparisons) || isOneOf(call.Fun, "assert", comparisons) {
		w.compared(call.Args, virtual)
	}
	w.checkLimit(call, virtual)
	if !keepsTime(call) {
		return true
	}
	for _, arg := range call.Args {
		if f, ok := arg.(*ast.FuncLit); ok {
			w.walk(f.Body, virtual)
		} else {
			w.walk(arg, virtual)
		}
	}
	return false
}

// checkLimit reports a context that a slow machine exceeds, and a loop that gives a
// state a fixed time to come.
func (w *waiting) checkLimit(call *ast.CallExpr, virtual bool) {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if virtual || !ok {
		return
	}
	switch {
	case isOneOf(of, "context", []string{"WithTimeout"}) && len(call.Args) >= 2 && isShort(call.Args[1]),
		isOneOf(of, "context", []string{"WithDeadline"}):
		w.report(call.Pos(), "a slow machine exceeds the limit of this context; use internal/wait.Context")
	case of.Sel.Name == "After":
		if now, ok := of.X.(*ast.CallExpr); ok && isNow(now) {
			w.report(call.Pos(), "a slow machine exceeds this limit; use internal/wait")
		}
	}
}

// keepsTime reports whether the functions that a call gets run in the caller's time:
// those of t.Run and the like, and those of a group of goroutines or of t.Cleanup.
func keepsTime(call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch of.Sel.Name {
	case "Go", "Cleanup":
		return true
	case "Run", "Fuzz":
		on, ok := of.X.(*ast.Ident)
		return ok && len(on.Name) == 1
	}
	return false
}

func (w *waiting) selector(node *ast.SelectorExpr, virtual bool) {
	if isOneOf(node, "require", eventually) || isOneOf(node, "assert", eventually) {
		w.report(node.Pos(), node.Sel.Name+" has a limit that a slow machine exceeds; use internal/wait")
	}
	for _, rule := range waits {
		if !virtual && isOneOf(node, rule.pkg, rule.names) {
			w.report(node.Pos(), rule.text)
		}
	}
}

// assigned notes the variables that get elapsed time, or the present one.
func (w *waiting) assigned(to, values []ast.Expr) {
	if len(to) != len(values) {
		return
	}
	for i, value := range values {
		name, ok := to[i].(*ast.Ident)
		if !ok {
			continue
		}
		if call, ok := value.(*ast.CallExpr); ok && isNow(call) {
			w.moments[name.Name] = true
		}
		if w.measuresIn(value) {
			w.elapsed[name.Name] = true
		}
	}
}

// measuresIn reports whether a part of an expression is elapsed real time, for example
// of time.Since(began).Seconds().
func (w *waiting) measuresIn(expr ast.Expr) (found bool) {
	if _, ok := expr.(*ast.FuncLit); ok {
		return false
	}
	ast.Inspect(expr, func(node ast.Node) bool {
		part, ok := node.(ast.Expr)
		found = found || ok && w.measures(part)
		return !found
	})
	return found
}

// measures reports whether an expression is elapsed real time.
func (w *waiting) measures(expr ast.Expr) bool {
	call, ok := expr.(*ast.CallExpr)
	if !ok {
		return false
	}
	if isOneOf(call.Fun, "time", []string{"Since"}) {
		return true
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || of.Sel.Name != "Sub" {
		return false
	}
	if name, ok := of.X.(*ast.Ident); ok {
		return w.moments[name.Name]
	}
	now, ok := of.X.(*ast.CallExpr)
	return ok && isNow(now)
}

func isNow(call *ast.CallExpr) bool { return isOneOf(call.Fun, "time", []string{"Now"}) }

// compared reports elapsed real time among the operands of a comparison.
func (w *waiting) compared(operands []ast.Expr, virtual bool) {
	for _, operand := range operands {
		ast.Inspect(operand, func(node ast.Node) bool {
			expr, ok := node.(ast.Expr)
			if !ok || virtual {
				return true
			}
			name, isName := expr.(*ast.Ident)
			call, isCall := expr.(*ast.CallExpr)
			if w.measures(expr) || isName && w.elapsed[name.Name] || isCall && isNow(call) {
				w.report(expr.Pos(), "a test asserts nothing about elapsed time; count the results")
				return false
			}
			return true
		})
	}
}

// isShort reports whether an expression is a constant duration of less than a minute.
func isShort(expr ast.Expr) bool {
	d := seconds(expr)
	return d.Kind() != constant.Unknown && constant.Compare(d, token.LSS, constant.MakeInt64(60))
}

// seconds returns the value of a constant duration, or an unknown one.
func seconds(expr ast.Expr) constant.Value {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		return constant.ToFloat(constant.MakeFromLiteral(expr.Value, expr.Kind, 0))
	case *ast.BinaryExpr:
		x, y := seconds(expr.X), seconds(expr.Y)
		if expr.Op != token.MUL || x.Kind() == constant.Unknown || y.Kind() == constant.Unknown {
			return constant.MakeUnknown()
		}
		return constant.BinaryOp(x, token.MUL, y)
	case *ast.SelectorExpr:
		for unit, value := range map[string]string{
			"Nanosecond": "1e-9", "Microsecond": "1e-6", "Millisecond": "1e-3", "Second": "1.0", "Minute": "60.0", "Hour": "3600.0",
		} {
			if isOneOf(expr, "time", []string{unit}) {
				return constant.MakeFromLiteral(value, token.FLOAT, 0)
			}
		}
	}
	return constant.MakeUnknown()
}

// checkPorts reports a listener that is closed in the function that has read its address.
// Another program can take the port before the one that is meant to listen there.
func (w *waiting) checkPorts(body *ast.BlockStmt) {
	listeners, read, deferred := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			call, ok := node.Rhs[0].(*ast.CallExpr)
			if name, named := node.Lhs[0].(*ast.Ident); ok && named && isOneOf(call.Fun, "net", []string{"Listen", "ListenTCP", "ListenPacket", "ListenUDP"}) {
				listeners[name.Name] = true
			}
		case *ast.DeferStmt:
			if of, ok := node.Call.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Close" {
				if name, ok := of.X.(*ast.Ident); ok {
					deferred[name.Name] = true
				}
			}
			return false
		case *ast.ReturnStmt: // the address outlives the listener
			for name := range deferred {
				if listeners[name] && slices.ContainsFunc(node.Results, func(r ast.Expr) bool { return reads(r, name) }) {
					w.report(node.Pos(), "another program can take the port; let the one that needs it choose it")
				}
			}
		case *ast.SelectorExpr:
			if name, ok := node.X.(*ast.Ident); ok && (node.Sel.Name == "Addr" || node.Sel.Name == "LocalAddr") && listeners[name.Name] {
				read[name.Name] = true
			}
			if name, ok := node.X.(*ast.Ident); ok && node.Sel.Name == "Close" && read[name.Name] {
				w.report(node.Pos(), "another program can take the port; let the one that needs it choose it")
			}
		}
		return true
	})
}

// reads reports whether an expression has the address of a listener.
func reads(expr ast.Expr, listener string) (found bool) {
	ast.Inspect(expr, func(node ast.Node) bool {
		if of, ok := node.(*ast.SelectorExpr); ok && (of.Sel.Name == "Addr" || of.Sel.Name == "LocalAddr") {
			name, ok := of.X.(*ast.Ident)
			found = found || ok && name.Name == listener
		}
		return !found
	})
	return found
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
