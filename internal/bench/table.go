package main

import (
	"fmt"
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

// row is a workload with a value for each contender. The value is 0 if a
// contender cannot run it.
type row struct {
	what   string
	unit   unit
	values []float64
	// ratio is the required speed relative to geth, most the greatest and least
	// the smallest value allowed. 0 means no requirement.
	ratio, most, least float64
}

type table struct{ rows []row }

// String draws the table.
func (t table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"workload"}
	for _, c := range contenders {
		head = append(head, c.name)
	}
	fmt.Fprintln(w, strings.Join(append(head, "geth/jamq", "wanted", ""), "\t")+"\t")
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t")+"\t")
	}
	_ = w.Flush() // into memory
	return b.String()
}

func (r row) cells() []string {
	cells := []string{r.what}
	for _, v := range r.values {
		if v == 0 {
			cells = append(cells, "–")
		} else {
			cells = append(cells, r.unit(v))
		}
	}
	for len(cells) < 1+len(contenders) {
		cells = append(cells, "–")
	}
	last := r.values[len(r.values)-1]
	ratio := ""
	if r.values[0] > 0 {
		ratio = times(r.values[0] / last)
	}
	wanted, verdict := r.judge(last)
	return append(cells, ratio, wanted, verdict)
}

// times formats a ratio. Small ratios get one more digit.
func times(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f×", v)
	}
	return fmt.Sprintf("%.0f×", v)
}

// judge returns the requirement of a row, and whether the value meets it.
func (r row) judge(value float64) (wanted, verdict string) {
	var parts []string
	ok := true
	if r.ratio > 0 {
		parts = append(parts, "≥ "+times(r.ratio))
		ok = ok && r.values[0]/value >= r.ratio
	}
	if r.most > 0 {
		parts = append(parts, "≤ "+r.unit(r.most))
		ok = ok && value <= r.most
	}
	if r.least > 0 {
		parts = append(parts, "≥ "+r.unit(r.least))
		ok = ok && value >= r.least
	}
	switch {
	case len(parts) == 0:
		return "", ""
	case ok:
		return strings.Join(parts, ", "), "ok"
	}
	return strings.Join(parts, ", "), "MISSED"
}
