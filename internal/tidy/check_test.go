package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// rules is the document with the labels that the samples cite.
const rules = "# Rules\n\n- R1: a rule\n| B2 | a promise |\n"

// run applies a check to a tree of one Go file, one document, and rules. It
// returns the findings as strings.
func run(t *testing.T, check func(*Tree) []Finding, code, document string) []string {
	t.Helper()
	files := fstest.MapFS{Rules: {Data: []byte(rules)}}
	if code != "" {
		files["pkg/code.go"] = &fstest.MapFile{Data: []byte("package pkg\n\n" + code)}
	}
	if document != "" {
		files["page.md"] = &fstest.MapFile{Data: []byte(document)}
	}
	tree, err := Load(files)
	require.NoError(t, err)
	var all []string
	for _, f := range check(tree) {
		all = append(all, f.String())
	}
	return all
}

func TestWidth(t *testing.T) {
	wide := strings.Repeat("word ", 20) + "x" // 101 columns
	require.Equal(t, []string{
		"pkg/code.go:3: width: the line has 104 columns; break it before column 101",
		"pkg/code.go:5: width: the line has 109 columns; break it before column 101",
		"page.md:2: width: the line has 101 columns; break it before column 101",
	}, run(t, Width, "// "+wide+"\nvar x int\nvar y int // "+wide[6:]+"x\n", "A title.\n"+wide+"\n"))

	require.Empty(t, run(t, Width, "// "+wide[5:]+"\nvar x int\n", wide[1:]+"\n"), "100 columns")
	require.Empty(t, run(t, Width, "// https://"+strings.Repeat("x", 120)+"\nvar x = `"+wide+"`\n", ""), "no space to break at, and code")
	require.Empty(t, run(t, Width, "// Output:\n// "+wide+"\n", ""), "the output of an example")
}

func TestLists(t *testing.T) {
	require.Equal(t, []string{
		"pkg/code.go:3: lists: a dash in running text; write a list with one indented item per line",
		"pkg/code.go:4: lists: a dash in running text; write a list with one indented item per line",
		"pkg/code.go:5: lists: a dash in running text; write a list with one indented item per line",
	}, run(t, Lists, "// One of these: - a\n// second; -\n// - a third\nvar x int\n", ""))
	require.Empty(t, run(t, Lists, "// One of these:\n//\n//   - a well-known item\n//   - 1 − 2\n//\n//\tx := a - b\nvar x = 1 - 2\n", ""))
}

func TestSize(t *testing.T) {
	function := func(lines int) string { return "func f() {\n" + strings.Repeat("\n", lines-2) + "}\n" }
	require.Equal(t, []string{"pkg/code.go:3: size: f has 61 lines; at most 60 are allowed"}, run(t, Size, function(61), ""))
	require.Empty(t, run(t, Size, function(60), ""))
	require.Equal(t, []string{"pkg/code.go:501: size: the file has 501 lines; at most 500 are allowed"}, run(t, Size, strings.Repeat("//\n", 499), ""))
	require.Empty(t, run(t, Size, strings.Repeat("//\n", 498), ""))
}

func TestDocumented(t *testing.T) {
	bad := map[string]string{
		"func F() {}":                                           "F is exported and has no comment",
		"// It does.\nfunc F() {}":                              "the comment of F does not begin with its name",
		"// Fast runs.\nfunc F() {}":                            "the comment of F does not begin with its name",
		"type t[K any] int\ntype T int":                         "T is exported and has no comment",
		"// T is.\ntype T struct {\n\tA int\n}":                 "T.A is exported and has no comment",
		"// T is.\ntype T interface {\n\tA()\n}":                "T.A is exported and has no comment",
		"// T is.\ntype T struct {\n\tB int // b\n\n\tA int\n}": "T.A is exported and has no comment",
		"// T is.\ntype T struct {\n\tB int // b\n\tA int\n}":   "T.A is exported and has no comment",
		"const C = 1": "C is exported and has no comment",
		"// T is.\ntype T int\nfunc (t *T) M() {}": "M is exported and has no comment",
	}
	for code, want := range bad {
		findings := run(t, Documented, code, "")
		require.Len(t, findings, 1, code)
		require.Contains(t, findings[0], "documented: "+want)
	}
	for _, code := range []string{
		"// F does.\nfunc F() {}",
		"// A T is.\ntype T struct {\n\t// A is.\n\tA int\n\tB int\n\tc int\n}",
		"// T has an Age.\ntype T struct {\n\tAge int\n}",
		"type t int\nfunc (t) M() {}",
		"// The colours.\nconst (\n\tRed = 1\n\tBlue = 2\n)",
		"var V int // volume",
	} {
		require.Empty(t, run(t, Documented, code, ""), code)
	}
}

