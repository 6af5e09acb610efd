package mutation

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tests = `package tiny

import (
	"flag"
	"os"
	"testing"
)

var least = flag.Int("tiny.least", 0, "")

func TestMax(t *testing.T) {
	if Max(2, 1) != 2 || Max(1, 2) != 2 {
		t.Fatal("Max")
	}
}

func TestMin(t *testing.T) {
	if m := Min(1, 2); m < *least || os.Getenv("TINY") != "" {
		t.Fatal("Min")
	}
}

func TestSkipped(t *testing.T) { t.Skip("always") }
`

// tiny returns a runner in a new module, with a package in the directory sub.
func tiny(t *testing.T) Runner {
	t.Helper()
	t.Setenv("GOWORK", "off")
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/outer\n\ngo 1.25\n", "sub/go.mod": "module example.com/tiny\n\ngo 1.25\n",
		"sub/tiny.go": source, "sub/tiny_test.go": tests,
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	return Runner{Root: root, Timeout: time.Minute}
}

func TestRun(t *testing.T) {
	inDeepStage(t)
	r := tiny(t)
	for name, c := range map[string]struct {
		test, edit string
		failed     []string
		err        error
		shared     bool // by a Binary
	}{
		"noticed":             {"sub -run TestMax", "-if a > b {\n+if a < b {\n", []string{"TestMax"}, nil, true},
		"survives":            {"sub -run TestMax", "-if a > b {\n+if a >= b {\n", nil, ErrSurvived, true},
		"unknown name":        {"sub -run TestMax", "-if a > b {\n+if a > c {\n", nil, ErrBuild, false},
		"no syntax":           {"sub -run TestMax", "-if a > b {\n+if a > > b {\n", nil, ErrBuild, false},
		"never ends":          {"sub -run TestMax -timeout=1s", "-if a > b {\n+for a > b {}\n+if a > b {\n", nil, ErrTimeout, true},
		"panics":              {"sub -run TestMax", "-if a > b {\n+if a > b { panic(a)\n", []string{"TestMax"}, nil, true},
		"exits":               {"sub -run TestMax", "-package tiny\n+package tiny; import \"os\"; func init() { os.Exit(1) }\n", nil, ErrCommand, false},
		"no such package":     {"other -run TestMax", "-if a > b {\n+if a < b {\n", nil, ErrBuild, false},
		"does not apply":      {"sub -run TestMax", "-if a == b {\n+if a < b {\n", nil, ErrNotFound, false},
		"applies twice":       {"sub -run TestMax", "-return a\n+return b\n", nil, ErrAmbiguous, false},
		"flag of the test":    {"sub -run TestMin -tiny.least 1", "-if a < b {\n+if a < b { a = 0\n", []string{"TestMin"}, nil, true},
		"without the flag":    {"sub -run TestMin", "-if a < b {\n+if a < b { a = 0\n", nil, ErrSurvived, true},
		"environment":         {"sub -run TestMin\nenv: TINY=1", "-if a < b {\n+if b > a {\n", []string{"TestMin"}, nil, true},
		"skipped is no alarm": {"sub -run TestSkipped", "-if a > b {\n+if a < b {\n", nil, ErrSurvived, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := one(t, "mutation: m\nfile: sub/tiny.go\ntest: "+c.test+"\n"+c.edit)
			failed, err := r.Run(t.Context(), m)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.failed, failed)

			compiled, err := r.CompileAll(t.Context(), m.Package, []*Mutation{m})
			require.NoError(t, err)
			b, shared := compiled[m]
			require.Equal(t, c.shared, shared)
			if !shared {
				return
			}
			failed, err = b.Run(t.Context(), m)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.failed, failed)
			require.NoError(t, b.Close())
			require.NoFileExists(t, b.path)
		})
	}
	written, err := os.ReadFile(filepath.Join(r.Root, "sub", "tiny.go"))
	require.NoError(t, err)
	require.Equal(t, source, string(written), "the checkout is not changed")
}

func TestBaseline(t *testing.T) {
	r := tiny(t)
	for name, c := range map[string]struct {
		test string
		err  error
	}{
		"passes":       {"sub -run TestMax", nil},
		"fails":        {"sub -run TestMin -tiny.least 3", ErrBaseline},
		"no such test": {"sub -run TestOther", ErrBaseline},
		"only skips":   {"sub -run TestSkipped", ErrBaseline},
		"no package":   {"other -run TestMax", ErrBuild},
	} {
		t.Run(name, func(t *testing.T) {
			m := one(t, "mutation: m\nfile: sub/tiny.go\ntest: "+c.test+"\n-if a > b {\n")
			require.ErrorIs(t, r.Baseline(t.Context(), m), c.err)
		})
	}
}
