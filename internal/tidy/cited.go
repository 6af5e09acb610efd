package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// Rules is the document that defines the labels of rules and promises.
const Rules = "docs/invariants.md"

var (
	labelPattern = regexp.MustCompile(`\b[BCDEIKRST][1-9][0-9]?\b`)
	testPattern  = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)_?[A-Z]\w*\*?`)
	wordPattern  = regexp.MustCompile(`[A-Za-z]{2,}`)
)

// minWords is the number of words, labels aside, that a comment with a label
// has at least. A reader does not know the label by heart.
const minWords = 4

// Cited finds labels that [Rules] does not define, comments that give a label
// without the rule in words, and names of tests that do not exist.
func Cited(tree *Tree) []Finding {
	defined, tests := definedLabels(tree), declared(tree)
	var all []Finding
	check := func(p passage, inCode bool) {
		words := 0
		var labels []int
		for i, text := range p.text {
			report := func(format string, args ...any) {
				all = append(all, Finding{Path: p.path, Line: p.lines[i], Check: "cited", Text: fmt.Sprintf(format, args...)})
			}
			for _, label := range labelPattern.FindAllString(text, -1) {
				labels = append(labels, i)
				if !slices.Contains(defined, label) {
					report("%s does not define %s", Rules, label)
				}
			}
			for _, test := range testPattern.FindAllString(text, -1) {
				if !tests.has(test, strings.Contains(text, "-run")) {
					report("there is no %s", test)
				}
			}
			words += len(wordPattern.FindAllString(text, -1))
		}
		if inCode && len(labels) > 0 && words < minWords {
			all = append(all, Finding{Path: p.path, Line: p.lines[labels[0]], Check: "cited",
				Text: "the comment gives a label; it must also say the rule in words"})
		}
	}
	for _, f := range tree.Files {
		for _, p := range tree.comments(f) {
			check(p, true)
		}
	}
	for _, d := range tree.Documents {
		for _, p := range d.paragraphs() {
			check(p, false)
		}
	}
	return all
}

// definedLabels returns the labels that begin a heading, an item or a row of
// the table in [Rules].
func definedLabels(tree *Tree) []string {
	var labels []string
	for _, d := range tree.Documents {
		if d.Path != Rules {
			continue
		}
		for _, line := range d.Lines {
			line = strings.TrimLeft(line, "#|-* ")
			if at := labelPattern.FindStringIndex(line); at != nil && at[0] == 0 {
				labels = append(labels, line[:at[1]])
			}
		}
	}
	return labels
}

// names is a set of declared names.
type names map[string]bool

// has reports whether a cited name is declared. A name that ends in * and one
// behind -run stand for all names that begin with it.
func (n names) has(cited string, prefix bool) bool {
	cited, star := strings.CutSuffix(cited, "*")
	if !star && !prefix {
		return n[cited]
	}
	for name := range n {
		if strings.HasPrefix(name, cited) {
			return true
		}
	}
	return false
}

// declared returns the names of all functions and types of the tree.
func declared(tree *Tree) names {
	all := names{}
	for _, f := range tree.Files {
		for _, decl := range f.Syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				all[decl.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if t, isType := spec.(*ast.TypeSpec); isType {
						all[t.Name.Name] = true
					}
				}
			}
		}
	}
	return all
}
