package jamtest_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateSeveral = flag.Bool("update", false, "write the tables of docs/several-builders.md")

const severalSeeds = 5 // of a run with faults; without faults the seed changes nothing

// runs plays a scenario with its seeds, and returns the sum of the results. It checks the promises
// that do not depend on numbers.
func (s scenario) runs(t *testing.T) (sum result) {
	t.Helper()
	for s.seed = 0; s.seed == 0 || s.faults && s.seed < severalSeeds; s.seed++ {
		w, err := newSeveral(s)
		require.NoError(t, err)
		require.NoError(t, w.run())
		r := w.result()
		verdict := w.oracle.Check()
		again := 0
		for _, times := range verdict.Executed {
			again += times - 1
		}
		require.Equal(t, again, r.twice, "the oracle, which reads the packages, counts otherwise than the service")
		require.Zero(t, r.lost, "%+v: %s", s, verdict.String())
		require.Empty(t, verdict.Lost)
		if s.guard {
			require.Zero(t, r.twice, "%+v: %s", s, verdict.String())
		}
		sum.add(r)
	}
	return sum
}

func (r *result) add(other result) {
	r.reports, r.useful = r.reports+other.reports, r.useful+other.useful
	r.executed, r.kept = r.executed+other.executed, r.kept+other.kept
	r.delays = append(r.delays, other.delays...)
	r.twice, r.lost = r.twice+other.twice, r.lost+other.lost
}

// row returns the columns of a table, without the first ones.
func (r *result) row() string {
	slices.Sort(r.delays)
	sum, n := 0, len(r.delays)
	for _, slots := range r.delays {
		sum += slots
	}
	percent := func(part, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of)) }
	return fmt.Sprintf("%s | %.1f | %d | %s | %s", percent(r.reports-r.useful, r.reports),
		float64(sum)/float64(n), r.delays[n*99/100], percent(r.executed-r.kept, r.executed),
		percent(r.twice, n))
}

const severalColumns = " wasted cores | delay | p99 | lost work | again |\n"

// TestSeveralBuilders: the tables of docs/several-builders.md are those of the simulation. With the
// guard no transaction is executed twice, and none is ever lost.
func TestSeveralBuilders(t *testing.T) {
	var table strings.Builder
	table.WriteString("| rule | faults | builders |" + severalColumns + "|---|---|---|---|---|---|---|---|---|\n")
	rules := []struct {
		name string
		scenario
	}{
		{"none", scenario{}},
		{"guard", scenario{guard: true}},
		{"guard and turns", scenario{guard: true, turn: 12, quiet: 3}},
	}
	for _, faults := range []bool{false, true} {
		name := map[bool]string{false: "no", true: "yes"}[faults]
		alone := scenario{builders: 1, guard: true, faults: faults}.runs(t)
		fmt.Fprintf(&table, "| one builder | %s | 1 | %s |\n", name, alone.row())
		for _, rule := range rules {
			for _, builders := range []int{2, 3, 5} {
				rule.builders, rule.faults = builders, faults
				r := rule.runs(t)
				fmt.Fprintf(&table, "| %s | %s | %d | %s |\n", rule.name, name, builders, r.row())
			}
		}
	}
	requireTable(t, "rules", table.String())
}

// TestTurns: so is the table of schedules.
func TestTurns(t *testing.T) {
	var table strings.Builder
	table.WriteString("| turn | quiet | down |" + severalColumns + "|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range []scenario{
		{turn: 1}, {turn: 6}, {turn: 6, quiet: 3}, {turn: 12}, {turn: 12, quiet: 3}, {turn: 24, quiet: 3},
		{turn: 12, quiet: 3, down: 1}, {turn: 24, quiet: 3, down: 1},
	} {
		s.builders, s.guard, s.faults = 3, true, true
		r := s.runs(t)
		fmt.Fprintf(&table, "| %d | %d | %d | %s |\n", s.turn, s.quiet, s.down, r.row())
	}
	requireTable(t, "turns", table.String())
}

// requireTable compares a table of the document with the one that the simulation gives. With
// -update it writes the table.
func requireTable(t *testing.T, name, table string) {
	t.Helper()
	const path = "../docs/several-builders.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	begin := fmt.Sprintf("<!-- %s: written by go test ./jamtest -run 'TestSeveralBuilders|TestTurns' -update -->\n\n", name)
	end := fmt.Sprintf("\n<!-- end of %s -->", name)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found, "no mark at the beginning of %s", name)
	had, after, found := strings.Cut(rest, end)
	require.True(t, found, "no mark at the end of %s", name)
	if *updateSeveral {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+table+end+after), 0o644))
		return
	}
	require.Equal(t, table, had, "run go test ./jamtest -run 'TestSeveralBuilders|TestTurns' -update")
}
