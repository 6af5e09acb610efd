package evmrollup

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/txpool"
)

// ErrEdit is returned if the value of an edit is out of range.
var ErrEdit = errors.New("evmrollup: invalid edit")

// Edit is a change of the state that a developer orders, for example a new balance. It
// sets a part of an account, or restores an earlier state. Exactly one of Nonce,
// Balance, Code, Slot and Back is set.
//
// A block applies its edits before its transactions. The encoding of a block does not
// contain edits, so edits work only on a chain in memory, which never reads its blocks
// again.
type Edit struct {
	Address common.Address // of the account
	Nonce   *uint64
	Balance *uint256.Int // in wei, below 2^120
	Code    *[]byte
	Slot    *common.Hash
	Value   common.Hash // of Slot
	Back    *Snapshot   // whose state, without Address, becomes the present one

	again bool // a block with the edit was undone
}

// maxBalanceBits is the maximum size of a balance in an edit, in bits. The sum of all
// balances must fit into 128 bits (see evm.Genesis), and the lower limit leaves room
// for several large balances.
const maxBalanceBits = 120

// check returns an error that wraps ErrEdit if the edit is invalid for the account in
// the present state now.
func (e *Edit) check(now statedb.Account) error {
	switch {
	case e.Balance != nil && e.Balance.BitLen() > maxBalanceBits:
		return fmt.Errorf("%w: balance %v wei, want below 2^%d", ErrEdit, e.Balance, maxBalanceBits)
	case e.Nonce != nil && *e.Nonce < now.Nonce:
		return fmt.Errorf("%w: nonce %d, want at least the present one, %d", ErrEdit, *e.Nonce, now.Nonce)
	case e.Code != nil && len(*e.Code) > maxCode:
		return fmt.Errorf("%w: code of %d bytes, want at most %d", ErrEdit, len(*e.Code), maxCode)
	}
	return nil
}

// maxCode is the maximum size of a contract in bytes (EIP-170).
const maxCode = 24_576

// apply writes the edit to a view.
func (e *Edit) apply(view *statedb.View) (err error) {
	account := view.Account(e.Address)
	if !account.Exists {
		account.CodeHash = types.EmptyCodeHash
	}
	switch {
	case e.Nonce != nil:
		account.Nonce = *e.Nonce
	case e.Balance != nil:
		account.Balance = e.Balance
	case e.Code != nil:
		account.CodeSize = len(*e.Code)
		if account.CodeHash, err = view.SetCode(e.Address, *e.Code); err != nil {
			return err
		}
	case e.Slot != nil:
		view.SetStorage(e.Address, *e.Slot, e.Value)
	}
	return view.SetAccount(e.Address, account)
}

// edits contains the edits that the next block must apply, and those that the existing
// blocks have applied.
type edits struct {
	mu      sync.Mutex
	waiting []Edit
	of      map[common.Hash][]Edit // by block
	undone  []span                 // blocks whose state an edit took back, oldest edit first
}

// span is a range of block numbers: those above after and below before.
type span struct{ after, before uint64 }

// next returns the edits that the next block must apply.
func (e *edits) next() []Edit {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.waiting)
}

// made records which edits a block applied when it was executed.
func (e *edits) made(block common.Hash, some []Edit) {
	if len(some) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = make(map[common.Hash][]Edit)
	}
	e.of[block] = some
}

// in returns the edits of a block.
func (e *edits) in(block common.Hash) []Edit {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[block]
}

// applied records that a block with edits has joined the chain.
func (e *edits) applied(b *Block, kept func(*Snapshot) uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	some := e.of[b.Hash()]
	e.waiting = e.waiting[len(some):]
	for i := range some {
		if to := some[i].Back; to != nil {
			// The block restores an older state. The blocks between that state and this block
			// have no effect any more.
			e.undone = append(e.undone, span{kept(to), b.NumberU64()})
		}
	}
}

// discarded makes the edits of an undone block wait for the next block again, in front
// of newer edits.
func (e *edits) discarded(b *Block) {
	e.mu.Lock()
	defer e.mu.Unlock()
	some := slices.Clone(e.of[b.Hash()]) // tracers may read the others
	for i := range some {
		some[i].again = true
	}
	e.waiting = slices.Concat(some, e.waiting)
	e.undone = slices.DeleteFunc(e.undone, func(s span) bool { return s.before == b.NumberU64() })
	delete(e.of, b.Hash())
}

// took reports whether a later edit has restored a state from before a block.
func (e *edits) took(block uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.undone, func(s span) bool { return s.after < block && block < s.before })
}

// Edit orders a block that applies an edit, and returns the block's number. The block
// is made at once, without transactions from the pool. If another block is being made
// at this moment, that block may already apply the edit, but the ordered block is made
// nevertheless.
//
// The ordered block has the same time as its parent, so that a time that was set for
// the next block is not used up. If the error wraps ErrEdit, nothing has changed.
func (c *Chain) Edit(e Edit) (number uint64, err error) {
	head := c.ledger.Head()
	view, err := c.StateAt(head)
	if err != nil {
		return 0, err
	}
	if err := e.check(view.Account(e.Address)); err != nil {
		return 0, err
	}
	c.edits.mu.Lock()
	c.edits.waiting = append(c.edits.waiting, e)
	c.edits.mu.Unlock()
	return c.production.orderEdit(head.NumberU64()), nil
}

