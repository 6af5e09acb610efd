package service

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit/codec"
)

const rollup jamq.ServiceID = 7

// accumulated returns a chain on which blocks of a rollup became final, two at a time and the later
// one first.
func accumulated(t *testing.T, blocks uint64) *jamtest.Chain {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 5)
	cfg.ForkProbability, cfg.MaxForkDepth, cfg.FinalityLag, cfg.SkipProbability = 0.2, 2, 3, 0.1
	cfg.Commit = func(p jamtest.Package) (proof.Commitment, bool) {
		c, err := DecodeHeader(p.Payload)
		return c, err == nil
	}
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	chain.Advance()
	final := func(number uint64) bool {
		_, err := chain.Prove(rollup, number, jamtest.ByStorage)
		return err == nil
	}
	sent := uint64(0)
	for range 400 {
		if sent == 0 || final(sent) && final(sent-1) {
			if sent == blocks {
				return chain
			}
			sent += 2
		}
		context, err := chain.Context(1)
		if err != nil {
			chain.Advance()
			continue
		}
		for i, number := range []uint64{sent, sent - 1} {
			payload := append(EncodeHeader(block(number)), "what a guarantor executes"...)
			require.NoError(t, chain.Submit(jamtest.NewPackage(rollup, context, payload), jamq.CoreIndex(i), 0))
			chain.Advance()
		}
	}
	t.Fatalf("%d blocks are not final in 400 slots:\n%s", blocks, chain.Describe(20))
	return nil
}

// The program stores the commitments that the service of a simulated chain stores, and yields the
// last one of each call, so that package canonical/proof verifies documents about both.
func TestSimulatedChain(t *testing.T) {
	const blocks = 10
	chain := accumulated(t, blocks)
	inbox, err := chain.Inbox(rollup, chain.Finalized().Hash)
	require.NoError(t, err)
	p := program(t, codec.V072)
	genesis := Genesis{Service: rollup, Authorizer: owner, Block: block(0)}
	storage := genesis.Storage()
	for len(inbox) > 0 {
		in := inbox[0].In
		a := accumulating{storage: storage, slot: in.Slot}
		for len(inbox) > 0 && inbox[0].In.Hash == in.Hash {
			refined := refining{payload: inbox[0].Payload, pkg: inbox[0].Hash}.invocation().run(p, codec.V072)
			require.Equal(t, "halt", refined.Status)
			o := Operand{Package: inbox[0].Hash, Authorizer: owner, Output: decode(t, refined.Output)}
			a.inputs = append(a.inputs, encodeOperand(o, 1_000_000, 0, nil))
			inbox = inbox[1:]
		}
		got := a.invocation().run(p, codec.V072)
		require.Equal(t, "halt", got.Status)
		storage = Storage(got.Storage)
		if got.Output != "0x" {
			count := storage[string(CountKey())]
			last := storage[string(proof.CommitmentKey([]byte(CommitmentPrefix), uint64(count[0])))]
			c, err := proof.DecodeCommitment(last)
			require.NoError(t, err)
			require.Equal(t, c.Yield().Hex(), got.Output)
		}
	}
	trust, err := chain.Trust(rollup)
	require.NoError(t, err)
	require.Equal(t, CommitmentPrefix, string(trust.KeyPrefix))
	var trie *statetrie.Trie
	for key, value := range storage {
		trie = trie.Set(statetrie.StorageKey(rollup, []byte(key)), value)
	}
	for number := uint64(1); number <= blocks; number++ {
		d, err := chain.Prove(rollup, number, jamtest.ByStorage)
		require.NoError(t, err)
		key := proof.CommitmentKey([]byte(CommitmentPrefix), number)
		require.Equal(t, []byte(d.Commitment), storage[string(key)], "block %d", number)
		require.NoError(t, statetrie.Verify(trie.Root(), statetrie.StorageKey(rollup, key), d.Commitment, trie.Prove(statetrie.StorageKey(rollup, key))))
		require.Equal(t, slices.Concat(d.Claim.Package[:], EncodeHeader(block(number))), storage[string(EntryKey(number-1))])
		require.Len(t, storage[string(MarkKey(d.Claim.Package))], 4)
	}
}
