package evmrollup

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
)

// A transaction that a block has taken back does not come
// back if its own block and the block that went back are undone.
func TestRevertedTransactionReturns(t *testing.T) {
	r := recovered(t, keepNothing)
	snapshot, err := r.Keep()
	require.NoError(t, err)
	gone := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(gone))
	first := r.addBlock(t)
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	second := r.addBlock(t)
	require.Empty(t, hashes(r.waiting()...))
	require.Nil(t, r.TransactionStatus(gone.Hash()).Block)
	require.NoError(t, r.Undo(t.Context(), second))
	require.NoError(t, r.Undo(t.Context(), first))
	require.Empty(t, r.addBlock(t).Body.Transactions())
	require.Empty(t, hashes(r.waiting()...), "it was reverted")
}

// A transaction that waited at the snapshot and was replaced later
// waits again.
func TestRevertOfAReplacement(t *testing.T) {
	for _, mined := range []bool{true, false} {
		r := recovered(t, keepNothing)
		r.SetAutomine(false)
		old, newer := pay(0, 0, 1), pay(0, 0, 5)
		next := pay(0, 1, 1)
		require.NoError(t, r.SendTransaction(old))
		require.NoError(t, r.SendTransaction(next))
		snapshot, err := r.Keep()
		require.NoError(t, err)
		require.NoError(t, r.SendTransaction(newer))
		if mined {
			r.Mine(1, 0)
			require.NoError(t, r.Apply(t.Context(), r.propose(t)))
		}
		_, err = r.Edit(Edit{Back: snapshot})
		require.NoError(t, err)
		require.NoError(t, r.Apply(t.Context(), r.propose(t)))
		require.ElementsMatch(t, hashes(old, next), hashes(r.waiting()...), mined)
		r.Mine(1, 0)
		b := r.propose(t)
		require.Len(t, b.Body.Transactions(), 2)
	}
}

// A transaction that was removed after the snapshot waits again.
func TestRevertOfARemoval(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	old := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(old))
	snapshot, err := r.Keep()
	require.NoError(t, err)
	require.NoError(t, r.pool.Remove(old.Hash()))
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	require.ElementsMatch(t, hashes(old), hashes(r.waiting()...))
}

// A snapshot while a block is made has the transactions of that block.
func TestSnapshotDuringABlock(t *testing.T) {
	r := recovered(t, keepNothing)
	tx := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(tx))
	b := r.propose(t)
	snapshot, err := r.Keep()
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), b))
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	require.ElementsMatch(t, hashes(tx), hashes(r.waiting()...))
}

// One goes back, and then further back.
func TestNestedReverts(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	a, b, c := pay(0, 0, 1), pay(0, 1, 1), pay(0, 2, 1)
	apply := func() builder.Block[*Block] {
		x := r.propose(t)
		require.NoError(t, r.Apply(t.Context(), x))
		require.NoError(t, r.CheckPool())
		return x
	}
	revert := func(s *Snapshot) {
		_, err := r.Edit(Edit{Back: s})
		require.NoError(t, err)
		apply()
	}
	s0, err := r.Keep()
	require.NoError(t, err)
	require.NoError(t, r.SendTransaction(a))
	s1, err := r.Keep()
	require.NoError(t, err)
	r.Mine(1, 0)
	apply()
	require.NoError(t, r.SendTransaction(b))
	s2, err := r.Keep()
	require.NoError(t, err)
	r.Mine(1, 0)
	apply()
	require.NoError(t, r.SendTransaction(c))
	revert(s2)
	require.ElementsMatch(t, hashes(b), hashes(r.waiting()...))
	require.NotNil(t, r.TransactionStatus(a.Hash()).Block)
	revert(s1)
	require.ElementsMatch(t, hashes(a), hashes(r.waiting()...))
	require.Nil(t, r.TransactionStatus(a.Hash()).Block)
	revert(s0)
	require.Empty(t, r.waiting())
	for _, tx := range []*types.Transaction{a, b, c} {
		require.NoError(t, r.SendTransaction(tx))
	}
	r.Mine(1, 0)
	require.Len(t, apply().Body.Transactions(), 3)
	for _, tx := range []*types.Transaction{a, b, c} {
		require.EqualValues(t, 6, r.TransactionStatus(tx.Hash()).Block.NumberU64())
	}
}

