package tidy

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	update = flag.Bool("update", false, "lower the numbers in debts.txt to those of now, and write the public names of package eoa")
	show   = flag.String("show", "", "print all findings in files whose path begins with this `prefix`")
)

// root is the directory of the module, seen from this package.
const root = "../.."

const debtsHeader = `# Findings that a package or a document may still have: place, check, number.
# Numbers only fall: go test ./internal/tidy -update
`

func TestTidy(t *testing.T) {
	tree := loadAll(t)
	findings := append(All(tree), pureFindings(t, tree)...)

	if *show != "" {
		for _, f := range findings {
			if strings.HasPrefix(f.Path, *show) {
				fmt.Println(f)
			}
		}
		return
	}

	text, err := os.ReadFile("debts.txt")
	require.NoError(t, err)
	allowed, err := ParseDebts(string(text))
	require.NoError(t, err)
	now := Count(findings)

	for _, debt := range allowed.Exceeds(now) {
		t.Errorf("%s: %d findings of the check %q, at most %d allowed:\n%s", debt.Place, now[debt], debt.Check, allowed[debt], list(findings, debt))
	}
	lower := allowed.Lower(now)
	if *update {
		require.NoError(t, os.WriteFile("debts.txt", []byte(debtsHeader+lower.String()), 0o644))
		return
	}
	for _, debt := range lower.Exceeds(allowed) {
		t.Errorf("%s: %d findings of the check %q, but debts.txt has %d: run go test ./internal/tidy -update, and commit the file",
			debt.Place, lower[debt], debt.Check, allowed[debt])
	}
}

// loadAll loads the repository.
func loadAll(t *testing.T) *Tree {
	t.Helper()
	tree, err := Load(os.DirFS(root))
	require.NoError(t, err)
	require.NotEmpty(t, tree.Files)
	require.NotEmpty(t, tree.Documents)
	return tree
}

// list returns the findings of one debt, one per line.
func list(findings []Finding, debt Debt) string {
	var lines []string
	for _, f := range findings {
		if _, same := Count([]Finding{f})[debt]; same {
			lines = append(lines, f.String())
		}
	}
	return strings.Join(lines, "\n")
}
