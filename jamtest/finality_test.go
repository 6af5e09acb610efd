package jamtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

// transactions are those of a rollup block, which its number decides.
func transactions(number uint64) types.Transactions {
	txs := make(types.Transactions, 1+number%4)
	for i := range txs {
		txs[i] = types.NewTx(&types.LegacyTx{Nonce: number, Gas: uint64(i), Data: make([]byte, 60)})
	}
	return txs
}

// blockOf returns the commitment to a rollup block, without its package.
func blockOf(n uint64) proof.Commitment {
	return proof.Commitment{
		Number: n, Hash: common.Hash{1, byte(n)}, PreRoot: common.Hash{2, byte(n - 1)}, PostRoot: common.Hash{2, byte(n)},
		TransactionsRoot: types.DeriveSha(transactions(n), trie.NewStackTrie(nil)),
	}
}

// payloadOf returns the payload of a rollup block.
func payloadOf(n uint64) []byte { return append(service.EncodeHeader(blockOf(n)), "the block"...) }

// genesis returns the genesis state of a chain with services whose last block has a number.
func genesis(last uint64, services ...jamq.ServiceID) service.State {
	all := service.State{}
	for _, id := range services {
		entries, err := service.Genesis{Service: id, Block: blockOf(last)}.Entries()
		if err != nil {
			panic(err)
		}
		maps.Copy(all, entries)
	}
	return all
}

// committed returns a chain with forks, loss and foreign packages on which a rollup's blocks became
// final.
func committed(t testing.TB, blocks uint64) *jamtest.Chain {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 5)
	cfg.ForkProbability, cfg.MaxForkDepth, cfg.FinalityLag, cfg.SkipProbability, cfg.ForeignLoad = 0.2, 2, 3, 0.1, 0.2
	cfg.Genesis = genesis(0, rollup, rollup+1)
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	chain.Advance()
	sent := uint64(0)
	for range 400 {
		if _, err := chain.Prove(rollup, sent, jamtest.ByStorage); sent == 0 || err == nil {
			if sent == blocks {
				return chain
			}
			sent++
		}
		if context, err := chain.Context(1); err == nil {
			p := jamtest.NewPackage(rollup, context, payloadOf(sent))
			require.NoError(t, chain.Submit(p, jamq.CoreIndex(sent%2), 0))
			q := jamtest.NewPackage(rollup+1, context, payloadOf(sent))
			require.NoError(t, chain.Submit(q, jamq.CoreIndex((sent+1)%2), 0))
		}
		chain.Advance()
	}
	t.Fatalf("%d blocks are not final in 400 slots:\n%s", blocks, chain.Describe(20))
	return nil
}

// Every block of a rollup on a chain with everything that happens is proved in every way, and for
// no other service or block.
func TestProve(t *testing.T) {
	chain := committed(t, 8)
	trust, err := chain.Trust(rollup)
	require.NoError(t, err)
	other, err := chain.Trust(rollup + 1)
	require.NoError(t, err)
	for number := uint64(1); number <= 8; number++ {
		for _, route := range []jamtest.Route{jamtest.ByStorage, jamtest.ByOutputs, jamtest.ByLog} {
			d, err := chain.Prove(rollup, number, route)
			require.NoError(t, err)
			txs := transactions(number)
			require.NoError(t, d.AddTransaction(txs, len(txs)-1))
			raw, err := json.Marshal(d)
			require.NoError(t, err)
			read, err := proof.Parse(raw)
			require.NoError(t, err)
			r, err := read.Verify(trust)
			require.NoError(t, err, "block %d, route %d", number, route)
			require.Equal(t, txs[len(txs)-1].Hash(), r.Transaction.Hash())
			want := blockOf(number)
			want.Package = r.Commitment.Package
			require.Equal(t, want, r.Commitment)
			status, err := chain.Status(want.Package, chain.Finalized().Hash)
			require.NoError(t, err)
			require.Equal(t, jamtest.Accumulated, status.Stage, "the chain itself says so too")

			_, err = read.Verify(other)
			require.Error(t, err, "of another service")
			read.Claim.Number++
			_, err = read.Verify(trust)
			require.Error(t, err, "of another block")
		}
	}
	_, err = chain.Prove(rollup, 9, jamtest.ByStorage)
	require.ErrorIs(t, err, jamtest.ErrNotFinal)
}

// A chain with real roots behaves as one with stand-ins: nothing but roots and hashes differs.
func TestServicesChangeRootsOnly(t *testing.T) {
	var drawn [2]string
	for i := range drawn {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 9)
		cfg.ForkProbability, cfg.MaxForkDepth, cfg.ForeignLoad, cfg.SkipProbability = 0.2, 2, 0.3, 0.2
		if i == 1 {
			cfg.Genesis = genesis(0, rollup)
		}
		chain, err := jamtest.New(cfg)
		require.NoError(t, err)
		for range 100 {
			u := chain.Advance()
			drawn[i] += fmt.Sprint(u.Slot, len(u.Imported), chain.Best().Slot, chain.Finalized().Slot, len(chain.Best().Reported), len(chain.Best().Accumulated), ";")
			for _, b := range u.Imported {
				at, ok := chain.AnchorBlock(b.Parent)
				require.True(t, ok)
				require.Equal(t, at.StateRoot, b.ParentStateRoot)
			}
		}
	}
	require.Equal(t, drawn[0], drawn[1])
}