// Snapshot is the state after a block, together with the pool's transactions and the
// clock at that moment. An edit can restore it.
type Snapshot struct {
	block   *Block
	clock   clock
	line    []common.Hash // of the block and those before it that could be undone, newest first
	waiting []*types.Transaction
}

// kept returns the number of the newest block that is part of a snapshot's state and still
// on the chain.
func (c *Chain) kept(s *Snapshot) uint64 {
	number := s.block.NumberU64()
	for _, hash := range s.line {
		if b := c.ledger.ByNumber(number); b != nil && b.Hash() == hash {
			break
		}
		// The snapshot's block was undone, so try its ancestors.
		number--
	}
	return number
}

// AtPresent returns a copy of the snapshot that leaves the clock alone: an edit that
// restores the copy sets the clock to the time of this call, and not back to the time
// of the snapshot.
func (s *Snapshot) AtPresent() *Snapshot {
	present := *s
	present.clock = clock{now: uint64(time.Now().Unix())}
	return &present
}

// Keep makes a snapshot of the newest block, which an edit can restore as long as the
// process runs. The block with this edit has the time of the snapshot's block, and the
// clock continues from the time at which Keep was called.
//
// The edit also restores the pool: it contains the same transactions as when Keep was
// called, and later ones are removed. Transactions from the blocks in between can be
// executed again.
func (c *Chain) Keep() (*Snapshot, error) {
	waiting := c.waiting() // before the block, so that none is in neither
	final := c.ledger.Final()
	s := &Snapshot{block: c.ledger.Head(), clock: c.production.read(), waiting: waiting}
	for at := s.block; at != nil && at.NumberU64() > final; at = c.ledger.ByHash(at.ParentHash()) {
		s.line = append(s.line, at.Hash())
	}
	return s, c.states.Pin(s.block.Root())
}

// waiting returns the transactions in the pool.
func (c *Chain) waiting() (all []*types.Transaction) {
	pending, queued := c.pool.Content()
	for _, of := range []map[common.Address][]*types.Transaction{pending, queued} {
		for _, txs := range of {
			all = append(all, txs...)
		}
	}
	return all
}

// restore is called when a block with the edit was made. It puts the pool and the clock
// back to the time of the snapshot.
func (c *Chain) restore(e *Edit) {
	// If the block was undone and is made again, users may have sent transactions since its
	// first execution. Then the pool and the clock stay as they are.
	if !e.again {
		c.removeExcept(e.Back.waiting)
		c.production.set(e.Back.clock)
	}
	for i, err := range c.pool.AddAll(e.Back.waiting) {
		if err != nil && !errors.Is(err, txpool.ErrAlreadyKnown) {
			c.log.Warn("a transaction of a snapshot does not wait again", "tx", e.Back.waiting[i].Hash(), "err", err)
		}
	}
}

// removeExcept removes all transactions from the pool except the given ones.
func (c *Chain) removeExcept(some []*types.Transaction) {
	keep := make(map[common.Hash]bool, len(some))
	for _, tx := range some {
		keep[tx.Hash()] = true
	}
	c.remove(slices.DeleteFunc(c.waiting(), func(tx *types.Transaction) bool { return keep[tx.Hash()] }))
}

// remove removes transactions from the pool.
func (c *Chain) remove(some []*types.Transaction) {
	for _, tx := range some {
		if err := c.pool.Remove(tx.Hash()); err != nil {
			c.log.Warn("a transaction after a snapshot stays in the pool", "tx", tx.Hash(), "err", err)
		}
	}
}

// reverted returns the transactions of an undone block that must not return to the
// pool.
func (c *Chain) reverted(b *Block) (some []*types.Transaction) {
	e := back(c.edits.next())
	if e == nil || b.NumberU64() <= c.kept(e.Back) {
		return nil
	}
	// A waiting edit restores a state from before the block.
	return slices.DeleteFunc(slices.Clone(b.Transactions()), func(tx *types.Transaction) bool { return c.pool.Get(tx.Hash()) != nil })
}

// back returns the last of the given edits that restores a snapshot, or nil.
func back(some []Edit) (e *Edit) {
	for i := range some {
		if some[i].Back != nil {
			e = &some[i]
		}
	}
	return e
}

// viewWith returns a view of the state after a block with the given edits applied.
func (c *Chain) viewWith(parent *Block, some []Edit) (*statedb.View, error) {
	for i := len(some) - 1; i >= 0; i-- {
		if to := some[i].Back; to != nil {
			parent, some = to.block, some[i+1:]
			break
		}
	}
	view, err := c.StateAt(parent)
	for i := range some {
		if err == nil {
			err = some[i].apply(view)
		}
	}
	return view, err
}

// executed returns the block that contains a transaction, or nil.
func (c *Chain) executed(hash common.Hash) (*Block, int) {
	b, index, known := c.ledger.Transaction(hash)
	if !known || c.edits.took(b.NumberU64()) {
		// An edit may have restored a state from before the block.
		return nil, 0
	}
	return b, index
}