// The last of two edits that go back in the same block counts.
func TestTwoRevertsInABlock(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	s0, err := r.Keep()
	require.NoError(t, err)
	a := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(a))
	s1, err := r.Keep()
	require.NoError(t, err)
	r.Mine(1, 0)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	_, err = r.Edit(Edit{Back: s0})
	require.NoError(t, err)
	_, err = r.Edit(Edit{Back: s1})
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	require.ElementsMatch(t, hashes(a), hashes(r.waiting()...))
}

// A transaction with a low fee waits again.
func TestRevertWithFeesUp(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	key, _ := user(0)
	low := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: 0, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(params.GWei),
		Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
	})
	require.NoError(t, r.SendTransaction(low))
	s, err := r.Keep()
	require.NoError(t, err)
	_, err = r.Edit(Edit{Back: s})
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	require.ElementsMatch(t, hashes(low), hashes(r.waiting()...))
}

// A snapshot whose block was undone is the state of that block. A
// transaction that only the block made instead has is not executed any more.
func TestRevertToAnUndoneBlock(t *testing.T) {
	r := recovered(t, keepNothing)
	require.NoError(t, r.SendTransaction(pay(0, 0, 1)))
	first := r.addBlock(t)
	snapshot, err := r.Keep()
	require.NoError(t, err)
	other := pay(1, 0, 1)
	require.NoError(t, r.SendTransaction(other))
	require.NoError(t, r.Undo(t.Context(), first))
	require.Len(t, r.addBlock(t).Body.Transactions(), 2)
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	require.Equal(t, first.Root, r.addBlock(t).Root)
	require.Nil(t, r.TransactionStatus(other.Hash()).Block)
	require.NoError(t, r.SendTransaction(other))
}

// A transaction that was sent and replaced after the snapshot can be
// sent again.
func TestReplacedAfterASnapshot(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	snapshot, err := r.Keep()
	require.NoError(t, err)
	old := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(old))
	require.NoError(t, r.SendTransaction(pay(0, 0, 5)))
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	require.NoError(t, r.SendTransaction(old))
}

// The block that goes back has the time of the snapshot, also if it is undone and made again.
// The clock goes on from the snapshot, and a time that was set for the next block is set again.
func TestTimeOfARevert(t *testing.T) {
	const year = 365 * 24 * 60 * 60
	r := recovered(t, keepNothing)
	r.SetApart(1)
	apply := func() builder.Block[*Block] {
		b := r.propose(t)
		require.NoError(t, r.Apply(t.Context(), b))
		_, err := r.Payload(t.Context(), b)
		require.NoError(t, err)
		return b
	}
	mine := func() uint64 {
		r.Mine(1, 0)
		return apply().Body.Time()
	}
	ahead := func() int64 {
		ahead, err := r.IncreaseTime(0)
		require.NoError(t, err)
		return ahead
	}
	_, err := r.IncreaseTime(year)
	require.NoError(t, err)
	kept := mine()
	for range 2 { // as a fixture of several tests
		snapshot, err := r.Keep()
		require.NoError(t, err)
		_, err = r.IncreaseTime(year)
		require.NoError(t, err)
		require.Greater(t, mine(), kept+year/2)
		require.NoError(t, r.SetNextTime(r.Head().Time()+year))
		_, err = r.Edit(Edit{Back: snapshot})
		require.NoError(t, err)
		gone := apply()
		require.Equal(t, kept, gone.Body.Time())
		require.InDelta(t, year, ahead(), year/2)
		require.NoError(t, r.Undo(t.Context(), gone))
		require.Equal(t, kept, apply().Body.Time())
		require.InDelta(t, year, ahead(), year/2)
		kept = mine()
		require.Less(t, kept, snapshot.block.Time()+year)
	}
	require.NoError(t, r.SetNextTime(kept+2*year))
	snapshot, err := r.Keep()
	require.NoError(t, err)
	require.Equal(t, kept+2*year, mine())
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	gone := apply()
	require.Equal(t, kept, gone.Body.Time())
	_, err = r.IncreaseTime(year)
	require.NoError(t, err)
	require.NoError(t, r.Undo(t.Context(), gone))
	apply()
	require.Equal(t, kept+2*year, mine())
	require.Greater(t, mine(), kept+5*year/2, "a change after the block that was undone stays")
}
