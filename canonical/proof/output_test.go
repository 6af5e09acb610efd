package proof

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

func TestOutputRootByHand(t *testing.T) {
	a := Output{Service: 1, Yield: common.Hash{0xa}}
	b := Output{Service: 2, Yield: common.Hash{0xb}}
	encode := func(o Output) []byte { return append([]byte{byte(o.Service), 0, 0, 0}, o.Yield[:]...) }
	require.Zero(t, OutputRoot(nil))
	require.Equal(t, crypto.Keccak256Hash(encode(a)), OutputRoot([]Output{a}))
	require.Equal(t, crypto.Keccak256Hash([]byte("node"), encode(a), encode(b)), OutputRoot([]Output{a, b}))
}

func TestOutputProofs(t *testing.T) {
	for n := 1; n <= 17; n++ {
		var outputs []Output
		for i := range n {
			outputs = append(outputs, Output{Service: 7, Yield: common.Hash{byte(i)}})
		}
		root := OutputRoot(outputs)
		for i := range outputs {
			p, err := ProveOutput(outputs, i)
			require.NoError(t, err)
			require.NoError(t, VerifyOutput(root, outputs[i], p))
			require.ErrorIs(t, VerifyOutput(root, Output{Service: 8, Yield: outputs[i].Yield}, p), ErrOutput)
			require.ErrorIs(t, VerifyOutput(common.Hash{1}, outputs[i], p), ErrOutput)
			long := p
			long.Siblings = append(p.Siblings[:len(p.Siblings):len(p.Siblings)], make([]byte, 32))
			require.ErrorIs(t, VerifyOutput(root, outputs[i], long), ErrOutput)
			if n > 1 {
				short := p
				short.Siblings = p.Siblings[1:]
				require.ErrorIs(t, VerifyOutput(root, outputs[i], short), ErrOutput)
			}
		}
		_, err := ProveOutput(outputs, n)
		require.ErrorIs(t, err, ErrInput)
	}
	for _, p := range []OutputProof{{}, {Index: -1, Count: 1}, {Count: math.MaxInt}, {Count: 2, Siblings: []hexutil.Bytes{nil}}} {
		require.ErrorIs(t, VerifyOutput(common.Hash{}, Output{}, p), ErrOutput)
	}
}

// An inner node and half of an output must not pass for an output and a node.
func TestOutputIsNoNode(t *testing.T) {
	outputs := []Output{{Service: 1, Yield: common.Hash{1}}, {Service: 2, Yield: common.Hash{2}}, {Service: 3, Yield: common.Hash{3}}}
	inner := balanced(outputs[:2])
	text := append(inner, outputs[2].encode()...) // the preimage of the root
	forged := Output{Service: jamq.ServiceID(binary.LittleEndian.Uint32(text)), Yield: common.Hash(text[4:36])}
	p := OutputProof{Index: 0, Count: 2, Siblings: []hexutil.Bytes{text[36:]}}
	require.ErrorIs(t, VerifyOutput(OutputRoot(outputs), forged, p), ErrOutput)
}

func TestLogProofs(t *testing.T) {
	var log Log
	require.Zero(t, log.SuperPeak())
	var leaves []common.Hash
	for n := 1; n <= 40; n++ {
		leaves = append(leaves, common.Hash{byte(n - 1)}) // zero: no outputs
		log.Append(leaves[n-1])
		require.Equal(t, log.SuperPeak(), NewLog(log.Peaks()).SuperPeak())
		for i := range leaves {
			p, err := ProveLog(leaves, i)
			require.NoError(t, err)
			require.NoError(t, VerifyLog(log.SuperPeak(), leaves[i], p), "%d of %d", i, n)
			require.ErrorIs(t, VerifyLog(log.SuperPeak(), common.Hash{0xff}, p), ErrOutput)
			p.Siblings = append(p.Siblings[:len(p.Siblings):len(p.Siblings)], common.Hash{})
			require.ErrorIs(t, VerifyLog(log.SuperPeak(), leaves[i], p), ErrOutput)
		}
	}
	_, err := ProveLog(leaves, 40)
	require.ErrorIs(t, err, ErrInput)
	require.ErrorIs(t, VerifyLog(leaves[0], leaves[0], LogProof{Index: 1, Count: 1}), ErrOutput, "no leaf has this index")
	for _, p := range []LogProof{{}, {Count: 1<<64 - 1, Index: 1 << 63}, {Count: 1 << 63, Index: 1<<63 - 1}} {
		require.ErrorIs(t, VerifyLog(common.Hash{}, common.Hash{}, p), ErrOutput)
	}
}
