package service

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// TestEveryLineMatters leaves out one line of the program after the other. A case must have another
// outcome then, except for lines that are there for safety only, and are marked so.
func TestEveryLineMatters(t *testing.T) {
	cases := scenarios()
	accumulatings := rapid.Custom(drawAccumulating)
	for seed := range 100 {
		a := accumulatings.Example(seed)
		cases = append(cases, sharedCase{invocation: a.invocation(), Want: a.outcome()})
	}
	sources := []asm.Source{{Name: "service.asm", Text: serviceSource}, {Name: "library.asm", Text: librarySource}}
	for s := range sources {
		lines := strings.SplitAfter(sources[s].Text, "\n")
		for i, line := range lines {
			if !strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimSpace(line), ".") {
				continue // no instruction
			}
			without := slices.Clone(sources)
			without[s].Text = strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
			program, err := asm.Assemble(hostCalls[codec.V072], without...)
			require.NoError(t, err)
			p, err := pvm.Load(program)
			require.NoError(t, err)
			safety := strings.Contains(line, "; safety")
			require.Equal(t, safety, !notices(p, cases), "%s:%d: %s", sources[s].Name, i+1, line)
		}
	}
}

// notices reports whether a case has another outcome than it must have.
func notices(p *pvm.Program, cases []sharedCase) bool {
	for _, c := range cases {
		c.Gas = 100_000
		got := c.run(p, codec.V072)
		got.Left, c.Want.Left = 0, 0
		if !reflect.DeepEqual(got, c.Want) {
			return true
		}
	}
	return false
}