func TestCited(t *testing.T) {
	require.Equal(t, []string{
		"pkg/code.go:3: cited: docs/invariants.md does not define R7",
		"pkg/code.go:4: cited: there is no TestAbsent",
	}, run(t, Cited, "// By R7 the first block is the one that counts,\n// see TestAbsent and [TestHere].\nfunc TestHere() {}\n", ""))
	require.Equal(t, []string{"pkg/code.go:3: cited: the comment gives a label; it must also say the rule in words"},
		run(t, Cited, "// R1.\nvar x int\n", ""))
	require.Empty(t, run(t, Cited, "// Each version has one anchor (B2).\nfunc TestB2One() {}\n",
		"R1 is tested by TestB2One and TestB2*, run with `go test -run TestB2`.\n"))
}

func TestLinks(t *testing.T) {
	require.Equal(t, []string{
		"page.md:3: links: there is no file pkg/gone.go",
		"page.md:4: links: docs/invariants.md has no heading #gone",
		"page.md:5: links: page.md has no heading #two",
	}, run(t, Links, "", "# One, first\n\n[a](pkg/gone.go),\n[b](docs/invariants.md#gone) and\n[c](#two)\n"))
	require.Empty(t, run(t, Links, "var x int\n",
		"# One, first\n\n[a](pkg/code.go) [b](docs/invariants.md#rules) [c](#one-first) [d](https://example.org/x) `[e](f)`\n"))
}

func TestEnglish(t *testing.T) {
	for _, text := range []string{
		"The rest is for who reads it.",
		"Returns an error that what is built causes.",
		"Whoever cannot promise that waits. It is what the node sent.",
		"Whoever cannot promise that waits.",
		"What the node sent is kept.",
		"The host is told the number.",
		"It is built anew.",
		"A peer sends what is to be had.",
		"Sort first; else it fails.",
		"It waits where the head is old.",
		"Nobody reads it.",
		"It says that the package died.",
		"An answer that\nsays\nso is late.",
	} {
		require.NotEmpty(t, run(t, English, "// "+strings.ReplaceAll(text, "\n", "\n// ")+"\nvar x int\n", ""), text)
		require.NotEmpty(t, run(t, English, "", text+"\n"), text)
	}
	require.NotEmpty(t, run(t, English, "var err = errors.New(\"pkg: nobody is there\")\n", ""))
	require.NotEmpty(t, run(t, English, "var err = errors.New(\"pkg: no\" +\n\t\"body is there\")\n", ""), "a text in two parts")
	require.NotEmpty(t, run(t, English, "var opts = Opts{Help: \"Blocks that somebody built.\"}\n", ""))
	for _, text := range []string{
		"The caller decides what to do. A host that cannot promise this waits.",
		"Otherwise it fails. The folder in which the files are.",
		"The literal `nobody` is code, and so is \"is told\".",
		"It retries if the node is busy, or else if it restarts.",
	} {
		require.Empty(t, run(t, English, "// "+text+"\nvar x int\n", ""), text)
	}
	require.Empty(t, run(t, English, "//\tfor who := range anybody {\nvar x int\n", "    who is told\n"), "code")
}

// pureOf type-checks code with the imports that std has, and checks it.
func pureOf(t *testing.T, std types.Importer, code string) []string {
	t.Helper()
	tree, err := Load(fstest.MapFS{"code.go": {Data: []byte("package pkg\n\n" + code)}})
	require.NoError(t, err)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: std}
	_, err = config.Check("pkg", tree.fset, []*ast.File{tree.Files[0].Syntax}, info)
	require.NoError(t, err)
	var all []string
	for _, f := range Pure(tree, tree.Files, info) {
		all = append(all, f.Text)
	}
	return all
}

