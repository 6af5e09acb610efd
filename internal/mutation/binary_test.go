package mutation

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shapes has a function of every shape that a switch must call.
const shapes = `package shapes

import "fmt"

type Pair[T any] struct{ a, b T }

func (p *Pair[T]) Swap() { p.a, p.b = p.b, p.a }
func (Pair[_]) Name(string) string { return "pair" }

type Kind int

func (_ Kind) Text(_, tail string, _ ...int) (text string) {
	text = "kind" + tail
	return
}

// Join has a generic and a variadic parameter.
func Join[T fmt.Stringer, S any](sep string, list ...T) (string, int) {
	out := ""
	for _, e := range list {
		out += e.String() + sep
	}
	return out, len(list)
}

func Fact(n int) int {
	if n < 2 {
		return 1
	}
	return n * Fact(n-1)
}

var start = Fact(3)

func init() { start++ }

//go:noinline
func Fixed() int { return 1 }

const Limit = 3
`

const shapesTests = `package shapes

import "testing"

type one struct{}

func (one) String() string { return "1" }

func TestShapes(t *testing.T) {
	p := Pair[int]{1, 2}
	p.Swap()
	text, n := Join[one, int](",", one{}, one{})
	if p.a != 2 || p.Name("") != "pair" || Kind(1).Text("", "s", 1, 2) != "kinds" || text != "1,1," || n != 2 ||
		Fact(4) != 24 || start != 7 || Fixed() != 1 || Limit != 3 {
		t.Fatal(p, text, n, start)
	}
}
`

// edits breaks each function of shapes. The value is true if a binary can
// contain the edit.
var edits = map[string]bool{
	"-func (p *Pair[T]) Swap() { p.a, p.b = p.b, p.a }\n+func (p *Pair[T]) Swap() { p.a = p.b; p.b = p.b }\n" +
		"-func (Pair[_]) Name(string) string { return \"pair\" }\n+func (Pair[_]) Name(string) string { return \"\" }\n": true,
	"-\ttext = \"kind\" + tail\n":                                      true,
	"-\treturn out, len(list)\n+\treturn out, 0\n":                     true,
	"-\t\tout += e.String() + sep\n+\t\tout += e.String()\n":           true,
	"-\tif n < 2 {\n+\tif n < 3 {\n":                                   true,
	"-\t\treturn 1\n+\t\treturn 2\n":                                   true,
	"-func init() { start++ }\n+func init() { start-- }\n":             false,
	"-func Fixed() int { return 1 }\n+func Fixed() int { return 2 }\n": false,
	"-const Limit = 3\n+const Limit = 4\n":                             false,
	"-\treturn n * Fact(n-1)\n+\treturn n * Missing(n-1)\n":            false,
	"-\treturn n * Fact(n-1)\n+\treturn n * Fact(n-1) +\n":             false,
}

// module returns a runner for a module with one package.
func module(t *testing.T, name, source, tests string) Runner {
	t.Helper()
	t.Setenv("GOWORK", "off")
	root := t.TempDir()
	for file, content := range map[string]string{
		"go.mod": "module example.com/" + name + "\n\ngo 1.25\n", name + ".go": source, name + "_test.go": tests,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(content), 0o644))
	}
	return Runner{Root: root, Timeout: time.Minute}
}

// TestCompileAll compiles mutations of all shapes of functions together. Two of
// the edits do not compile, and three do not change bodies of functions that a
// switch can call.
func TestCompileAll(t *testing.T) {
	inDeepStage(t)
	r := module(t, "shapes", shapes, shapesTests)
	var all []*Mutation
	shared := make(map[*Mutation]bool)
	for edit, can := range edits {
		m := one(t, "mutation: m\nfile: shapes.go\ntest: . -run TestShapes\n"+edit)
		all, shared[m] = append(all, m), can
	}
	compiled, err := r.CompileAll(t.Context(), ".", all)
	require.NoError(t, err)
	for _, m := range all {
		b := compiled[m]
		require.Equal(t, shared[m], b != nil, m.after)
		if b == nil {
			continue
		}
		require.NoError(t, b.Baseline(t.Context(), m))
		failed, err := b.Run(t.Context(), m)
		require.NoError(t, err, m.after)
		require.Equal(t, []string{"TestShapes"}, failed)
	}
	for _, b := range compiled {
		require.NoError(t, b.Close())
	}
}
