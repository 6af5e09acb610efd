package mutation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package tiny

func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func Min(a, b int) int {
	if a < b {
		return a
	}
	return b
}
`

// head is the part of a mutation before its edit.
const head = "mutation: m\nfile: tiny.go\ntest: . -run TestMax\n"

// one parses a table with one mutation.
func one(t *testing.T, text string) *Mutation {
	t.Helper()
	all, err := Parse("table", text)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return &all[0]
}

func TestParse(t *testing.T) {
	all, err := Parse("table.txt", `# A table.

mutation: Max returns the smaller number
file: tiny.go
test: sub/tiny -run TestMax -tiny.seeds 300
env: TINY=1
env: BIG=2
-	if a > b {
+	if a < b {

# The next one has a line that stays.
mutation: Max forgets its second argument
file: tiny.go
test: sub/tiny -run=TestMax
 	if a > b {
-		return a
`)
	require.NoError(t, err)
	require.Equal(t, []Mutation{
		{
			Name: "Max returns the smaller number", Where: "table.txt:3", File: "tiny.go", Package: "sub/tiny",
			Args: []string{"-run", "TestMax", "-tiny.seeds", "300"}, Env: []string{"TINY=1", "BIG=2"},
			before: []string{"\tif a > b {"}, after: []string{"\tif a < b {"},
		},
		{
			Name: "Max forgets its second argument", Where: "table.txt:12", File: "tiny.go", Package: "sub/tiny",
			Args:   []string{"-run=TestMax"},
			before: []string{"\tif a > b {", "\t\treturn a"}, after: []string{"\tif a > b {"},
		},
	}, all)
	require.Equal(t, "TINY=1 BIG=2 go test ./sub/tiny -run TestMax -tiny.seeds 300", all[0].command())
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no file":               "mutation: m\ntest: . -run TestMax\n-a\n",
		"no test":               "mutation: m\nfile: tiny.go\n-a\n",
		"no -run":               "mutation: m\nfile: tiny.go\ntest: . -v\n-a\n",
		"no lines to find":      head + "+a\n",
		"no edit":               head,
		"no change":             head + "-a\n+a\n",
		"only context":          head + " a\n",
		"unknown key":           head + "timeout: 1s\n-a\n",
		"key twice":             head + "file: tiny.go\n-a\n",
		"key after the edit":    head + "-a\nenv: A=1\n",
		"env without a value":   head + "env: A\n-a\n",
		"edit without mutation": "-a\n",
		"no blank line":         head + "-a\n" + head + "-a\n",
		"name twice":            head + "-a\n\n" + head + "-b\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("table", text)
			require.ErrorIs(t, err, ErrFormat)
		})
	}
}

func TestApply(t *testing.T) {
	edited, err := one(t, head+"-if a > b {\n+\tif a >= b {\n").Apply(source)
	require.NoError(t, err)
	require.Equal(t, `package tiny

func Max(a, b int) int {
	if a >= b {
		return a
	}
	return b
}

func Min(a, b int) int {
	if a < b {
		return a
	}
	return b
}
`, edited)
}

func TestApplyWithContext(t *testing.T) {
	m := one(t, head+" \tif a < b {\n-\t\treturn a\n+\t\treturn b\n")
	edited, err := m.Apply(source)
	require.NoError(t, err)
	require.Contains(t, edited, "\tif a < b {\n\t\treturn b\n\t}\n")
	require.Contains(t, edited, "\tif a > b {\n\t\treturn a\n\t}\n", "the other function stays as it is")
}

func TestApplyRefuses(t *testing.T) {
	_, err := one(t, head+"-if a == b {\n+if a != b {\n").Apply(source)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = one(t, head+"-return b\n").Apply(source)
	require.ErrorIs(t, err, ErrAmbiguous)
	require.ErrorContains(t, err, "lines [7 14] of tiny.go")
	_, err = one(t, head+"-a > b\n").Apply(source)
	require.ErrorIs(t, err, ErrNotFound, "whole lines only")
	_, err = one(t, head+"-package tiny\n").Apply("")
	require.ErrorIs(t, err, ErrNotFound)
}
