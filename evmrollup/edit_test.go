package evmrollup

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
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
		if len(edits) == 0 {
			r.Mine(1, 0)
		}
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
	r.Mine(1, 0)
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
	require.Empty(t, r.edits.next())
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

// TestEditWithTransactions: a block that was ordered by Mine and by an edit has the edit before
// its transactions, also for tracers.
func TestEditWithTransactions(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	tx := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(tx))
	require.EqualValues(t, 1, r.Mine(1, 0))
	number, err := r.Edit(Edit{Address: *tx.To(), Balance: uint256.NewInt(5)})
	require.NoError(t, err)
	require.EqualValues(t, 1, number)
	b := r.propose(t)
	require.Len(t, b.Body.Transactions(), 1)
	require.NoError(t, r.Apply(t.Context(), b))
	_, err = r.Payload(t.Context(), b)
	require.NoError(t, err)
	for index, balance := range []uint64{5, 6} {
		state, _, err := r.Prestate(r.Head(), index)
		require.NoError(t, err)
		require.Equal(t, balance, state.GetBalance(*tx.To()).Uint64())
	}
}

// TestEditMinesNothing: a block for an edit has no waiting transactions, and Mine makes a block
// with them. It uses up neither the time for the next block nor the interval of mining.
func TestEditMinesNothing(t *testing.T) {
	for _, automine := range []bool{true, false} {
		r := recovered(t, keepNothing)
		r.SetAutomine(automine)
		require.NoError(t, r.SendTransaction(pay(0, 0, 1)))
		r.SetInterval(time.Hour)
		last := r.production.last
		at := uint64(time.Now().Unix()) + 1000
		require.NoError(t, r.SetNextTime(at))
		_, err := r.Edit(Edit{Address: common.Address{0x12}, Balance: uint256.NewInt(5)})
		require.NoError(t, err)
		parent := r.Head()
		first := r.addBlock(t)
		require.Empty(t, first.Body.Transactions())
		require.Equal(t, parent.Time(), first.Body.Time())
		require.Equal(t, last, r.production.last)
		r.Mine(1, 0)
		second := r.addBlock(t)
		require.Len(t, second.Body.Transactions(), 1)
		require.Equal(t, at, second.Body.Time())
	}
}

// TestBackRestoresThePool: a block that goes back has no transactions. After it those wait
// that waited at the snapshot, and no others.
func TestBackRestoresThePool(t *testing.T) {
	for _, automine := range []bool{true, false} {
		r := recovered(t, keepNothing)
		r.SetAutomine(false)
		apply := func() builder.Block[*Block] {
			b := r.propose(t)
			require.NoError(t, r.Apply(t.Context(), b))
			require.NoError(t, r.CheckPool())
			return b
		}
		first := []*types.Transaction{pay(0, 0, 1), pay(1, 0, 1)}
		for _, tx := range first {
			require.NoError(t, r.SendTransaction(tx))
		}
		snapshot, err := r.Keep()
		require.NoError(t, err)
		r.Mine(1, 0)
		require.Len(t, apply().Body.Transactions(), 2)
		later := []*types.Transaction{pay(0, 1, 1), pay(3, 1, 1)}
		for _, tx := range later {
			require.NoError(t, r.SendTransaction(tx))
		}
		r.SetAutomine(automine)

		_, err = r.Edit(Edit{Back: snapshot})
		require.NoError(t, err)
		require.Empty(t, apply().Body.Transactions())
		require.ElementsMatch(t, hashes(first...), hashes(r.waiting()...))
		for _, tx := range later {
			require.NoError(t, r.SendTransaction(tx), "they can be sent again")
		}
		r.Mine(1, 0)
		require.Len(t, apply().Body.Transactions(), 3)
		require.Equal(t, hashes(later[1]), hashes(r.waiting()...), "it has a gap before it")
	}
}

func hashes(txs ...*types.Transaction) (all []common.Hash) {
	for _, tx := range txs {
		all = append(all, tx.Hash())
	}
	return all
}

// TestUndoneBackKeepsLaterTransactions: if the block that went back is undone and made again,
// transactions that came after the first one stay in the pool.
func TestUndoneBackKeepsLaterTransactions(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetAutomine(false)
	first, later := pay(0, 0, 1), pay(1, 0, 1)
	require.NoError(t, r.SendTransaction(first))
	snapshot, err := r.Keep()
	require.NoError(t, err)
	r.Mine(1, 0)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	_, err = r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	back := r.propose(t)
	require.NoError(t, r.Apply(t.Context(), back))
	require.NoError(t, r.SendTransaction(later))
	require.NoError(t, r.Undo(t.Context(), back))
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))
	require.ElementsMatch(t, hashes(first, later), hashes(r.waiting()...))
}

// TestBackDuringABlock: a block that began for waiting transactions before an edit that goes
// back, and has the edit, leaves them out.
func TestBackDuringABlock(t *testing.T) {
	r := recovered(t, keepNothing)
	snapshot, err := r.Keep()
	require.NoError(t, err)
	require.NoError(t, r.SendTransaction(pay(0, 0, 1)))
	r.SlotBegan()
	o, due := r.production.due(1, demand{runs: 1, full: 4})
	require.True(t, due)
	number, err := r.Edit(Edit{Back: snapshot})
	require.NoError(t, err)
	require.EqualValues(t, 2, number)
	header := r.nextHeader(r.Head())
	b, err := r.execute(r.Head(), header, r.pool.Build(t.Context(), txpool.Budget{Count: 4, Gas: header.GasLimit, BaseFee: header.BaseFee}), o)
	require.NoError(t, err)
	require.Nil(t, b)
}
