package mempool_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/txpool"
)

var _ builder.Operations = (*mempool.Pool)(nil)

// saving is payments with checkpoints.
type saving struct{ *payments }

// Checkpoint implements builder.Checkpointer. Its first record is the state.
func (s saving) Checkpoint(context.Context) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.root.Bytes()
	for address, nonce := range s.nonces {
		first = binary.BigEndian.AppendUint64(append(first, address[:]...), nonce)
	}
	return append([][]byte{first}, s.Records()...), nil
}

// Restore implements builder.Checkpointer.
func (s saving) Restore(ctx context.Context, records [][]byte) error {
	s.root = common.Hash(records[0])
	for entry := range slices.Chunk(records[0][common.HashLength:], common.AddressLength+8) {
		s.nonces[common.Address(entry)] = binary.BigEndian.Uint64(entry[common.AddressLength:])
	}
	for _, record := range records[1:] {
		if !mempool.Owns(record) {
			return fmt.Errorf("have %x, want a record of the pool", record)
		}
		if err := s.ReplayChange(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

// operations are the transactions of a run: each user sends two.
var operations = sync.OnceValue(func() (all [][]byte) {
	for i := range 30 {
		all = append(all, pay(fmt.Sprint("user ", i/2), uint64(i%2)))
	}
	return all
})

// rules are those of package buildertest.
func rules(t *testing.T, wrap func(*payments) builder.Rollup[batch]) buildertest.Case[batch] {
	return buildertest.Case[batch]{
		New: func() builder.Rollup[batch] {
			r, err := newPayments()
			require.NoError(t, err)
			return wrap(r)
		},
		Operation:  func(i int) []byte { return operations()[i] },
		Operations: len(operations()),
		OwnOrder:   true,
		Executed: func(payload []byte) (ops [][]byte) {
			var txs batch
			require.NoError(t, rlp.DecodeBytes(payload, &txs))
			for _, tx := range txs {
				op, err := tx.MarshalBinary()
				require.NoError(t, err)
				ops = append(ops, op)
			}
			return ops
		},
	}
}

var wraps = map[string]func(*payments) builder.Rollup[batch]{
	"log":         func(r *payments) builder.Rollup[batch] { return r },
	"checkpoints": func(r *payments) builder.Rollup[batch] { return saving{r} },
}

// TestRun: lost packages, failed blocks, kills and restarts lose no transaction, and execute none
// twice.
func TestRun(t *testing.T) {
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) { buildertest.Run(t, rules(t, wrap)) })
	}
}

// TestDiesAtAnyAppend: the process dies before and after any write of the log and any call of the
// rollup. No transaction is lost, and none is executed twice.
func TestDiesAtAnyAppend(t *testing.T) {
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) {
			moments := buildertest.Sweep(t, rules(t, wrap), repeat.First()+1, 31*repeat.Step())
			require.Greater(t, moments, 100)
		})
	}
}

// TestForgottenUndoIsFound: a rollup that does not tell the pool of an undone block is found.
func TestForgottenUndoIsFound(t *testing.T) {
	_, problem := buildertest.Find(t, rules(t, func(r *payments) builder.Rollup[batch] { return forgetful{r} }), 200)
	require.Error(t, problem)
}

type forgetful struct{ *payments }

// Undo implements builder.Rollup.
func (f forgetful) Undo(_ context.Context, b builder.Block[batch]) error {
	return f.set(b.PreRoot, b.Body, -1)
}

// machine is a log, as a builder keeps it for a rollup, and the rollup of the present process.
type machine struct {
	*payments
	t   *testing.T
	log []func(*payments) error // a call for each record
	// open, if not nil, changes the pool of the next process only.
	open func(*txpool.Config, *hooked)
	// dies makes the log write the next record and lose the answer, and nothing later.
	dies, dead bool
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t}
	m.restart()
	return m
}

var errDead = errors.New("the process is dead")

// restart lets a new process follow the log.
func (m *machine) restart() {
	m.t.Helper()
	m.dies, m.dead = false, false
	r := newOpened(m.t, m.open)
	m.open = nil
	for _, again := range m.log {
		require.NoError(m.t, again(r))
	}
	m.payments = r
	require.NoError(m.t, r.Recovered(m.t.Context(), m.save))
	require.NoError(m.t, r.Check())
}

// save writes the changes of the pool, as a builder does before each other record.
func (m *machine) save() error {
	if m.dead {
		return errDead
	}
	m.append(m.TakeChanges())
	if m.dead = m.dies; m.dead {
		return errDead
	}
	return nil
}

func (m *machine) append(changes [][]byte) {
	for _, change := range changes {
		m.log = append(m.log, func(r *payments) error { return r.ReplayChange(m.t.Context(), change) })
	}
}

// add submits a transaction.
func (m *machine) add(user string, nonce uint64) error {
	if err := m.Admit(m.t.Context(), pay(user, nonce)); err != nil {
		return err
	}
	return m.save()
}

// block puts the next block into the log, and returns it.
func (m *machine) block(number uint64) builder.Block[batch] {
	m.t.Helper()
	txs, root, err := m.Propose(m.t.Context(), number)
	require.NoError(m.t, err)
	b := builder.Block[batch]{Number: number, PreRoot: m.Root(), Root: root, Body: txs}
	require.NoError(m.t, m.save())
	m.log = append(m.log, func(r *payments) error { return r.Apply(m.t.Context(), b) })
	return b
}

