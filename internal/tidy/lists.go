package tidy

import "strings"

// Lists finds lists of comments that were joined into running text: a line
// with a dash between spaces, ends with a dash, or begins an item without the
// indentation that makes it a list for Go's documentation. Subtraction is
// written with the sign −.
func Lists(tree *Tree) []Finding {
	var all []Finding
	for _, f := range tree.Files {
		for _, p := range tree.comments(f) {
			for i, text := range p.text {
				unindented := strings.HasPrefix(text, "- ") && strings.Contains(f.Lines[p.lines[i]-1], "// - ")
				if unindented || strings.Contains(strings.TrimPrefix(text, "- "), " - ") || strings.HasSuffix(text, " -") {
					all = append(all, Finding{Path: p.path, Line: p.lines[i], Check: "lists",
						Text: "a dash in running text; write a list with one indented item per line"})
				}
			}
		}
	}
	return all
}
