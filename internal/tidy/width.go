package tidy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxColumns is the greatest width of a comment or a line of a document. A
// tab counts as four columns.
const MaxColumns = 100

// Width finds comments and lines of documents that are wider than
// [MaxColumns]. A line that cannot be broken (a link, the expected output of
// an example) is accepted.
func Width(tree *Tree) []Finding {
	var all []Finding
	report := func(path string, line, columns int) {
		all = append(all, Finding{Path: path, Line: line, Check: "width",
			Text: fmt.Sprintf("the line has %d columns; break it before column %d", columns, MaxColumns+1)})
	}
	for _, f := range tree.Files {
		last := 0
		for _, p := range tree.comments(f) {
			for _, line := range p.lines {
				columns := columns(f.Lines[line-1])
				if columns > MaxColumns && line != last && breakable(f.Lines[line-1]) {
					report(f.Path, line, columns)
				}
				last = line
			}
		}
	}
	for _, d := range tree.Documents {
		for i, line := range d.Lines {
			if columns := columns(line); columns > MaxColumns && breakable(line) {
				report(d.Path, i+1, columns)
			}
		}
	}
	return all
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// breakable reports whether a line has a space before the limit, beyond its
// indentation and the marks in front of its first word.
func breakable(line string) bool {
	text := strings.TrimLeft(line, " \t/*-")
	start := len(line) - len(text)
	for i, r := range text {
		if r == ' ' && columns(line[:start+i]) <= MaxColumns {
			return true
		}
	}
	return false
}
