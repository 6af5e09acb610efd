package mempool_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/txpool"
)

var _ builder.Recorder = (*mempool.Pool)(nil)

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
		if err := s.Replay(ctx, record); err != nil {
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
	require.NoError(m.t, r.Recovered(m.t.Context(), m.record))
	require.NoError(m.t, r.Check())
}

// record appends records of the pool.
func (m *machine) record(records ...[]byte) error {
	if m.dead {
		return errDead
	}
	for _, record := range records {
		m.log = append(m.log, func(r *payments) error { return r.Replay(m.t.Context(), record) })
	}
	if m.dead = m.dies; m.dead {
		return errDead
	}
	return nil
}

// add adds a transaction.
func (m *machine) add(user string, nonce uint64) error {
	return m.Admit(m.t.Context(), pay(user, nonce))
}

// block puts the next block into the log, and returns it.
func (m *machine) block(number uint64) builder.Block[batch] {
	m.t.Helper()
	txs, root, err := m.Propose(m.t.Context(), number)
	require.NoError(m.t, err)
	b := builder.Block[batch]{Number: number, PreRoot: m.Root(), Root: root, Body: txs}
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
		require.ErrorIs(t, m.add("alice", 0), mempool.ErrLog)
		require.ErrorIs(t, m.add("bob", 0), mempool.ErrLog)
		m.waiting(1) // bob's changed nothing
		m.restart()
		m.waiting(1)
		require.ErrorIs(t, m.add("alice", 0), txpool.ErrAlreadyKnown)
	})
}

// TestLateRecord: a block comes before the record of its transaction, and the process dies before
// the record that it is included. The transaction does not wait again.
func TestLateRecord(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		require.NoError(t, m.add("alice", 0))
		added := m.log
		m.log = nil
		m.block(1)
		m.log = append(m.log, added...)
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
		before := len(m.log)
		require.NoError(t, m.Undo(t.Context(), two))
		late := slices.Clone(m.log[before:])
		m.log = m.log[:before]
		content := m.Records()
		m.log = []func(*payments) error{func(r *payments) error {
			return r.set(one.Root, one.Body, 1)
		}}
		require.NoError(t, m.record(content...))
		m.fails(one)
		m.log = append(m.log, late...)
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
		require.ErrorIs(t, r.Replay(t.Context(), record), mempool.ErrRecord)
	}
	keep := func(...[]byte) error { return nil }
	require.NoError(t, r.Recovered(t.Context(), keep))
	require.ErrorIs(t, r.Recovered(t.Context(), keep), mempool.ErrRecord)
	require.ErrorIs(t, r.Replay(t.Context(), []byte("P")), mempool.ErrRecord)
}

// TestOneWriteForMany: additions that wait for a write share the next one, and return with it, also
// if another addition has come since.
func TestOneWriteForMany(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		r, err := newPayments()
		require.NoError(t, err)
		begun, end := make(chan int), make(chan struct{})
		require.NoError(t, r.Recovered(t.Context(), func(records ...[]byte) error {
			begun <- len(records)
			<-end
			return nil
		}))
		var returned atomic.Int32
		add := func(user string) {
			go func() {
				assert.NoError(t, r.Admit(t.Context(), pay(user, 0)))
				returned.Add(1)
			}()
			synctest.Wait()
		}
		add("first")
		require.Equal(t, 1, <-begun)
		for i := range 10 {
			add(fmt.Sprint("user ", i))
		}
		end <- struct{}{}
		require.Equal(t, 10, <-begun)
		require.EqualValues(t, 1, returned.Load())
		add("last")
		end <- struct{}{}
		require.Equal(t, 1, <-begun)
		synctest.Wait()
		require.EqualValues(t, 11, returned.Load(), "all but the last")
		end <- struct{}{}
		synctest.Wait()
		require.EqualValues(t, 12, returned.Load())
	})
}
