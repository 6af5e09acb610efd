package evmrollup

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/txpool"
)

// TestUndoneEdit: empty blocks and blocks with edits come and go. An edit of a block that
// is undone is in the next one, the state before it stays, and Payload executes both
// again.
func TestUndoneEdit(t *testing.T) {
	r := recovered(t, keepNothing)
	_, _, err := r.Propose(t.Context(), 1)
	require.ErrorIs(t, err, builder.ErrIdle)
	rich := common.Address{0x12}
	balance := func() uint64 {
		view, err := r.StateAt(r.Head())
		require.NoError(t, err)
		return view.Account(rich).Balance.Uint64()
	}
	mine := func(number uint64, edits ...Edit) builder.Block[*Block] {
		for _, e := range edits {
			in, err := r.Edit(e)
			require.NoError(t, err)
			require.Equal(t, number, in)
		}
		r.MineTo(number)
		b := builder.Block[*Block]{Number: number, PreRoot: r.Root()}
		b.Body, b.Root, err = r.Propose(t.Context(), number)
		require.NoError(t, err)
		require.NoError(t, r.Apply(t.Context(), b))
		_, err = r.Payload(t.Context(), b)
		require.NoError(t, err)
		return b
	}
	empty := mine(1)
	require.Equal(t, empty.PreRoot, empty.Root)
	edited := mine(2, Edit{Address: rich, Balance: uint256.NewInt(5)})
	require.EqualValues(t, 5, balance())
	later := mine(3, Edit{Address: rich, Balance: uint256.NewInt(6)})
	require.EqualValues(t, 6, balance())
	for _, b := range []builder.Block[*Block]{later, edited, empty} {
		require.NoError(t, r.Undo(t.Context(), b))
	}
	require.Zero(t, balance())
	again := mine(1)
	require.EqualValues(t, 6, balance(), "both are in it, in their order")
	require.Equal(t, later.Root, again.Root)
	mine(2)
	require.EqualValues(t, 6, balance(), "and only in it")
}

// TestEditDuringABlock: an edit that comes while a block is made is in the next one, and the
// caller learns the number of that one.
func TestEditDuringABlock(t *testing.T) {
	r := recovered(t, keepNothing)
	rich := common.Address{0x12}
	apply := func(b builder.Block[*Block]) *uint256.Int {
		require.NoError(t, r.Apply(t.Context(), b))
		view, err := r.StateAt(r.Head())
		require.NoError(t, err)
		return view.Account(rich).Balance
	}
	r.MineTo(2)
	first := r.propose(t)
	number, err := r.Edit(Edit{Address: rich, Balance: uint256.NewInt(5)})
	require.NoError(t, err)
	require.EqualValues(t, 2, number)
	require.Zero(t, apply(first).Uint64())
	require.EqualValues(t, 5, apply(r.propose(t)).Uint64())
}

// TestEditIsRefused: an edit that is out of range changes nothing.
func TestEditIsRefused(t *testing.T) {
	r := recovered(t, keepNothing)
	_, who := user(0)
	code, nonce := make([]byte, maxCode+1), uint64(3)
	_, err := r.Edit(Edit{Address: who, Nonce: &nonce})
	require.NoError(t, err)
	r.MineTo(1)
	body, root, err := r.Propose(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), builder.Block[*Block]{Number: 1, Root: root, Body: body}))
	lower := uint64(2)
	for _, e := range []Edit{
		{Address: who, Nonce: &lower},
		{Address: who, Code: &code},
		{Address: who, Balance: new(uint256.Int).Lsh(uint256.NewInt(1), maxBalanceBits)},
	} {
		_, err := r.Edit(e)
		require.ErrorIs(t, err, ErrEdit)
	}
	require.Empty(t, r.edits.next(2))
	view, err := r.StateAt(r.Head())
	require.NoError(t, err)
	require.Equal(t, statedb.Account{Exists: true, Nonce: 3, Balance: view.Account(who).Balance, CodeHash: view.Account(who).CodeHash}, view.Account(who))
}

// TestBack: a block goes back to the state of an earlier one, and the transactions between
// are executed a second time. If the block is undone, the next one goes back.
func TestBack(t *testing.T) {
	r := recovered(t, keepNothing)
	apply := func() builder.Block[*Block] {
		b := r.propose(t)
		require.NoError(t, r.Apply(t.Context(), b))
		_, err := r.Payload(t.Context(), b)
		require.NoError(t, err)
		return b
	}
	require.NoError(t, r.SendTransaction(pay(0, 0, 1)))
	kept := apply()
	snapshot, err := r.Keep()
	require.NoError(t, err)
	again := pay(0, 1, 1)
	require.NoError(t, r.SendTransaction(again))
	after := apply()
	require.ErrorIs(t, r.SendTransaction(again), txpool.ErrAlreadyKnown)

	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	r.MineTo(3)
	back := apply()
	require.Equal(t, kept.Root, back.Root)
	require.Equal(t, after.Root, back.PreRoot)
	require.NoError(t, r.Undo(t.Context(), back))
	require.ErrorIs(t, r.SendTransaction(again), txpool.ErrAlreadyKnown, "it is in a block again")
	require.Equal(t, kept.Root, apply().Root)

	require.NoError(t, r.SendTransaction(again))
	second := apply()
	require.Len(t, second.Body.Transactions(), 1)
	require.EqualValues(t, 4, r.TransactionStatus(again.Hash()).Block.NumberU64())
	require.ErrorIs(t, r.SendTransaction(again), txpool.ErrAlreadyKnown)
}
