package service

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

var update = flag.Bool("update", false, "write the shared cases in testdata again")

// The files of the shared cases: programs of a few instructions, and calls of the service.
const (
	instructionCases = "testdata/instructions.json"
	serviceCases     = "testdata/service.json"
	authorizerCases  = "testdata/authorizer.json"
)

// sharedCase is an invocation with the outcome that every PVM must have. A case without a program
// is one of the service.
type sharedCase struct {
	Name    string        `json:"name"`
	Source  []string      `json:"source,omitempty"`
	Program hexutil.Bytes `json:"program,omitempty"`
	invocation
	Want outcome `json:"want"`
}

func readCases(t *testing.T, file string) (cases []sharedCase) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.NotEmpty(t, cases)
	return cases
}

// writeCases writes one case per line.
func writeCases(t *testing.T, file string, cases []sharedCase) {
	t.Helper()
	lines := make([]string, len(cases))
	for i, c := range cases {
		raw, err := json.Marshal(c)
		require.NoError(t, err)
		lines[i] = string(raw)
	}
	require.NoError(t, os.WriteFile(file, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644))
}

// TestInstructions runs the programs of the shared cases. Each instruction of the interpreter is in
// one of them.
func TestInstructions(t *testing.T) {
	cases := readCases(t, instructionCases)
	used := map[byte]bool{}
	for i := range cases {
		c := &cases[i]
		assembled, err := asm.Assemble(hostCalls[codec.V072], asm.Source{Name: c.Name, Text: strings.Join(c.Source, "\n")})
		require.NoError(t, err, c.Name)
		p, err := pvm.Load(assembled)
		require.NoError(t, err, c.Name)
		assembled = append([]byte{0}, assembled...) // no metadata
		got := c.run(p, codec.V072)
		if *update {
			c.Program, c.Want = assembled, got
			continue
		}
		require.Equal(t, c.Program, hexutil.Bytes(assembled), c.Name)
		require.Equal(t, c.Want, got, c.Name)
		for _, opcode := range assembled {
			used[opcode] = true
		}
	}
	if *update {
		writeCases(t, instructionCases, cases)
		return
	}
	for _, i := range pvm.Instructions {
		require.True(t, used[i.Opcode], "no case has the instruction %s", i.Name)
	}
}

// TestServiceCases runs the shared cases of the service, which are those of scenarios.
func TestServiceCases(t *testing.T) {
	p := program(t, codec.V072)
	made := scenarios()
	for i := range made {
		model := made[i].Want
		made[i].Want = made[i].run(p, codec.V072)
		requireSame(t, model, made[i].Want)
	}
	if *update {
		writeCases(t, serviceCases, made)
		return
	}
	cases := readCases(t, serviceCases)
	require.Len(t, cases, len(made), "go test -update")
	for i, c := range cases {
		require.Equal(t, made[i].Want, c.Want, "%s: go test -update", c.Name)
		require.Equal(t, c.Want, c.run(p, codec.V072), c.Name)
	}
}
