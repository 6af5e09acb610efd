package jamtest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
)

// rotating returns a chain with new validators in each epoch, to which the rollup's block 1 was
// sent, and the trust in its first set.
func rotating(t *testing.T, change func(*jamtest.Config)) (*jamtest.Chain, *proof.Trust) {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 5)
	cfg.Genesis, cfg.NewValidators = genesis(0, rollup), true
	if change != nil {
		change(&cfg)
	}
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	trust, err := chain.Trust(rollup)
	require.NoError(t, err)
	require.Zero(t, trust.Set)
	for len(chain.Advance().Imported) == 0 {
	}
	context, err := chain.Context(1)
	require.NoError(t, err)
	require.NoError(t, chain.Submit(jamtest.NewPackage(rollup, context, payloadOf(1)), 0, 0))
	return chain, trust
}

// advanceTo advances the chain until a block of a validator set is final.
func advanceTo(t *testing.T, chain *jamtest.Chain, set uint64) *proof.Trust {
	t.Helper()
	for range 1000 {
		trust, err := chain.Trust(rollup)
		require.NoError(t, err)
		if trust.Set >= set {
			return trust
		}
		chain.Advance()
	}
	t.Fatalf("set %d has no final block:\n%s", set, chain.Describe(20))
	return nil
}

// written returns a trust as a file has it.
func written(t *testing.T, trust *proof.Trust) *proof.Trust {
	t.Helper()
	raw, err := json.Marshal(trust)
	require.NoError(t, err)
	again, err := proof.ParseTrust(raw)
	require.NoError(t, err)
	return again
}

// A trust file of the genesis crosses three changes of validators, on a chain with forks and
// skipped slots, and verifies a proof in each epoch by storage and by the output log.
func TestTrustCrossesChangesOfValidators(t *testing.T) {
	chain, trust := rotating(t, func(c *jamtest.Config) {
		c.ForkProbability, c.MaxForkDepth, c.FinalityLag, c.SkipProbability = 0.3, 2, 3, 0.2
		c.Punished = []int{3}
	})
	first := written(t, trust)
	trust = first
	for trust.Set < 3 {
		want := advanceTo(t, chain, trust.Set+1) // a later one if finality stood still
		for trust.Set < want.Set {
			h, err := chain.Handoff(trust.Set)
			require.NoError(t, err)
			raw, err := json.Marshal(h)
			require.NoError(t, err)
			h, err = proof.ParseHandoff(raw)
			require.NoError(t, err)
			trust, err = h.Verify(trust)
			require.NoError(t, err)
			trust = written(t, trust)
		}
		require.Equal(t, want, trust)
		for _, route := range []jamtest.Route{jamtest.ByStorage, jamtest.ByLog} {
			d, err := chain.Prove(rollup, 1, route)
			require.NoError(t, err)
			r, err := d.VerifyBlock(trust)
			require.NoError(t, err)
			require.EqualValues(t, 1, r.Commitment.Number)
			_, err = d.VerifyBlock(first)
			require.ErrorIs(t, err, proof.ErrFinality, "the first trust does not suffice")
		}
	}
	require.NotEqual(t, first.Validators[0], trust.Validators[0])
	require.True(t, trust.Validators[3].IsZero() && trust.BLS[3].IsZero())

	h, err := chain.Handoff(1)
	require.NoError(t, err)
	_, err = h.Verify(first)
	require.ErrorIs(t, err, proof.ErrFinality, "one set was left out")
	_, err = chain.Handoff(trust.Set + 1)
	require.ErrorIs(t, err, jamtest.ErrNotFinal)
}

// A trust is stuck if the chain has forgotten the blocks of its set, or if the set cannot vote.
func TestTrustThatCannotCross(t *testing.T) {
	chain, _ := rotating(t, func(c *jamtest.Config) { c.Retention = 0 })
	advanceTo(t, chain, 40)
	_, err := chain.Handoff(0)
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
	_, err = chain.Handoff(39)
	require.NoError(t, err)

	chain, _ = rotating(t, func(c *jamtest.Config) { c.Punished = []int{0, 4} })
	advanceTo(t, chain, 1)
	_, err = chain.Handoff(0)
	require.ErrorIs(t, err, jamtest.ErrNotFinal)

	chain, _ = rotating(t, func(c *jamtest.Config) { c.NewValidators = false })
	for range 40 {
		chain.Advance()
	}
	_, err = chain.Handoff(0)
	require.ErrorIs(t, err, jamtest.ErrNotFinal, "there is one set")
	none, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 5))
	require.NoError(t, err)
	_, err = none.Handoff(0)
	require.ErrorIs(t, err, jamtest.ErrNoServices)
}
