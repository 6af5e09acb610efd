package statedb

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/internal/repeat"
)

// The verifier in JavaScript, which follows docs/witness.md, gives the same
// verdicts: the same rule for each vector, and the same refusals, values and roots
// for witnesses that were mutated or made up.
func TestVerifiersAgree(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("JAMQ_REQUIRE_NODE") == "" {
		t.Skip("no node in the path: the verifier in JavaScript is not compared")
	}
	require.NoError(t, err, "JAMQ_REQUIRE_NODE is set")
	vectors := readVectors(t)
	var honest, all []statement
	for _, v := range vectors {
		all = append(all, v.statement)
		if v.Refused == "" {
			honest = append(honest, v.statement)
		}
	}
	for i, got := range runSecond(t, node, all) {
		require.Equal(t, vectors[i].verdict, got, vectors[i].Name)
	}
	honest = append(honest, drawHonest(t)...)
	t.Run("mutated", func(t *testing.T) {
		const batch = 2500
		total, accepted := repeat.Times(4*batch, 40*batch), 0
		t.Logf("%d witnesses from the seed %d", total, repeat.First())
		r := rand.New(rand.NewPCG(repeat.First(), 0))
		for left := total; left > 0; left -= batch {
			accepted += compareVerifiers(t, node, drawStatements(r, honest, min(left, batch)))
		}
		t.Logf("%d are accepted", accepted)
		require.Greater(t, accepted, total/5, "the others do not reach most of the rules")
	})
}

// drawHonest returns statements of random executions.
func drawHonest(t *testing.T) (honest []statement) {
	executions := rapid.Custom(drawWork)
	for i := range 40 {
		v := open(t, NewStore())
		executions.Example(2 * i).run(v)
		commit(t, v)
		executions.Example(2*i + 1).run(v)
		honest = append(honest, statementOf(t, v))
	}
	return honest
}

// compareVerifiers returns how many of the statements both verifiers accept.
func compareVerifiers(t *testing.T, node string, statements []statement) (accepted int) {
	for i, second := range runSecond(t, node, statements) {
		first := statements[i].verify(t)
		if first.Refused != "" && second.Refused != "" {
			continue // perhaps by another of several rules
		}
		accepted++
		require.Equal(t, first, second, "witness %s, root %s, values %s", statements[i].Witness, statements[i].PreRoot, statements[i].Values)
	}
	return accepted
}

// runSecond returns the verdicts of the verifier in JavaScript.
func runSecond(t *testing.T, node string, statements []statement) []verdict {
	var in, problems bytes.Buffer
	lines := json.NewEncoder(&in)
	for i := range statements {
		require.NoError(t, lines.Encode(&statements[i]))
	}
	cmd := exec.CommandContext(t.Context(), node, "testdata/witness/verify.js")
	cmd.Stdin, cmd.Stderr = &in, &problems
	raw, err := cmd.Output()
	require.NoError(t, err, "%s", problems.String())
	out := json.NewDecoder(bytes.NewReader(raw))
	verdicts := make([]verdict, len(statements))
	for i := range verdicts {
		require.NoError(t, out.Decode(&verdicts[i]))
		if len(verdicts[i].State) == 0 {
			verdicts[i].State = nil // as without entries
		}
	}
	return verdicts
}

// drawStatements draws mutated and made-up witnesses in equal numbers.
func drawStatements(r *rand.Rand, honest []statement, n int) (statements []statement) {
	for i := range n {
		var s statement
		if i%2 == 0 {
			s = mutate(r, honest[r.IntN(len(honest))])
		} else {
			s = statement{Witness: drawMadeUp(r).Encode(), Values: make([]common.Hash, 32)}
		}
		if w, err := ParseWitness(s.Witness); err == nil && r.IntN(16) > 0 {
			s.Values = fit(r, w, s.Values)
		}
		statements = append(statements, s)
	}
	return statements
}

// fit returns as many values as a witness needs.
func fit(r *rand.Rand, w *Witness, values []common.Hash) []common.Hash {
	n := 0
	for i := range w.Entries {
		if w.Entries[i].Set {
			n++
		}
	}
	values = slices.Clone(values)[:min(n, len(values))]
	for len(values) < n {
		values = append(values, common.Hash{byte(r.Uint32())})
	}
	return values
}

// mutate changes an honest witness in one to three places. Half of them have no
// trusted root, so that the verifiers do not refuse it for that reason alone.
func mutate(r *rand.Rand, s statement) statement {
	b := slices.Clone([]byte(s.Witness[:len(s.Witness)-checksumSize]))
	for range 1 + r.IntN(3) {
		b = mutateBytes(r, b)
	}
	if r.IntN(50) > 0 {
		b = append(b, checksum(b)...)
	}
	s.Witness = b
	if r.IntN(2) == 0 {
		s.PreRoot = nil
	}
	return s
}

func mutateBytes(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte{witnessVersion}
	}
	at := r.IntN(len(b))
	end := min(at+32, len(b))
	switch r.IntN(10) {
	case 0:
		return slices.Insert(b, at, byte(r.Uint32()))
	case 1:
		return slices.Delete(b, at, at+1)
	case 2:
		return slices.Insert(b, at, slices.Clone(b[at:end])...)
	case 3:
		return slices.Delete(b, at, end)
	case 4:
		clear(b[at:min(at+12, len(b))])
	case 5:
		copy(b[at:end], b[r.IntN(len(b)):])
	case 6: // a count
		if at = r.IntN(len(b)); at+4 <= len(b) {
			binary.BigEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:])+uint32(r.IntN(3))-1)
		}
	case 7: // the flags of the first entry
		b[min(5, len(b)-1)] ^= 0x10 << r.IntN(2)
	default:
		b[at] ^= 1 << r.IntN(8)
	}
	return b
}
