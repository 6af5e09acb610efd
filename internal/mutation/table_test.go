package mutation

import (
	"context"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var runAll = flag.Bool("mutations", false, "run the test command of every mutation, and the tests of the program that does; minutes")

// timeLimit bounds one test command. The slowest takes a few seconds.
const timeLimit = 2 * time.Minute

// inDeepStage skips a test that compiles many programs, unless the mutations run.
func inDeepStage(t *testing.T) {
	t.Helper()
	if !*runAll {
		t.Skip("compiles programs for half a minute: run it with -mutations")
	}
}

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
// test has the test that it names.
func TestMutationsApply(t *testing.T) {
	root := checkout(t).Root
	names := make(map[string][]string) // of tests, by package
	for table, mutations := range tables(t) {
		for _, m := range mutations {
			t.Run(table+"/"+m.Name, func(t *testing.T) {
				source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
				require.NoError(t, err)
				edited, err := m.Apply(string(source))
				require.NoError(t, err)
				_, err = parser.ParseFile(token.NewFileSet(), m.File, edited, parser.SkipObjectResolution)
				require.NoError(t, err)
				if names[m.Package] == nil {
					names[m.Package] = testNames(t, filepath.Join(root, filepath.FromSlash(m.Package)))
				}
				require.True(t, slices.ContainsFunc(names[m.Package], pattern(t, &m).MatchString), "no test matches %v", m.Args)
			})
		}
	}
}

// testNames returns the names of the tests of a package.
func testNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		}
	}
	require.NotEmpty(t, names, dir)
	return names
}

// pattern returns the pattern of the tests that a mutation runs, without that of
// subtests.
func pattern(t *testing.T, m *Mutation) *regexp.Regexp {
	t.Helper()
	for i, arg := range m.Args {
		if arg == "-run" && i+1 < len(m.Args) {
			top, _, _ := strings.Cut(m.Args[i+1], "/")
			expr, err := regexp.Compile(top)
			require.NoError(t, err)
			return expr
		}
	}
	return regexp.MustCompile("^Test")
}

// TestMutations runs the test command of every mutation. The command must fail
// with the mutation and pass without it. The mutations of a table that test the
// same package share one compilation.
func TestMutations(t *testing.T) {
	inDeepStage(t)
	r, ctx := checkout(t), t.Context()
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for table, mutations := range tables(t) {
		t.Run(table, func(t *testing.T) {
			s := newShared(r)
			t.Cleanup(func() { require.NoError(t, s.close()) })
			for _, m := range mutations {
				t.Run(m.Name, func(t *testing.T) {
					s.add(&m) // before Parallel, so that all are known when the first goes on
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					run, err := s.runner(ctx, &m)
					require.NoError(t, err)
					require.NoError(t, s.baseline(ctx, run, &m))
					failed, err := run.Run(ctx, &m)
					require.NoError(t, err)
					t.Logf("noticed by %s", failed[0])
				})
			}
		})
	}
}

// tester runs mutations: a [Runner] or a [Binary].
type tester interface {
	Run(context.Context, *Mutation) ([]string, error)
	Baseline(context.Context, *Mutation) error
}

// shared holds the compiled tests of each package, and the outcome of each test
// command without a mutation.
type shared struct {
	alone     Runner
	mu        sync.Mutex
	mutations map[string][]*Mutation
	binaries  map[string]func() (map[*Mutation]*Binary, error)
	baselines map[string]func() error
}

func newShared(r Runner) *shared {
	return &shared{
		alone: r, mutations: make(map[string][]*Mutation),
		binaries: make(map[string]func() (map[*Mutation]*Binary, error)), baselines: make(map[string]func() error),
	}
}

// add selects a mutation to be compiled.
func (s *shared) add(m *Mutation) { s.mutations[m.Package] = append(s.mutations[m.Package], m) }

// runner returns the binary that contains a mutation, or the runner if none does.
func (s *shared) runner(ctx context.Context, m *Mutation) (tester, error) {
	s.mu.Lock()
	compile, ok := s.binaries[m.Package]
	if !ok {
		compile = sync.OnceValues(func() (map[*Mutation]*Binary, error) {
			return s.alone.CompileAll(ctx, m.Package, s.mutations[m.Package])
		})
		s.binaries[m.Package] = compile
	}
	s.mu.Unlock()
	binaries, err := compile()
	if b := binaries[m]; b != nil {
		return b, err
	}
	return s.alone, err
}

// baseline runs the test command of a mutation without the mutation, once for
// all mutations that have it.
func (s *shared) baseline(ctx context.Context, run tester, m *Mutation) error {
	s.mu.Lock()
	once, ok := s.baselines[m.command()]
	if !ok {
		once = sync.OnceValue(func() error { return run.Baseline(ctx, m) })
		s.baselines[m.command()] = once
	}
	s.mu.Unlock()
	return once()
}

// close deletes the binaries.
func (s *shared) close() error {
	var err error
	for _, compiled := range s.binaries {
		binaries, _ := compiled()
		for _, b := range binaries {
			err = errors.Join(err, b.Close())
		}
	}
	return err
}
