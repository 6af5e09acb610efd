package opstest

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// alertName matches the name of an alert in a file of rules.
var alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)

// Alerts checks the file alerts.yml of the working directory: its metrics exist, the
// document explains each alert, alerts_test.yml has each one fire, and promtool
// accepts both files: see [Promtool].
func (m Metrics) Alerts(t *testing.T, document string) {
	t.Helper()
	require.NotEmpty(t, m.Name(t, "alerts.yml"))
	rules, page, examples := read(t, "alerts.yml"), read(t, document), read(t, "alerts_test.yml")
	found := alertName.FindAllStringSubmatch(rules, -1)
	require.NotEmpty(t, found)
	for _, alert := range found {
		require.Contains(t, page, "`"+alert[1]+"`", document)
		require.Contains(t, examples, `alertname="`+alert[1]+`"`, "alerts_test.yml has no example in which the alert fires")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		Promtool(t, args...)
	}
}

// Promtool runs promtool and returns its output. The test fails if promtool finds an
// error. Without promtool the test skips; with JAMQ_REQUIRE_PROMTOOL set, it fails.
func Promtool(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("JAMQ_REQUIRE_PROMTOOL") == "" {
		t.Skip("skipped: there is no promtool here")
	}
	require.NoError(t, err, "JAMQ_REQUIRE_PROMTOOL is set")
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, "promtool %v:\n%s", args, out)
	return string(out)
}

func read(t testing.TB, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(raw)
}