// Two of seven validators are punished: the chain is final without them, on
// every way to the commitment.
func TestProveWithPunishedValidators(t *testing.T) {
	for _, c := range []struct {
		validators int
		punished   []int
		final      bool
	}{
		{7, nil, true},
		{7, []int{0, 4}, true},
		{7, []int{0, 4, 6}, false},
		{6, []int{5}, true},
		{6, []int{1, 2}, false},
	} {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
		cfg.Genesis, cfg.Spec.Validators, cfg.Punished = genesis(2, rollup), c.validators, c.punished
		chain, err := jamtest.New(cfg)
		require.NoError(t, err)
		chain.Advance()
		context, err := chain.Context(1)
		require.NoError(t, err)
		require.NoError(t, chain.Submit(jamtest.NewPackage(rollup, context, payloadOf(3)), 0, 0))
		for range 6 {
			chain.Advance()
		}
		trust, err := chain.Trust(rollup)
		require.NoError(t, err)
		require.NoError(t, trust.Validate())
		zeros := 0
		for i, key := range trust.Validators {
			require.Equal(t, key.IsZero(), trust.BLS[i].IsZero())
			if key.IsZero() {
				require.Contains(t, c.punished, i)
				zeros++
			}
		}
		require.Equal(t, len(c.punished), zeros)
		for _, route := range []jamtest.Route{jamtest.ByStorage, jamtest.ByOutputs, jamtest.ByLog} {
			d, err := chain.Prove(rollup, 3, route)
			if !c.final {
				require.ErrorIs(t, err, jamtest.ErrNotFinal)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, d.AddTransaction(transactions(3), 1))
			_, err = d.Verify(trust)
			require.NoError(t, err, "%v of %d, route %d", c.punished, c.validators, route)
		}
	}
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	for _, bad := range [][]int{{6}, {-1}, {2, 2}} {
		cfg.Punished = bad
		require.ErrorIs(t, cfg.Validate(), jamtest.ErrInvalidConfig, "%v", bad)
	}
}

func TestProveNeedsServices(t *testing.T) {
	chain, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 1))
	require.NoError(t, err)
	_, err = chain.Prove(rollup, 1, jamtest.ByStorage)
	require.ErrorIs(t, err, jamtest.ErrNoServices)
	_, _, err = chain.OutputLog(chain.Best().Hash)
	require.ErrorIs(t, err, jamtest.ErrNoServices)
	_, err = chain.Beefy(chain.Finalized().Hash)
	require.ErrorIs(t, err, jamtest.ErrNoServices)
}

// A host has the log after any block, and signatures over it after final blocks only.
func TestOutputLogAndSignatures(t *testing.T) {
	chain := committed(t, 2)
	trust, err := chain.Trust(rollup)
	require.NoError(t, err)
	for _, b := range []jamq.Block{chain.Finalized(), chain.Best()} {
		outputs, leaves, err := chain.OutputLog(b.Hash)
		require.NoError(t, err)
		at, _ := chain.AnchorBlock(b.Hash)
		var log proof.Log
		for _, leaf := range leaves {
			log.Append(leaf)
		}
		require.Equal(t, at.BeefyRoot, log.SuperPeak())
		require.Equal(t, proof.OutputRoot(outputs), leaves[len(leaves)-1])
		beefy, err := chain.Beefy(b.Hash)
		if b.Hash == chain.Best().Hash {
			require.ErrorIs(t, err, jamtest.ErrNotFinal)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, at.BeefyRoot, beefy.Peak)
		require.NoError(t, beefy.Verify(trust))
	}
	_, _, err = chain.OutputLog(jamq.HeaderHash{})
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
	_, err = chain.Beefy(jamq.HeaderHash{})
	require.ErrorIs(t, err, jamtest.ErrNotFinal)
}

// A proof is made on the simulated chain and checked with nothing but the trust.
func ExampleChain_Prove() {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.Genesis = genesis(2, rollup)
	chain, err := jamtest.New(cfg)
	if err != nil {
		panic(err)
	}
	chain.Advance()
	context, err := chain.Context(1)
	if err != nil {
		panic(err)
	}
	if err := chain.Submit(jamtest.NewPackage(rollup, context, payloadOf(3)), 0, 0); err != nil {
		panic(err)
	}
	for range 6 {
		chain.Advance()
	}
	document, err := chain.Prove(rollup, 3, jamtest.ByStorage)
	if err != nil {
		panic(err)
	}
	if err := document.AddTransaction(transactions(3), 1); err != nil {
		panic(err)
	}
	trust, err := chain.Trust(rollup)
	if err != nil {
		panic(err)
	}
	result, err := document.Verify(trust)
	fmt.Println("final:", result.Transaction.Hash() == transactions(3)[1].Hash(), "links:", len(result.Steps), "error:", err)
	// Output: final: true links: 4 error: <nil>
}
