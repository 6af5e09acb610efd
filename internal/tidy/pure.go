package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// impure are the packages that a state machine does not import, with the
// packages below them: locks, random numbers, and services of the operating
// system.
var impure = []string{"sync", "math/rand", "crypto/rand", "hash/maphash", "os", "net", "io/fs", "log"}

// clocks are the functions of package time that read or wait for the clock.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Sleep", "Tick"}

// Pure finds uses of a clock, a lock, a goroutine, a random number or the
// operating system in the files of one package, and loops in which the order of
// a map can reach an output. The files must have been type-checked with info.
//
// A loop over a map is accepted if its body only writes to maps, counts,
// compares, or appends to a slice that the function sorts later. Any other
// loop needs a comment above it that contains "any order" and gives the
// reason.
func Pure(tree *Tree, files []*File, info *types.Info) []Finding {
	var all []Finding
	for _, f := range files {
		c := purity{tree: tree, file: f, info: info}
		c.imports()
		for _, decl := range f.Syntax.Decls {
			c.declaration(decl)
		}
		all = append(all, c.findings...)
	}
	return all
}

type purity struct {
	tree     *Tree
	file     *File
	info     *types.Info
	findings []Finding
}

func (c *purity) report(pos token.Pos, text string) {
	c.findings = append(c.findings, Finding{Path: c.file.Path, Line: c.tree.line(pos), Check: "pure", Text: text})
}

func (c *purity) imports() {
	for _, spec := range c.file.Syntax.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil && slices.ContainsFunc(impure, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }) {
			c.report(spec.Pos(), fmt.Sprintf("a pure package does not import %q", path))
		}
	}
}

// declaration checks a function, or the types and variables of a package.
func (c *purity) declaration(decl ast.Decl) {
	sorting := map[ast.Expr]bool{} // arguments of a sort
	ast.Inspect(decl, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			c.report(node.Pos(), "a pure package starts no goroutine")
		case *ast.ChanType:
			c.report(node.Pos(), "a pure package has no channel")
		case *ast.CallExpr:
			if c.calls(node, "slices", "Sorted", "SortedFunc") {
				sorting[node.Args[0]] = true
			}
			if c.calls(node, "maps", "Keys", "Values", "All") && !sorting[node] && !c.explained(node) {
				c.report(node.Pos(), `the order of the map may reach an output; use slices.Sorted, or say above why it may be in "any order"`)
			}
		case *ast.SelectorExpr:
			if use, isFunc := c.info.Uses[node.Sel].(*types.Func); isFunc && use.Pkg() != nil && use.Pkg().Path() == "time" &&
				use.Signature().Recv() == nil && slices.Contains(clocks, use.Name()) {
				c.report(node.Pos(), "a pure package takes the time as a parameter; it does not call time."+use.Name())
			}
		case *ast.RangeStmt:
			if c.isMap(node.X) && !c.explained(node) && !(&loop{purity: c, decl: decl, after: node.End()}).orderFree(node.Body) {
				c.report(node.Pos(), `the order of the map may reach an output; sort, or say above the loop why it may run in "any order"`)
			}
		}
		return true
	})
}

// calls reports whether a call is one of a package's functions.
func (c *purity) calls(call *ast.CallExpr, pkg string, names ...string) bool {
	fun := call.Fun
	if index, isIndex := fun.(*ast.IndexExpr); isIndex {
		fun = index.X
	}
	selector, isSelector := fun.(*ast.SelectorExpr)
	if !isSelector {
		return false
	}
	use, isFunc := c.info.Uses[selector.Sel].(*types.Func)
	return isFunc && use.Pkg() != nil && use.Pkg().Path() == pkg && slices.Contains(names, use.Name())
}

func (c *purity) isMap(expr ast.Expr) bool {
	t := c.info.TypeOf(expr)
	if t == nil {
		return false
	}
	_, isMap := t.Underlying().(*types.Map)
	return isMap
}

// explained reports whether the comment above a node gives the reason.
func (c *purity) explained(node ast.Node) bool {
	line := c.tree.line(node.Pos())
	for _, group := range c.file.Syntax.Comments {
		if last := c.tree.line(group.End()); (last == line-1 || last == line) && strings.Contains(group.Text(), "any order") {
			return true
		}
	}
	return false
}

