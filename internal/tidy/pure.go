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

// impure are the packages that a state machine does not import: locks, random
// numbers, and services of the operating system.
var impure = []string{"sync", "sync/atomic", "math/rand", "math/rand/v2", "crypto/rand", "os", "net", "io/fs", "log", "log/slog"}

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
			if fn, isFunc := decl.(*ast.FuncDecl); isFunc && fn.Body != nil {
				c.function(fn)
			}
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
		if path, err := strconv.Unquote(spec.Path.Value); err == nil && slices.Contains(impure, path) {
			c.report(spec.Pos(), fmt.Sprintf("a pure package does not import %q", path))
		}
	}
}

func (c *purity) function(fn *ast.FuncDecl) {
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			c.report(node.Pos(), "a pure package starts no goroutine")
		case *ast.ChanType:
			c.report(node.Pos(), "a pure package has no channel")
		case *ast.SelectorExpr:
			if use, isFunc := c.info.Uses[node.Sel].(*types.Func); isFunc && use.Pkg() != nil && use.Pkg().Path() == "time" &&
				use.Signature().Recv() == nil && slices.Contains(clocks, use.Name()) {
				c.report(node.Pos(), "a pure package takes the time as a parameter; it does not call time."+use.Name())
			}
		case *ast.RangeStmt:
			if c.isMap(node.X) && !c.explained(node) && !(&loop{purity: c, fn: fn, after: node.End()}).orderFree(node.Body) {
				c.report(node.Pos(), `the order of the map may reach an output; sort, or say above the loop why it may run in "any order"`)
			}
		}
		return true
	})
}

func (c *purity) isMap(expr ast.Expr) bool {
	t := c.info.TypeOf(expr)
	if t == nil {
		return false
	}
	_, isMap := t.Underlying().(*types.Map)
	return isMap
}

// explained reports whether the comment above a statement gives the reason.
func (c *purity) explained(stmt ast.Stmt) bool {
	line := c.tree.line(stmt.Pos())
	for _, group := range c.file.Syntax.Comments {
		if last := c.tree.line(group.End()); (last == line-1 || last == line) && strings.Contains(group.Text(), "any order") {
			return true
		}
	}
	return false
}

// A loop is a loop over a map within a function.
type loop struct {
	*purity
	fn    *ast.FuncDecl
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
		return true // a new variable of this iteration, or a sum
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
	ast.Inspect(l.fn.Body, func(node ast.Node) bool {
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
