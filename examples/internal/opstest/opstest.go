// Package opstest checks what a program offers its operators: that each metric is
// explained, and that dashboards, alerts and documents name only metrics that the
// program has.
package opstest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// prefix begins the names of the metrics of this repository. The client library
// adds others.
const prefix = "jamq_"

// Metrics are metrics by name.
type Metrics map[string]*dto.MetricFamily

// Read reads the text that a program serves at /metrics.
func Read(t testing.TB, text string) Metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// units has the words by which a help text must name the unit that a suffix of a
// name stands for.
var units = map[string]string{
	"_seconds": "in seconds", "_bytes": "in bytes", "_wei": "in wei", "_ratio": "; 1 is ", "_total": "Number of ",
}

// Explained requires of each metric a help text that names its unit and its
// labels, and that no other metric has.
func (m Metrics) Explained(t testing.TB) {
	t.Helper()
	names := map[string]string{}
	for name, f := range m {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		help := f.GetHelp()
		require.Regexp(t, `^[A-Z1].{20,}\.$`, help, name)
		require.Empty(t, names[help], "%s has the help text of %s", name, names[help])
		names[help] = name
		for suffix, words := range units {
			if strings.HasSuffix(name, suffix) {
				require.Contains(t, help, words, name)
			}
		}
		for _, label := range f.Metric[0].Label {
			require.Contains(t, help, "by "+label.GetName(), "%s must explain its label", name)
		}
	}
	require.NotEmpty(t, names)
}

var (
	used    = regexp.MustCompile(`\b((?:jamq|go|process)_[a-z_]+)\b(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`(\w+)(=~|=|!~|!=)\\?"([^"\\]*)\\?"`)
	// part matches the names that Prometheus gives to parts of a histogram.
	part = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// Name requires that the metrics have each metric that a file names, and for each
// value of a label in it a series with that value. It returns the metrics. A
// metric whose name begins with one of others is left out: another program has it.
func (m Metrics) Name(t *testing.T, file string, others ...string) (found []string) {
	t.Helper()
	for _, use := range used.FindAllStringSubmatch(read(t, file), -1) {
		name := use[1]
		if slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(name, other) }) {
			continue
		}
		if m[name] == nil {
			name = part.ReplaceAllString(name, "")
		}
		require.NotNil(t, m[name], "%s names %s, which does not exist", file, use[1])
		found = append(found, name)
		for _, match := range matcher.FindAllStringSubmatch(use[2], -1) {
			for value := range strings.SplitSeq(match[3], "|") {
				require.True(t, m.labelled(name, match[1], value), "%s names %s with %s %s, which does not exist", file, name, match[1], value)
			}
		}
	}
	return found
}

// scraped are the labels that Prometheus adds.
var scraped = []string{"job", "instance"}

// labelled reports whether a metric has a series with the value of a label. The
// value may be a regular expression.
func (m Metrics) labelled(name, label, value string) bool {
	if slices.Contains(scraped, label) {
		return true
	}
	pattern := regexp.MustCompile("^(?:" + value + ")$")
	return slices.ContainsFunc(m[name].Metric, func(series *dto.Metric) bool {
		return slices.ContainsFunc(series.Label, func(l *dto.LabelPair) bool {
			return l.GetName() == label && pattern.MatchString(l.GetValue())
		})
	})
}
