package proof

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// Output is the hash that a service yielded when a block was accumulated. C(16) of
// the state lists the outputs of all services in the block.
type Output struct {
	// Service is the service that yielded the hash.
	Service jamq.ServiceID
	// Yield is the hash. The service decides what it means; for a rollup it is
	// [Commitment.Yield].
	Yield common.Hash
}

// EncodeOutputs returns the encoding of C(16) in the state: the number of outputs,
// then the outputs (GP D.2).
func EncodeOutputs(outputs []Output) []byte {
	out := codec.AppendNatural(nil, uint64(len(outputs)))
	for _, o := range outputs {
		out = append(out, o.encode()...)
	}
	return out
}

// DecodeOutputs is the inverse of [EncodeOutputs]. The error wraps ErrOutput if
// data is not an encoding of C(16).
func DecodeOutputs(data []byte) ([]Output, error) {
	n, rest, err := codec.DecodeNatural(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if n != uint64(len(rest)/outputSize) || len(rest)%outputSize != 0 {
		return nil, fmt.Errorf("%w: %d outputs in %d bytes, want %d bytes each", ErrOutput, n, len(rest), outputSize)
	}
	outputs := make([]Output, n)
	for i := range outputs {
		raw := rest[outputSize*i:]
		outputs[i] = Output{Service: jamq.ServiceID(binary.LittleEndian.Uint32(raw)), Yield: common.Hash(raw[4:outputSize])}
	}
	return outputs, nil
}

// outputSize is the encoded size of an output, in bytes.
const outputSize = 4 + common.HashLength

func (o Output) encode() []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(o.Service)), o.Yield[:]...)
}

// OutputRoot returns the root of the tree over a block's outputs, in the order of
// C(16). The chain appends this root to the accumulation-output log (GP 7.6, E.1). The
// root of an empty list is zero. The root of a single output is the hash of the output.
func OutputRoot(outputs []Output) common.Hash {
	if len(outputs) == 1 {
		return crypto.Keccak256Hash(outputs[0].encode())
	}
	return common.BytesToHash(balanced(outputs))
}

// balanced returns the top node of the tree over the outputs.
func balanced(outputs []Output) []byte {
	switch n := len(outputs); n {
	case 0:
		return make([]byte, common.HashLength)
	case 1:
		// In a tree over a single output, the output is not hashed. Its encoding is longer than
		// a hash, so it cannot be mistaken for an inner node.
		return outputs[0].encode()
	default:
		half := (n + 1) / 2
		return node(balanced(outputs[:half]), balanced(outputs[half:]))
	}
}

func node(left, right []byte) []byte { return crypto.Keccak256([]byte("node"), left, right) }

// maxOutputs is the maximum number of outputs of a block. The gas limit of a block does
// not allow more services to yield.
const maxOutputs = 1 << 20

// OutputProof proves that a block with a given [OutputRoot] has a certain output.
type OutputProof struct {
	// Index is the position of the proved output among all outputs of the block, from 0 to
	// Count-1. Count is the number of these outputs, at most 1,048,576. The JAM state lists
	// them in this order (C(16)).
	Index int `json:"index"`
	Count int `json:"count"`
	// Siblings are the sibling nodes on the path from the root down to the output. A sibling
	// has 32 bytes, or 36 if it is itself an output.
	Siblings []hexutil.Bytes `json:"siblings"`
}

// ProveOutput returns a proof for the output at the given index of a block's
// outputs. The error wraps ErrInput if there is no such output, or if the block has
// more than 1,048,576 outputs.
func ProveOutput(outputs []Output, index int) (OutputProof, error) {
	if index < 0 || index >= len(outputs) || len(outputs) > maxOutputs {
		return OutputProof{}, fmt.Errorf("%w: output %d of %d, want at most %d", ErrInput, index, len(outputs), maxOutputs)
	}
	p := OutputProof{Index: index, Count: len(outputs), Siblings: []hexutil.Bytes{}}
	for len(outputs) > 1 {
		half := (len(outputs) + 1) / 2
		if index < half {
			p.Siblings = append(p.Siblings, balanced(outputs[half:]))
			outputs = outputs[:half]
		} else {
			p.Siblings = append(p.Siblings, balanced(outputs[:half]))
			outputs, index = outputs[half:], index-half
		}
	}
	return p, nil
}

// root computes the [OutputRoot] that a block must have if the proof is correct.
func (p *OutputProof) root(output Output) (common.Hash, error) {
	if p.Index < 0 || p.Index >= p.Count || p.Count > maxOutputs {
		return common.Hash{}, fmt.Errorf("%w: output %d of %d, want at most %d", ErrOutput, p.Index, p.Count, maxOutputs)
	}
	have, rest, err := climb(output, p.Index, p.Count, p.Siblings)
	switch {
	case err != nil:
		return common.Hash{}, err
	case len(rest) > 0:
		return common.Hash{}, fmt.Errorf("%w: %d unused siblings", ErrOutput, len(rest))
	case p.Count == 1:
		return crypto.Keccak256Hash(have), nil
	}
	return common.Hash(have), nil
}

// VerifyOutput checks that the block with the given [OutputRoot] has the output.
// The error wraps ErrOutput if the proof does not show it. VerifyOutput does not
// prove the position of the output: the root does not bind p.Count, and trees over
// different numbers of outputs can have the same path.
func VerifyOutput(root common.Hash, output Output, p OutputProof) error {
	have, err := p.root(output)
	if err == nil && have != root {
		err = fmt.Errorf("%w: the outputs' root is %s, want %s", ErrOutput, have, root)
	}
	return err
}

// climb computes the node over count outputs from one output and its siblings.
func climb(output Output, index, count int, siblings []hexutil.Bytes) (have []byte, rest []hexutil.Bytes, err error) {
	if count == 1 {
		return output.encode(), siblings, nil
	}
	if len(siblings) == 0 {
		return nil, nil, fmt.Errorf("%w: too few siblings", ErrOutput)
	}
	half := (count + 1) / 2
	left := index < half
	inside, beside := half, count-half
	if !left {
		index, inside, beside = index-half, count-half, half
	}
	want := common.HashLength
	if beside == 1 {
		want = outputSize
	}
	sibling := siblings[0]
	// Otherwise an attacker could present an output as an inner node.
	if len(sibling) != want {
		return nil, nil, fmt.Errorf("%w: a sibling of %d bytes, want %d", ErrOutput, len(sibling), want)
	}
	have, rest, err = climb(output, index, inside, siblings[1:])
	switch {
	case err != nil:
		return nil, nil, err
	case left:
		return node(have, sibling), rest, nil
	default:
		return node(sibling, have), rest, nil
	}
}
