package tidy

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ErrDebts is returned by [ParseDebts] for a text that is not a list of
// debts.
var ErrDebts = errors.New("tidy: malformed list of debts")

// A Debt is the kind of findings of one check in one package, or in one
// document.
type Debt struct {
	// Place is the directory of the package, "." for the root, or the path
	// of the document.
	Place string
	// Check is the name of the check.
	Check string
}

// Debts is the number of findings that each place may still have. A place
// that is not listed has none.
type Debts map[Debt]int

// ParseDebts reads a list of debts. Each line has the place, the name of the
// check and the number. Empty lines and lines that begin with # are comments.
func ParseDebts(text string) (Debts, error) {
	debts := Debts{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%w: line %d has %d fields, want place, check and number", ErrDebts, i+1, len(fields))
		}
		number, err := strconv.Atoi(fields[2])
		if err != nil || number <= 0 {
			return nil, fmt.Errorf("%w: line %d has the number %q, want one above 0", ErrDebts, i+1, fields[2])
		}
		debts[Debt{fields[0], fields[1]}] = number
	}
	return debts, nil
}

// Count returns the number of findings of each place.
func Count(findings []Finding) Debts {
	debts := Debts{}
	for _, f := range findings {
		place := f.Path
		if path.Ext(place) == ".go" {
			place = path.Dir(place)
		}
		debts[Debt{place, f.Check}]++
	}
	return debts
}

// Lower returns d with each number lowered to that of now. Numbers that would
// rise stay, and nothing is added.
func (d Debts) Lower(now Debts) Debts {
	lower := Debts{}
	for debt, number := range d {
		if number = min(number, now[debt]); number > 0 {
			lower[debt] = number
		}
	}
	return lower
}

// Exceeds returns the debts that have a greater number in now, in the order of
// [Debts.String].
func (d Debts) Exceeds(now Debts) []Debt {
	return slices.DeleteFunc(now.sorted(), func(debt Debt) bool { return now[debt] <= d[debt] })
}

// String returns the list in the form that [ParseDebts] reads.
func (d Debts) String() string {
	var b strings.Builder
	for _, debt := range d.sorted() {
		fmt.Fprintf(&b, "%s %s %d\n", debt.Place, debt.Check, d[debt])
	}
	return b.String()
}

func (d Debts) sorted() []Debt {
	return slices.SortedFunc(maps.Keys(d), func(a, b Debt) int {
		return strings.Compare(a.Place+" "+a.Check, b.Place+" "+b.Check)
	})
}
