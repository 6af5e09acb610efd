package tidy

import (
	"go/ast"
	"go/token"
)

// Hidden finds assignments in the header of an if or a switch. A reader who looks for the line
// that sets a variable misses them. The idiom of errors, "if err := f(); err != nil",
// is allowed.
func Hidden(tree *Tree, files []*File) []Finding {
	var all []Finding
	for _, f := range files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			var init ast.Stmt
			switch s := n.(type) {
			case *ast.IfStmt:
				init = s.Init
				if checksError(s.Cond) {
					init = nil
				}
			case *ast.SwitchStmt:
				init = s.Init
			case *ast.TypeSwitchStmt:
				init = s.Init
			}
			if init != nil {
				all = append(all, Finding{
					Path: f.Path, Line: tree.line(init.Pos()), Check: "hidden",
					Text: "an assignment in the header of an if or a switch; put it on a line before",
				})
			}
			return true
		})
	}
	return all
}

// checksError reports whether a condition is "err != nil".
func checksError(condition ast.Expr) bool {
	binary, _ := condition.(*ast.BinaryExpr)
	if binary == nil || binary.Op != token.NEQ {
		return false
	}
	left, _ := binary.X.(*ast.Ident)
	right, _ := binary.Y.(*ast.Ident)
	return left != nil && right != nil && left.Name == "err" && right.Name == "nil"
}