func TestPure(t *testing.T) {
	std := compiled(t, token.NewFileSet(), "maps", "math/rand/v2", "net/http", "slices", "sync", "time")
	loop := func(body string) string {
		return "import \"slices\"\n\nfunc f(m map[int]int) (out []int, n int) {\n\tfor k, v := range m {\n\t\t_, _ = k, v\n" + body + "\n\t}\n\tslices.Sort(out)\n\treturn out, n\n}\n"
	}
	for name, code := range map[string]string{
		"clock":     "import \"time\"\n\nfunc f() time.Time { return time.Now() }\n",
		"goroutine": "func f() { go f() }\n",
		"lock":      "import \"sync\"\n\nvar mu sync.Mutex\n",
		"random":    "import \"math/rand/v2\"\n\nvar n = rand.Int()\n",
		"variable":  "import \"time\"\n\nvar now = time.Now\n",
		"literal":   "var f = func() { go print() }\n",
		"field":     "type t struct{ c chan int }\n",
		"below":     "import \"net/http\"\n\nvar n = http.StatusOK\n",
		"keys":      "import (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc f(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }\n",
		"text":      "func f(m map[string]int) (s string) {\n\tfor k := range m {\n\t\ts += k\n\t}\n\treturn s\n}\n",
		"channel":   "func f() { c := make(chan int); close(c) }\n",
		"last":      loop("n = v"),
		"first":     loop("return nil, v"),
		"call":      loop("println(k)"),
		"unsorted":  strings.Replace(loop("out = append(out, k)"), "slices.Sort(out)", "_ = slices.Sort[[]int]", 1),
	} {
		require.Len(t, pureOf(t, std, code), 1, name)
	}
	for name, code := range map[string]string{
		"duration": "import \"time\"\n\nfunc f(now time.Time) bool { return now.After(time.Unix(0, 0).Add(time.Second)) }\n",
		"keys":     "import (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }\n",
		"sorted":   loop("out = append(out, k)"),
		"count":    loop("n += v"),
		"most":     loop("n = max(n, v)"),
		"any":      loop("if v == 0 {\n\t\t\treturn nil, 1\n\t\t}"),
		"delete":   loop("if v == 0 {\n\t\t\tdelete(m, k)\n\t\t\tcontinue\n\t\t}\n\t\tm[k] = v"),
		"reason":   strings.Replace(loop("n = v"), "\tfor k", "\t// The loop may run in any order: all values are equal.\n\tfor k", 1),
		"slice":    "func f(s []int) (n int) {\n\tfor _, v := range s {\n\t\tn = v\n\t}\n\treturn n\n}\n",
	} {
		require.Empty(t, pureOf(t, std, code), name)
	}
}

func TestDebts(t *testing.T) {
	debts, err := ParseDebts("# A comment.\n\npkg width 3\npage.md english 1\n")
	require.NoError(t, err)
	require.Equal(t, Debts{{"pkg", "width"}: 3, {"page.md", "english"}: 1}, debts)
	require.Equal(t, "page.md english 1\npkg width 3\n", debts.String())

	now := Count([]Finding{{Path: "pkg/a.go", Check: "width"}, {Path: "pkg/b.go", Check: "width"}, {Path: "new/a.go", Check: "size"}})
	require.Equal(t, Debts{{"pkg", "width"}: 2, {"new", "size"}: 1}, now)
	require.Equal(t, []Debt{{"new", "size"}}, debts.Exceeds(now), "a new place has no debts")
	require.Equal(t, Debts{{"pkg", "width"}: 2}, debts.Lower(now), "nothing is added")

	for _, text := range []string{"pkg width\n", "pkg width many\n", "pkg width 0\n", "pkg width 3 4\n"} {
		_, err := ParseDebts(text)
		require.ErrorIs(t, err, ErrDebts, text)
	}
}
