package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// unit formats a value.
type unit func(float64) string

func nanoseconds(v float64) string  { return fmt.Sprintf("%.0f ns", v) }
func milliseconds(v float64) string { return fmt.Sprintf("%.3f ms", v/1e6) }
func bytes(v float64) string        { return fmt.Sprintf("%.0f B", v) }
func count(v float64) string        { return fmt.Sprintf("%.2f", v) }
func percent(v float64) string      { return fmt.Sprintf("%.1f %%", v) }

// row is a workload with a value for each column of its table. The value is 0
// if a contender cannot run it.
type row struct {
	what   string
	unit   unit
	values []float64
	// ratio is the required speed relative to geth. bare and cosmos are the
	// greatest values allowed relative to those contenders, most is the greatest
	// and least the smallest value allowed. 0 means no requirement.
	ratio, bare, cosmos, most, least float64
}

// slower is how much worse jamq's ratio to a peer may be than at the last
// release before the row is marked.
const slower = 1.25

// table is a list of workloads. The columns are the names of the contenders.
type table struct {
	columns []string
	rows    []row
	// released has the figures of the last release, by workload.
	released map[string]figures
}

// String draws the table. The ratios of the last release are in brackets.
func (t table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := append([]string{"workload"}, t.columns...)
	head = append(head, "geth/jamq")
	if slices.Contains(t.columns, "bare") {
		head = append(head, "jamq/bare")
	}
	fmt.Fprintln(w, strings.Join(append(head, "wanted", ""), "\t")+"\t")
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(t.cells(r), "\t")+"\t")
	}
	_ = w.Flush() // into memory
	return b.String()
}

func (t table) cells(r row) []string {
	cells := []string{r.what}
	for _, name := range t.columns {
		if v := t.value(r, name); v == 0 {
			cells = append(cells, "–")
		} else {
			cells = append(cells, r.unit(v))
		}
	}
	cells = append(cells, t.quotient(r, "geth", "jamq"))
	if slices.Contains(t.columns, "bare") {
		cells = append(cells, t.quotient(r, "jamq", "bare"))
	}
	wanted, verdict := t.judge(r)
	return append(cells, wanted, verdict)
}

// value returns the value of a contender, or 0 if it was not measured.
func (t table) value(r row, contender string) float64 {
	i := slices.Index(t.columns, contender)
	if i < 0 || i >= len(r.values) {
		return 0
	}
	return r.values[i]
}

// quotient formats the ratio of two contenders, with that of the last release
// in brackets, or returns "" if one of them was not measured.
func (t table) quotient(r row, a, b string) string {
	now := ratio(t.value(r, a), t.value(r, b))
	if now == 0 {
		return ""
	}
	if then := ratio(t.released[r.what][a], t.released[r.what][b]); then != 0 {
		return times(now) + " (" + times(then) + ")"
	}
	return times(now)
}

// lost reports whether jamq has become slower beside all peers that were
// measured with it now and at the last release. One peer can change alone.
func (t table) lost(r row) bool {
	compared := false
	for _, peer := range t.columns {
		now := ratio(t.value(r, "jamq"), t.value(r, peer))
		then := ratio(t.released[r.what]["jamq"], t.released[r.what][peer])
		if peer == "jamq" || now == 0 || then == 0 {
			continue
		}
		if compared = true; now <= slower*then {
			return false
		}
	}
	return compared
}

// ratio returns a/b, or 0 if one of them was not measured.
func ratio(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a / b
}

// times formats a ratio. Small ratios get one more digit.
func times(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f×", v)
	}
	return fmt.Sprintf("%.0f×", v)
}

// judge returns the goals of a row, and whether jamq reaches all of them and is
// as fast as at the last release.
func (t table) judge(r row) (wanted, verdict string) {
	jamq := t.value(r, "jamq")
	var parts []string
	missed := false
	want := func(goal float64, text string, reached bool) {
		if goal > 0 {
			parts = append(parts, text)
			missed = missed || !reached
		}
	}
	want(r.ratio, "geth/jamq ≥ "+times(r.ratio), t.value(r, "geth") >= r.ratio*jamq)
	want(r.bare, "jamq/bare ≤ "+times(r.bare), jamq <= r.bare*t.value(r, "bare"))
	want(r.cosmos, "jamq/cosmos ≤ "+times(r.cosmos), jamq <= r.cosmos*t.value(r, "cosmos"))
	want(r.most, "≤ "+r.unit(r.most), jamq <= r.most)
	want(r.least, "≥ "+r.unit(r.least), jamq >= r.least)
	wanted = strings.Join(parts, ", ")
	switch {
	case missed:
		return wanted, "MISSED"
	case t.lost(r):
		return wanted, "SLOWER"
	case wanted == "":
		return "", ""
	}
	return wanted, "ok"
}
