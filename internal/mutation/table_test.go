package mutation

import (
	"flag"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var runAll = flag.Bool("mutations", false, "run the test command of every mutation; minutes")

// timeLimit bounds one test command. The slowest takes a few seconds.
const timeLimit = 2 * time.Minute

// tables reads testdata. It returns the mutations of each table.
func tables(t *testing.T) map[string][]Mutation {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := make(map[string][]Mutation)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		out[name], err = Parse(filepath.Base(file), string(text))
		require.NoError(t, err)
		require.NotEmpty(t, out[name], file)
	}
	return out
}

// checkout returns a runner for the checkout that contains this package.
func checkout(t *testing.T) Runner {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return Runner{Root: root, Timeout: timeLimit}
}

// TestMutationsApply checks that each mutation of each table still fits the
// code: its lines occur exactly once, the edited file is Go, and the package to
// test exists.
func TestMutationsApply(t *testing.T) {
	root := checkout(t).Root
	for table, mutations := range tables(t) {
		for _, m := range mutations {
			t.Run(table+"/"+m.Name, func(t *testing.T) {
				source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
				require.NoError(t, err)
				edited, err := m.Apply(string(source))
				require.NoError(t, err)
				_, err = parser.ParseFile(token.NewFileSet(), m.File, edited, parser.SkipObjectResolution)
				require.NoError(t, err)
				require.DirExists(t, filepath.Join(root, filepath.FromSlash(m.Package)))
			})
		}
	}
}

// TestMutations runs the test command of every mutation. The command must fail
// with the mutation and pass without it.
func TestMutations(t *testing.T) {
	if !*runAll {
		t.Skip("takes minutes: run it with -mutations")
	}
	r, ctx := checkout(t), t.Context()
	var mu sync.Mutex
	baselines := make(map[string]func() error)
	baseline := func(m *Mutation) error {
		mu.Lock()
		once, ok := baselines[m.command()]
		if !ok {
			once = sync.OnceValue(func() error { return r.Baseline(ctx, m) })
			baselines[m.command()] = once
		}
		mu.Unlock()
		return once()
	}
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for table, mutations := range tables(t) {
		t.Run(table, func(t *testing.T) {
			for _, m := range mutations {
				t.Run(m.Name, func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					require.NoError(t, baseline(&m))
					failed, err := r.Run(ctx, &m)
					require.NoError(t, err)
					t.Logf("noticed by %s", failed[0])
				})
			}
		})
	}
}
