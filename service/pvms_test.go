package service

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

var (
	pvms       = flag.Int("pvms", 0, `number of random cases for the PVMs that "npm ci" in testdata/node brings; 0: skip them`)
	pvmsSeed   = flag.Int("pvms.seed", -1, "seed of the first of these random cases, and the next ones follow; below 0: a random seed, which is logged")
	pvmCommand = flag.String("pvm", "", "command of one more PVM, which reads and writes lines as testdata/node/pvms.js does")
)

// TestPVMs runs the shared cases and random ones on the PVMs of others. Status, gas, output and
// storage are those of the interpreter and, for the service, of the model.
func TestPVMs(t *testing.T) {
	if *pvms == 0 {
		t.Skip("-pvms is 0: the PVMs of others belong to the deep stage")
	}
	f := foreign{t: t}
	for _, c := range readCases(t, instructionCases) {
		f.add(c.Program, c.invocation, c.Want)
	}
	blob, err := Blob(codec.V072) // their version
	require.NoError(t, err)
	for _, c := range readCases(t, serviceCases) {
		f.add(blob, c.invocation, c.Want)
	}
	authorizer, err := AuthorizerBlob(codec.V072)
	require.NoError(t, err)
	for _, c := range readCases(t, authorizerCases) {
		f.add(authorizer, c.invocation, c.Want)
	}
	p, c := program(t, codec.V072), newCodec(t, codec.V072)
	for _, s := range releases() {
		f.addService(blob, p, s.invocation(), s.outcome())
	}
	refinings, accumulatings, programs := rapid.Custom(drawRefining), rapid.Custom(drawAccumulating), rapid.Custom(drawRandom)
	first := firstSeed(t)
	for seed := first; seed < first+*pvms; seed++ {
		r, a, random := refinings.Example(seed), accumulatings.Example(seed), programs.Example(seed)
		f.addService(blob, p, r.invocation(), r.outcome())
		f.addService(blob, p, a.invocation(), a.outcome())
		loaded, err := pvm.Load(random.program[1:])
		require.NoError(t, err)
		f.add(random.program, random.invocation, random.run(loaded, codec.V072))
	}
	loaded, packages := load(t, &authorizerProgram, codec.V072), rapid.Custom(func(t *rapid.T) *codec.WorkPackage { return drawPackage(t, c) })
	for seed := first; seed < first+max(1, *pvms/500); seed++ { // each takes seconds
		pkg := packages.Example(seed)
		i := authorizing(t, c, pkg)
		want := i.run(loaded, codec.V072)
		requireSame(t, authorized(c, pkg), want)
		f.add(authorizer, i, want)
	}
	for _, name := range []string{"anan-as", "typeberry"} {
		t.Run(name, func(t *testing.T) { f.compare(t, "node", "pvms.js", name) })
	}
	if *pvmCommand != "" {
		t.Run("command", func(t *testing.T) { f.compare(t, *pvmCommand) })
	}
}

// firstSeed returns the seed of the first random case.
func firstSeed(t *testing.T) int {
	first := *pvmsSeed
	if first < 0 {
		first = rand.IntN(1 << 30)
	}
	t.Logf("to repeat the random cases: -pvms.seed %d", first)
	return first
}

// foreignCase is a line of input for a PVM of others, and the outcome that it must have.
type foreignCase struct {
	Program hexutil.Bytes     `json:"program"` // with metadata
	Calls   map[string]uint64 `json:"calls"`
	invocation
	want outcome
}

// foreign collects cases.
type foreign struct {
	t     *testing.T
	cases []foreignCase
}

func (f *foreign) add(program []byte, i invocation, want outcome) {
	f.cases = append(f.cases, foreignCase{program, hostCalls[codec.V072], i, want})
}

// addService adds a case of the service, whose outcome is that of the model.
func (f *foreign) addService(blob []byte, p *pvm.Program, i invocation, model outcome) {
	want := i.run(p, codec.V072)
	requireSame(f.t, model, want)
	f.add(blob, i, want)
}

// compare runs all cases on the PVM that a command starts.
func (f *foreign) compare(t *testing.T, command ...string) {
	for i, got := range runForeign[foreignCase, outcome](t, f.cases, command...) {
		c := &f.cases[i]
		assert.Equal(t, c.want, got, "case %d: program %s, gas %d, arguments %s", i, c.Program, c.Gas, c.Arguments)
	}
}

// runForeign runs a command in testdata/node. It writes each case as a line of JSON, and reads one
// result per case.
func runForeign[C, R any](t *testing.T, cases []C, command ...string) (results []R) {
	t.Helper()
	var in, problems bytes.Buffer
	lines := json.NewEncoder(&in)
	for _, c := range cases {
		require.NoError(t, lines.Encode(c))
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "testdata/node", &in, &problems
	raw, err := cmd.Output()
	require.NoError(t, err, "%s", problems.String())
	out := json.NewDecoder(bytes.NewReader(raw))
	for range cases {
		var r R
		require.NoError(t, out.Decode(&r), "%s", raw)
		results = append(results, r)
	}
	return results
}