// applied applies a block with the next transaction of a user.
func (m *machine) applied(number uint64) builder.Block[batch] {
	m.t.Helper()
	require.NoError(m.t, m.add("alice", number-1))
	b := m.block(number)
	require.NoError(m.t, m.Apply(m.t.Context(), b))
	return b
}

// fails puts the failure of a block into the log.
func (m *machine) fails(b builder.Block[batch]) {
	require.NoError(m.t, m.save())
	m.log = append(m.log, func(r *payments) error { return r.Undo(m.t.Context(), b) })
}

// waiting checks which transactions can run.
func (m *machine) waiting(want int) {
	m.t.Helper()
	require.Equal(m.t, want, m.Stats().Pending)
}

// TestLostAnswer: a transaction whose record is written waits after a restart, although its user
// has no answer.
func TestLostAnswer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.dies = true
		require.ErrorIs(t, m.add("alice", 0), errDead)
		m.restart()
		m.waiting(1)
		require.ErrorIs(t, m.add("alice", 0), txpool.ErrAlreadyKnown)
	})
}

// TestDiesAfterABlock: the process dies when a block is in the log, and the record that the pool no
// longer has its transaction is not. The transaction does not wait again.
func TestDiesAfterABlock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		require.NoError(t, m.add("alice", 0))
		m.block(1)
		m.restart()
		m.waiting(0)
		require.Zero(t, m.Size())
		require.NoError(t, m.add("alice", 1))
		m.waiting(1)
	})
}

// TestUndoneBlockComesBack: the process dies between the failure of two blocks and the record that
// the pool has their transactions. They wait after the restart. The record of the second restart
// is the only one that is needed: a transaction that is removed then does not come back.
func TestUndoneBlockComesBack(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		one, two := m.applied(1), m.applied(2)
		m.waiting(0)
		m.fails(two)
		m.fails(one)
		for range 2 {
			m.restart()
			m.waiting(2)
		}
		require.NoError(t, m.Remove(two.Body[0].Hash()))
		m.restart()
		m.waiting(1)
	})
}

// TestLateReturn: a checkpoint has the transactions of an undone block before the record of the
// return, which does not speak for a block that has failed meanwhile.
func TestLateReturn(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		one, two := m.applied(1), m.applied(2)
		require.NoError(t, m.Undo(t.Context(), two))
		late := m.TakeChanges()
		m.log = []func(*payments) error{func(r *payments) error {
			return r.set(one.Root, one.Body, 1)
		}}
		m.append(m.Records())
		m.fails(one)
		m.append(late)
		m.restart()
		m.waiting(2)
	})
}

// TestUndoneTwice: a block is undone, applied again and fails, and the process dies. The record of
// the first return may come after the failure, and does not speak for the second one.
func TestUndoneTwice(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		require.NoError(t, m.add("alice", 0))
		b := m.block(1)
		twice := func(r *payments) error {
			return errors.Join(r.Apply(t.Context(), b), r.Undo(t.Context(), b), r.Apply(t.Context(), b))
		}
		m.log[len(m.log)-1] = twice
		m.fails(b)
		require.NoError(t, twice(m.payments))
		m.restart()
		m.waiting(1)
	})
}

// TestSessionIsHeld: users cannot replace a transaction between its proposal and its block, and
// can when another one begins.
func TestSessionIsHeld(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		require.NoError(t, m.add("alice", 0))
		b := m.block(1)
		require.ErrorIs(t, m.Remove(b.Body[0].Hash()), txpool.ErrInBundle)
		m.Build(t.Context(), txpool.Budget{}) // of another proposal
		require.NoError(t, m.Remove(b.Body[0].Hash()))
		m.waiting(0)
	})
}

// TestRefuses: a pool without a log takes nothing, and no pool takes the record of another program.
func TestRefuses(t *testing.T) {
	r, err := newPayments()
	require.NoError(t, err)
	require.ErrorIs(t, r.Admit(t.Context(), pay("alice", 0)), mempool.ErrNotRecovered)
	for _, record := range [][]byte{nil, {'R', 1}, {'?'}} {
		require.ErrorIs(t, r.ReplayChange(t.Context(), record), mempool.ErrRecord)
	}
	keep := func() error { return nil }
	require.NoError(t, r.Recovered(t.Context(), keep))
	require.ErrorIs(t, r.Recovered(t.Context(), keep), mempool.ErrRecord)
	require.ErrorIs(t, r.ReplayChange(t.Context(), []byte("P")), mempool.ErrRecord)
}

// TestDirectAddition: a transaction that does not come by the builder's Submit is in the log when
// Add returns, and an error of the log is the answer.
func TestDirectAddition(t *testing.T) {
	m := newMachine(t)
	_, err := m.AddRaw(pay("alice", 0))
	require.NoError(t, err)
	m.restart()
	m.waiting(1)
	m.dead = true
	_, err = m.AddRaw(pay("bob", 0))
	require.ErrorIs(t, err, errDead)
	_, errs := m.AddAllRaw([][]byte{pay("carol", 0), pay("alice", 0), nil})
	require.ErrorIs(t, errs[0], errDead)
	require.ErrorIs(t, errs[1], errDead, "the log has failed")
	require.ErrorIs(t, errs[2], txpool.ErrMalformed)
}
