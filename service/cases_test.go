package service

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

var update = flag.Bool("update", false, "write the shared cases in testdata again")

// The files of the shared cases: programs of a few instructions, and calls of the service.
const (
	instructionCases = "testdata/instructions.json"
	serviceCases     = "testdata/service.json"
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

func writeCases(t *testing.T, file string, cases []sharedCase) {
	t.Helper()
	raw, err := json.MarshalIndent(cases, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(raw, '\n'), 0o644))
}

// TestInstructions runs the programs of the shared cases. Each instruction of the interpreter is in
// one of them.
func TestInstructions(t *testing.T) {
	cases := readCases(t, instructionCases)
	used := map[byte]bool{}
	for i := range cases {
		c := &cases[i]
		assembled, err := asm.Assemble(hostCalls[codec.V072], asm.Source{Name: c.Name, Text: joinLines(c.Source)})
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

func joinLines(lines []string) (text string) {
	for _, line := range lines {
		text += line + "\n"
	}
	return text
}

// TestServiceCases runs the shared cases of the service, which are those of scenarios.
func TestServiceCases(t *testing.T) {
	p := program(t, codec.V072)
	made := scenarios()
	for i := range made {
		made[i].Want = made[i].run(p, codec.V072)
	}
	if *update {
		writeCases(t, serviceCases, made)
		return
	}
	cases := readCases(t, serviceCases)
	require.Len(t, cases, len(made), "go test -update")
	for i, c := range cases {
		require.Equal(t, c.Want, c.run(p, codec.V072), c.Name)
		require.Equal(t, made[i].Want, c.Want, "%s: go test -update", c.Name)
	}
}

// scenarios returns the cases of the service, each with the outcome of the model.
func scenarios() (cases []sharedCase) {
	for _, s := range refineScenarios() {
		cases = append(cases, sharedCase{Name: "refine: " + s.name, invocation: s.invocation(), Want: s.outcome()})
	}
	for _, s := range accumulateScenarios() {
		c := sharedCase{Name: "accumulate: " + s.name, invocation: s.invocation(), Want: s.outcome()}
		if s.writes > 0 {
			c.Writes, c.Want = s.writes, outcome{Status: "panic"}
		}
		cases = append(cases, c)
	}
	return cases
}

type refineScenario struct {
	name string
	refining
}

func refineScenarios() []refineScenario {
	header := EncodeHeader(block(5))
	pkg := block(5).Package
	return []refineScenario{
		{"a header alone", refining{header, pkg}},
		{"a block after the header", refining{append(slices.Clone(header), make([]byte, 1000)...), pkg}},
		{"one byte too short", refining{header[:HeaderSize-1], pkg}},
		{"block 0", refining{append(make([]byte, 8), header[8:]...), pkg}},
		{"no payload", refining{nil, pkg}},
	}
}

type accumulateScenario struct {
	name   string
	writes int // that the balance suffices for; 0: all
	accumulating
}

// accumulateScenarios returns calls on a service whose last block is 9, or the oldest one that it
// keeps History blocks later.
func accumulateScenarios() []accumulateScenario {
	const last = 9
	installed := Genesis{Authorizer: owner, Block: block(last)}.storage()
	next := func(n uint64) Operand { return operandOf(block(last + n)) }
	stranger := next(1)
	stranger.Authorizer = label("stranger", 0)
	other := next(1)
	other.Package = block(1).Package
	failed := next(1)
	failed.Output = nil
	fork := block(last + 1)
	fork.PreRoot = label("wrong", 0)
	again := block(last + 3)
	again.Package = block(1).Package
	wrong := block(last + 2)
	wrong.PreRoot = label("wrong", 0)
	long := Genesis{Authorizer: owner, Block: block(last + History)}.storage()
	for _, n := range []uint64{last, last + 1, last + 2} {
		c := block(n)
		long[commitmentKey(n)], long[string(MarkKey(c.Package))], long[string(EntryKey(n-1))] = c.Encode(), []byte{1, 2, 3, 4}, []byte("entry")
	}
	uninstalled := Storage{commitmentKey(0): installed[commitmentKey(last)]}

	scenario := func(name string, storage Storage, operands ...Operand) accumulateScenario {
		a := accumulating{storage: storage, slot: 70_000, operands: operands}
		for _, o := range operands {
			a.inputs = append(a.inputs, encodeOperand(o, 100_000, 2, []byte("trace")))
		}
		return accumulateScenario{name: name, accumulating: a}
	}
	withTransfer := scenario("a transfer before a block", installed, next(1))
	withTransfer.inputs = append([]hexutil.Bytes{encodeTransfer(5)}, withTransfer.inputs...)
	poor := scenario("the balance suffices for two writes", installed, next(1))
	poor.writes = 2
	return []accumulateScenario{
		scenario("nothing", installed),
		scenario("one block", installed, next(1)),
		scenario("two blocks in order", installed, next(1), next(2)),
		scenario("two blocks in the other order", installed, next(2), next(1)),
		scenario("a block that waits", installed, next(3)),
		scenario("another package with a block that waits", installed, next(3), operandOf(again)),
		scenario("the last number that may wait", installed, next(Ahead)),
		scenario("the first number that may not", installed, next(Ahead+1)),
		scenario("the last block again", installed, operandOf(block(last))),
		scenario("another state root", installed, operandOf(fork)),
		scenario("a wrong update that waits stops nothing", installed, operandOf(wrong), next(2), next(1)),
		scenario("another authorizer", installed, stranger),
		scenario("the output of another package", installed, other),
		scenario("an error of refine", installed, failed),
		withTransfer,
		scenario("the oldest block is removed", long, next(History+1)),
		scenario("not installed", uninstalled, next(1)),
		poor,
	}
}

func operandOf(c proof.Commitment) Operand {
	return Operand{Package: jamq.PackageHash(c.Package), Authorizer: owner, Output: updateOf(c)}
}
