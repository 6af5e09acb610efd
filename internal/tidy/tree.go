package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// A Tree is the parsed text of a repository.
type Tree struct {
	// Files are the Go files in the order of their paths.
	Files []*File
	// Documents are the Markdown files in the order of their paths.
	Documents []*Document
	root      fs.FS
	fset      *token.FileSet
}

// A File is a Go file.
type File struct {
	// Path is relative to the root of the tree, with slashes.
	Path string
	// Lines is the text without line ends.
	Lines []string
	// Syntax is the parsed file with its comments.
	Syntax *ast.File
}

// A Document is a Markdown file.
type Document struct {
	// Path is relative to the root of the tree, with slashes.
	Path string
	// Lines is the text without line ends.
	Lines []string
}

// Test reports whether the file is compiled only for tests.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Dir returns the directory of the file, "." for the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// Load parses all Go files and Markdown files below root. It leaves out
// directories named testdata and node_modules, hidden ones, and generated Go
// files.
func Load(root fs.FS) (*Tree, error) {
	tree := &Tree{root: root, fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if name != "." && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go":
			return tree.addFile(root, name)
		case ".md":
			return tree.addDocument(root, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tidy: load: %w", err)
	}
	return tree, nil
}

func (t *Tree) addFile(root fs.FS, name string) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if !ast.IsGenerated(syntax) {
		t.Files = append(t.Files, &File{Path: name, Lines: splitLines(text), Syntax: syntax})
	}
	return nil
}

func (t *Tree) addDocument(root fs.FS, name string) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	t.Documents = append(t.Documents, &Document{Path: name, Lines: splitLines(text)})
	return nil
}

func splitLines(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// line returns the line of a position.
func (t *Tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// A passage is a piece of running text: a comment, or a paragraph of a
// document. Code is left out.
type passage struct {
	path string
	// lines holds the line number of each element of text.
	lines []int
	text  []string
}

// comments returns the comments of a file, one passage each. Directives,
// indented code and the expected output of examples are left out.
func (t *Tree) comments(f *File) []passage {
	var all []passage
	for _, group := range f.Syntax.Comments {
		p := passage{path: f.Path}
		for _, comment := range group.List {
			first := t.line(comment.Pos())
			for i, line := range strings.Split(commentText(comment.Text), "\n") {
				if expectsOutput(line) {
					break
				}
				if isDirective(comment.Text) || strings.HasPrefix(line, "\t") {
					continue
				}
				p.lines = append(p.lines, first+i)
				p.text = append(p.text, strings.TrimSpace(line))
			}
			if expectsOutput(commentText(comment.Text)) {
				break
			}
		}
		all = append(all, p)
	}
	return all
}

func commentText(comment string) string {
	if text, isLine := strings.CutPrefix(comment, "//"); isLine {
		return strings.TrimPrefix(text, " ")
	}
	return strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/")
}

func isDirective(comment string) bool {
	rest, isLine := strings.CutPrefix(comment, "//")
	return isLine && rest != "" && rest[0] >= 'a' && rest[0] <= 'z' && strings.Contains(rest, ":")
}

// expectsOutput reports whether a comment of an example begins its output.
func expectsOutput(text string) bool {
	lower := strings.ToLower(strings.TrimSpace(text))
	return strings.HasPrefix(lower, "output:") || strings.HasPrefix(lower, "unordered output:")
}

// paragraphs returns the running text of a document. Code blocks are left out.
func (d *Document) paragraphs() []passage {
	var all []passage
	current := passage{path: d.Path}
	flush := func() {
		if len(current.text) > 0 {
			all = append(all, current)
		}
		current = passage{path: d.Path}
	}
	fenced := false
	for i, line := range d.Lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			flush()
		case fenced, trimmed == "":
			flush()
		case strings.HasPrefix(line, "    ") && len(current.text) == 0: // indented code
		default:
			if startsBlock(trimmed) {
				flush()
			}
			current.lines = append(current.lines, i+1)
			current.text = append(current.text, trimmed)
		}
	}
	flush()
	return all
}

func startsBlock(line string) bool {
	for _, mark := range []string{"#", "|", "- ", "* ", "> "} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}
