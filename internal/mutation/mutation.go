package mutation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrFormat is wrapped by every error of [Parse].
	ErrFormat = errors.New("mutation: malformed table")
	// ErrNotFound is wrapped by [Mutation.Apply] if the file does not contain
	// the lines that the mutation replaces.
	ErrNotFound = errors.New("mutation: lines to replace not found")
	// ErrAmbiguous is wrapped by [Mutation.Apply] if the file contains these
	// lines more than once.
	ErrAmbiguous = errors.New("mutation: lines to replace occur more than once")
)

// Mutation is one edit of one source file and the test command that must
// notice it.
type Mutation struct {
	// Name says in words which rule the edit breaks. It is unique in its table.
	Name string
	// Where is the table's name and the line in it, as in "anchor.txt:12".
	Where string
	// File is the path of the edited file, relative to the repository's root,
	// with slashes.
	File string
	// Package is the directory of the tested package, relative to the
	// repository's root, with slashes.
	Package string
	// Args are the further arguments of go test, such as -run and a pattern.
	Args []string
	// Env are additional environment variables of the command, as NAME=value.
	Env []string
	// before and after are the lines to replace and their replacement.
	before, after []string
}

// Parse reads a table of mutations. Blank lines and lines that begin with #
// separate mutations. Each mutation consists of these lines, in this order:
//
//	mutation: its name
//	file: the file to edit
//	test: the package to test, then arguments of go test, separated by spaces
//	env: NAME=value, optional, any number of times
//	one or more lines of the edit
//
// The first character of a line of the edit is a minus for a line to remove, a
// plus for a line to insert, or a space for a line that stays.
func Parse(table, text string) ([]Mutation, error) {
	var out []Mutation
	names := make(map[string]bool)
	var open *Mutation
	finish := func() error {
		if open == nil {
			return nil
		}
		if err := open.validate(); err != nil {
			return err
		}
		if names[open.Name] {
			return fmt.Errorf("%w: %s: mutation %q is there twice", ErrFormat, open.Where, open.Name)
		}
		names[open.Name] = true
		out = append(out, *open)
		open = nil
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", table, i+1)
		name, begins := strings.CutPrefix(line, "mutation: ")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			if err := finish(); err != nil {
				return nil, err
			}
		case begins && open == nil:
			open = &Mutation{Name: strings.TrimSpace(name), Where: where}
		case open == nil || !open.take(line):
			return nil, fmt.Errorf("%w: %s: unexpected line %q", ErrFormat, where, line)
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return out, nil
}

// take adds one line of a table to the mutation. It reports whether the line
// is one that a mutation may contain.
func (m *Mutation) take(line string) bool {
	switch kept, code := line[0], line[1:]; kept {
	case ' ':
		m.before, m.after = append(m.before, code), append(m.after, code)
		return true
	case '-':
		m.before = append(m.before, code)
		return true
	case '+':
		m.after = append(m.after, code)
		return true
	}
	key, value, _ := strings.Cut(line, ": ")
	value = strings.TrimSpace(value)
	switch {
	case len(m.before)+len(m.after) > 0 || value == "":
		return false
	case key == "file" && m.File == "":
		m.File = value
	case key == "test" && m.Package == "":
		words := strings.Fields(value)
		m.Package, m.Args = words[0], words[1:]
	case key == "env" && strings.Contains(value, "="):
		m.Env = append(m.Env, value)
	default:
		return false
	}
	return true
}

// validate reports what is missing.
func (m *Mutation) validate() error {
	missing := ""
	switch {
	case m.File == "":
		missing = "a file"
	case m.Package == "":
		missing = "a test"
	case !slices.ContainsFunc(m.Args, func(arg string) bool { return strings.HasPrefix(arg, "-run") }):
		missing = "-run in its test"
	case len(m.before) == 0:
		missing = "lines to find in the file"
	case slices.Equal(m.before, m.after):
		missing = "a change"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: mutation %q has not %s", ErrFormat, m.Where, m.Name, missing)
}

// Apply returns the source with the edit. White space at both ends of a line
// does not matter for finding the lines to replace.
//
// The error wraps [ErrNotFound] or [ErrAmbiguous].
func (m *Mutation) Apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	var found []int
	for i := range len(lines) - len(m.before) + 1 {
		same := slices.EqualFunc(lines[i:i+len(m.before)], m.before, func(a, b string) bool {
			return strings.TrimSpace(a) == strings.TrimSpace(b)
		})
		if same {
			found = append(found, i)
		}
	}
	text := strings.Join(m.before, "\n")
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: %s: have none in %s, want exactly one:\n%s", ErrNotFound, m.Where, m.File, text)
	case 1:
		return strings.Join(slices.Replace(lines, found[0], found[0]+len(m.before), m.after...), "\n"), nil
	}
	for i := range found {
		found[i]++
	}
	return "", fmt.Errorf("%w: %s: have lines %v of %s, want exactly one:\n%s", ErrAmbiguous, m.Where, found, m.File, text)
}

// command returns the words that identify the test command.
func (m *Mutation) command() string {
	return strings.Join(slices.Concat(m.Env, []string{"go", "test", "./" + m.Package}, m.Args), " ")
}
