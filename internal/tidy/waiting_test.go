package tidy

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestWaiting: each way to depend on the speed of the machine is found, and virtual time
// and benchmarks are free of the rules.
func TestWaiting(t *testing.T) {
	const body = `
func TestX(t *testing.T) {
	time.Sleep(time.Second)
	<-time.After(time.Second)
	require.Eventually(t, ready, time.Second, time.Millisecond)
	require.Less(t, time.Since(began), time.Second)
	_ = runtime.NumGoroutine()
	if time.Since(began) > time.Second {
	}
	t.Log(time.Since(began))
}
`
	found := func(name, code string) (lines []int) {
		tree, err := Load(fstest.MapFS{name: {Data: []byte("package pkg\n" + code)}})
		require.NoError(t, err)
		for _, f := range Waiting(tree) {
			require.Equal(t, "waiting", f.Check)
			lines = append(lines, f.Line)
		}
		return lines
	}
	require.Equal(t, []int{4, 5, 6, 7, 8, 9}, found("pkg/x_test.go", body))
	require.Empty(t, found("pkg/x.go", body), "no test")
	require.Empty(t, found("pkg/x_bench_test.go", body), "a benchmark")
	const synctest = "import \"testing/synctest\"\n"
	require.Equal(t, []int{7}, found("pkg/x_test.go", synctest+body), "Eventually starts a goroutine")
	require.Equal(t, []int{7}, found("pkg/x_test.go", "import \"x/internal/bubble\"\n"+body))
	const both = "import (\n\t\"testing/synctest\"\n\n\t\"x/internal/wait\"\n)\n"
	require.Equal(t, []int{5}, found("pkg/x_test.go", both), "two kinds of time in one file")
}
