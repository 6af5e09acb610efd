package proof_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
)

// A host makes a document from the JAM state, the validators' votes and the
// rollup block. A user verifies it with the trust alone.
func Example() {
	// The trust: three validators, and the key prefix of service 7.
	trust := &proof.Trust{Service: 7, KeyPrefix: []byte("block")}
	var keys []ed25519.PrivateKey
	for i := range byte(3) {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), i))
		keys = append(keys, key)
		trust.Validators = append(trust.Validators, proof.ValidatorKey(key.Public().(ed25519.PublicKey)))
	}

	// The rollup's service stored a commitment to block 9 when it accumulated the package.
	txs := types.Transactions{types.NewTx(&types.LegacyTx{Nonce: 1}), types.NewTx(&types.LegacyTx{Nonce: 2})}
	commitment := proof.Commitment{
		Number: 9, Hash: common.Hash{9}, TransactionsRoot: types.DeriveSha(txs, trie.NewStackTrie(nil)), Package: jamq.PackageHash{1},
	}
	key := statetrie.StorageKey(7, proof.CommitmentKey(trust.KeyPrefix, 9))
	state := new(statetrie.Trie).Set(statetrie.ServiceKey(7), []byte("an account")).Set(key, commitment.Encode())

	// The validators made the JAM block final.
	vote := proof.Precommit{Target: proof.Target{Header: jamq.HeaderHash{5}, Slot: 77, StateRoot: state.Root()}, Round: 1}
	finality := &proof.Finality{Format: proof.Draft{}.Name(), Precommit: vote}
	for i, key := range keys {
		finality.Signatures = append(finality.Signatures, vote.Sign(proof.Draft{}, uint16(i), key))
	}

	document := &proof.Document{
		Version:    proof.Version,
		Claim:      proof.Claim{Number: 9, Block: commitment.Hash, Package: commitment.Package},
		Finality:   finality,
		Storage:    &proof.StorageProof{Nodes: state.Prove(key)},
		Commitment: commitment.Encode(),
	}
	if err := document.AddTransaction(txs, 1); err != nil {
		panic(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}

	// The user.
	read, err := proof.Parse(text)
	if err != nil {
		panic(err)
	}
	result, err := read.Verify(trust)
	fmt.Println("final:", result.Transaction.Nonce() == 2, err)

	// Two of three are exactly two thirds, and not enough.
	read.Finality.Signatures = read.Finality.Signatures[:2]
	_, err = read.Verify(trust)
	fmt.Println(errors.Is(err, proof.ErrFinality), err)
	// Output:
	// final: true <nil>
	// true proof: not final: 2 of 3 validators signed, want at least 3
}
