package tidy

import (
	"cmp"
	"fmt"
	"slices"
)

// A Finding is a place that breaks a rule.
type Finding struct {
	// Path is the file, relative to the root of the tree, with slashes.
	Path string
	// Line is the line in that file; the first is 1.
	Line int
	// Check is the name of the check, such as "width".
	Check string
	// Text describes the problem and the rule in plain words.
	Text string
}

// String returns the finding in the form of a compiler's message.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.Path, f.Line, f.Check, f.Text)
}

// All runs every check that needs only the text of the tree. It returns the
// findings in the order of files and lines.
func All(tree *Tree) []Finding {
	var all []Finding
	for _, check := range []func(*Tree) []Finding{Width, Lists, Size, Documented, Cited, Links, English, Waiting} {
		all = append(all, check(tree)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return all
}
