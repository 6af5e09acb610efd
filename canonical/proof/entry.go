package proof

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// proveEntry returns the nodes that lead from the root of Ethereum's trie over a list, for
// example the transactions of a block, to one entry of the list.
func proveEntry(list types.DerivableList, index int) ([][]byte, error) {
	if index < 0 || index >= list.Len() {
		return nil, fmt.Errorf("entry %d of %d", index, list.Len())
	}
	tree := trie.NewEmpty(nil)
	for i := range list.Len() {
		var raw bytes.Buffer
		list.EncodeIndex(i, &raw)
		if err := tree.Update(rlp.AppendUint64(nil, uint64(i)), raw.Bytes()); err != nil {
			return nil, err
		}
	}
	nodes := &nodeList{}
	if err := tree.Prove(rlp.AppendUint64(nil, uint64(index)), nodes); err != nil {
		return nil, err
	}
	return nodes.list, nil
}

// verifyEntry checks the nodes that proveEntry returns, and returns the encoded entry.
func verifyEntry(root common.Hash, index int, nodes [][]byte) ([]byte, error) {
	if index < 0 {
		return nil, fmt.Errorf("entry %d, want 0 or more", index)
	}
	path := &nodeList{nodes}
	raw, err := trie.VerifyProof(root, rlp.AppendUint64(nil, uint64(index)), path)
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return nil, fmt.Errorf("the block has no entry %d", index)
	case len(path.list) > 0:
		return nil, fmt.Errorf("%d unused nodes", len(path.list))
	}
	return raw, nil
}

// hexNodes converts nodes to the type that documents use.
func hexNodes(nodes [][]byte) []hexutil.Bytes {
	out := make([]hexutil.Bytes, len(nodes))
	for i, n := range nodes {
		out[i] = n
	}
	return out
}

// rawNodes is the inverse of hexNodes.
func rawNodes(nodes []hexutil.Bytes) [][]byte {
	out := make([][]byte, len(nodes))
	for i, n := range nodes {
		out[i] = n
	}
	return out
}

// nodeList contains the nodes of a proof, from the root down. It implements the
// database interfaces through which go-ethereum's trie writes and reads a proof.
type nodeList struct{ list [][]byte }

// Put implements ethdb.KeyValueWriter.
func (n *nodeList) Put(_, value []byte) error {
	n.list = append(n.list, bytes.Clone(value))
	return nil
}

// Delete implements ethdb.KeyValueWriter. Making a proof deletes nothing.
func (n *nodeList) Delete([]byte) error { return nil }

// Get implements ethdb.KeyValueReader for go-ethereum's verifier.
func (n *nodeList) Get(hash []byte) ([]byte, error) {
	if len(n.list) == 0 || !bytes.Equal(crypto.Keccak256(n.list[0]), hash) {
		return nil, fmt.Errorf("the next node is not %x", hash)
	}
	// A verifier reads the nodes from the root down. Each node is removed when it is read, so
	// that no node counts twice and unused nodes are noticed.
	node := n.list[0]
	n.list = n.list[1:]
	return node, nil
}

// Has implements ethdb.KeyValueReader.
func (n *nodeList) Has(hash []byte) (bool, error) {
	return len(n.list) > 0 && bytes.Equal(crypto.Keccak256(n.list[0]), hash), nil
}
