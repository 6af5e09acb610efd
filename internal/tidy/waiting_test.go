package tidy

import (
	"slices"
	"strings"
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
	took := time.Now().Sub(began)
	require.Less(t, took, time.Second)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	time.AfterFunc(time.Second, stop)
	_, _ = context.WithTimeout(ctx, 5*time.Second)
	_, _ = context.WithTimeout(ctx, 60*time.Second)
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	start(l.Addr())
	l.Close()
}

func wait() { time.Sleep(time.Second) }
`
	const more = `
func TestX(t *testing.T) {
	took := time.Since(began).Seconds()
	require.Lessf(t, took, 5.0, "")
	end := time.Now()
	require.Less(t, end.Sub(began), time.Second)
	var slow = time.Since(began)
	require.InEpsilon(t, slow, 1, 1)
	for !time.Now().After(limit) {
	}
	_, _ = context.WithDeadline(ctx, limit)
	go func() { time.Sleep(time.Second) }()
	group.Go(func() { time.Sleep(time.Second) })
	t.Cleanup(func() { time.Sleep(time.Second) })
}

func port() int {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func served() {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	defer l.Close()
	serve(l)
	dial(l.Addr())
}
`
	found := func(name, code string) (lines []int) {
		tree, err := Load(fstest.MapFS{name: {Data: []byte("package pkg\n" + code)}})
		require.NoError(t, err)
		for _, f := range Waiting(tree) {
			require.Equal(t, "waiting", f.Check)
			lines = append(lines, f.Line)
		}
		slices.Sort(lines)
		return lines
	}
	real := []int{4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 20}
	require.Equal(t, append(real, 23), found("pkg/x_test.go", body))
	require.Equal(t, []int{5, 7, 9, 10, 12, 13, 14, 15, 21}, found("pkg/x_test.go", more))
	require.Equal(t, []int{5, 7, 9, 10, 12, 13, 14, 15, 21}, found("pkg/x_test.go", "import \"testing/synctest\"; "+more), "goroutines outside of the bubbles")
	require.Empty(t, found("pkg/x.go", body), "no test")
	require.NotEmpty(t, found("pkg/x.go", "import \"testing\"\n"+body), "a helper of tests")
	require.Empty(t, found("internal/wait/x.go", "import \"testing\"\n"+body))
	require.Equal(t, real, found("pkg/x_bench_test.go", body), "a test among benchmarks")
	require.Empty(t, found("pkg/x_test.go", strings.Replace(body[:strings.Index(body, "func wait")], "TestX", "BenchmarkX", 1)))
	const synctest = "import \"testing/synctest\"\n"
	bubble := strings.Replace(body, "{\n", "{ synctest.Test(t, func(t *testing.T) {\n", 1)
	bubble = strings.Replace(bubble, "}\n\nfunc wait", "})}\n\nfunc wait", 1)
	require.Equal(t, []int{7, 21}, found("pkg/x_test.go", synctest+bubble), "Eventually starts a goroutine, and a port is real")
	require.Equal(t, []int{7, 21}, found("pkg/x_test.go", "import \"x/internal/bubble\"\n"+bubble))
	require.Contains(t, found("pkg/x_test.go", synctest+body), 5, "outside of the bubbles")
	subtest := strings.Replace(bubble, "synctest.Test(t,", `t.Run("x",`, 1)
	require.Contains(t, found("pkg/x_test.go", synctest+subtest), 5, "outside of the bubbles")
	const both = "import (\n\t\"testing/synctest\"\n\n\t\"x/internal/wait\"\n)\n"
	require.Equal(t, []int{5}, found("pkg/x_test.go", both), "two kinds of time in one file")
}