// A loop is a loop over a map within a declaration.
type loop struct {
	*purity
	decl  ast.Decl
	after token.Pos
}

// orderFree reports whether a statement has the same effect in any order of
// the iterations.
func (l *loop) orderFree(stmt ast.Stmt) bool {
	switch s := stmt.(type) {
	case nil, *ast.IncDecStmt, *ast.DeclStmt, *ast.EmptyStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.CONTINUE
	case *ast.BlockStmt:
		return !slices.ContainsFunc(s.List, func(s ast.Stmt) bool { return !l.orderFree(s) })
	case *ast.IfStmt:
		return l.orderFree(s.Init) && l.orderFree(s.Body) && l.orderFree(s.Else)
	case *ast.RangeStmt:
		return l.orderFree(s.Body)
	case *ast.ReturnStmt:
		return !slices.ContainsFunc(s.Results, func(e ast.Expr) bool { return !l.constant(e) })
	case *ast.ExprStmt:
		return l.erases(s.X)
	case *ast.AssignStmt:
		return l.assigns(s)
	}
	return false
}

// constant reports whether a returned value is the same in each iteration.
func (l *loop) constant(expr ast.Expr) bool {
	if name, isName := expr.(*ast.Ident); isName && name.Name == "nil" {
		return true
	}
	return l.info.Types[expr].Value != nil
}

// erases reports whether an expression is a call of delete or clear.
func (l *loop) erases(expr ast.Expr) bool {
	call, isCall := expr.(*ast.CallExpr)
	if !isCall {
		return false
	}
	name, isName := call.Fun.(*ast.Ident)
	return isName && (name.Name == "delete" || name.Name == "clear")
}

func (l *loop) assigns(s *ast.AssignStmt) bool {
	if s.Tok != token.ASSIGN {
		// A new variable of this iteration, or a sum of integers. Sums of
		// strings and of floating-point numbers depend on the order.
		return s.Tok == token.DEFINE || l.isInteger(s.Lhs[0])
	}
	for i, left := range s.Lhs {
		switch left := left.(type) {
		case *ast.IndexExpr:
			if !l.isMap(left.X) {
				return false
			}
		case *ast.Ident:
			if left.Name != "_" && !(len(s.Rhs) == len(s.Lhs) && l.accumulates(left, s.Rhs[i])) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (l *loop) isInteger(expr ast.Expr) bool {
	t := l.info.TypeOf(expr)
	if t == nil {
		return false
	}
	basic, isBasic := t.Underlying().(*types.Basic)
	return isBasic && basic.Info()&types.IsInteger != 0
}

// accumulates reports whether name = expr comes to the same value in any
// order: a constant, a minimum or maximum, a conjunction or disjunction, or an
// append to a slice that is sorted after the loop.
func (l *loop) accumulates(name *ast.Ident, expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.BinaryExpr:
		return (e.Op == token.LAND || e.Op == token.LOR) && l.mentions(e, name)
	case *ast.CallExpr:
		fn, isName := e.Fun.(*ast.Ident)
		if !isName {
			return false
		}
		switch fn.Name {
		case "min", "max":
			return l.mentions(e, name)
		case "append":
			return l.mentions(e, name) && l.sorted(name)
		}
	}
	return l.constant(expr)
}

func (l *loop) mentions(expr ast.Expr, name *ast.Ident) bool {
	found := false
	ast.Inspect(expr, func(node ast.Node) bool {
		if other, isName := node.(*ast.Ident); isName && other.Name == name.Name {
			found = true
		}
		return !found
	})
	return found
}

// sorted reports whether the function sorts a slice after the loop.
func (l *loop) sorted(name *ast.Ident) bool {
	found := false
	ast.Inspect(l.decl, func(node ast.Node) bool {
		call, isCall := node.(*ast.CallExpr)
		if !isCall || call.Pos() < l.after || len(call.Args) == 0 || !l.mentions(call.Args[0], name) {
			return !found
		}
		if selector, isSelector := call.Fun.(*ast.SelectorExpr); isSelector {
			pkg, isName := selector.X.(*ast.Ident)
			found = found || isName && (pkg.Name == "slices" || pkg.Name == "sort") && strings.HasPrefix(selector.Sel.Name, "Sort")
		}
		return !found
	})
	return found
}
