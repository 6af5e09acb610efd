package main

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// bare is the smallest pool that can run the workloads. It has one lock, one
// map by hash, one chain per sender and two heaps of senders. It locks nothing,
// and has no events, no records and no fee market, and it holds its lock for a whole
// commit. Its figures bound those of any pool on this machine, so the goals of the
// other workloads are ratios to them.
type bare struct {
	mu      sync.Mutex
	nonces  atomic.Pointer[map[common.Address]uint64]
	all     map[common.Hash]*bareTx
	senders map[common.Address]*bareSender
	// bestFirst orders the senders whose first transaction can run by the tip of
	// that transaction. worstFirst orders all senders by the tip of their last
	// one.
	bestFirst, worstFirst bareHeap
	capacity              int
	after                 map[common.Address]uint64 // set by prepare
}

type bareTx struct {
	tx          *types.Transaction
	sender      *bareSender
	nonce       uint64
	tip, feeCap uint64 // wei per gas
	cost        uint256.Int
}

// bareSender is a chain of transactions in nonce order.
type bareSender struct {
	address common.Address
	nonce   uint64 // of the host's state
	spare   uint256.Int
	txs     []*bareTx
	slots   [2]int // places in both heaps, or absent
}

const (
	inBest  = 0
	inWorst = 1
	absent  = -1
)

// bareHeap is a heap of senders that knows the place of each. The keys are in
// the heap, so that a comparison does not read a sender.
type bareHeap struct {
	which int
	items []bareItem
}

type bareItem struct {
	key    uint64 // lowest first
	sender *bareSender
}

func (h *bareHeap) Len() int           { return len(h.items) }
func (h *bareHeap) Less(i, j int) bool { return h.items[i].key < h.items[j].key }
func (h *bareHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].sender.slots[h.which], h.items[j].sender.slots[h.which] = i, j
}
func (h *bareHeap) Push(x any) { h.items = append(h.items, x.(bareItem)) }
func (h *bareHeap) Pop() any {
	last := len(h.items) - 1
	h.items[last].sender.slots[h.which] = absent
	h.items = h.items[:last]
	return nil
}

// set gives a sender a key.
func (h *bareHeap) set(s *bareSender, key uint64) {
	slot := s.slots[h.which]
	if slot == absent {
		s.slots[h.which] = len(h.items)
		heap.Push(h, bareItem{key, s})
		return
	}
	h.items[slot].key = key
	heap.Fix(h, slot)
}

// remove removes a sender, if it is there.
func (h *bareHeap) remove(s *bareSender) {
	if slot := s.slots[h.which]; slot != absent {
		heap.Remove(h, slot)
	}
}

func openBare(l limits) pool {
	b := &bare{
		all: make(map[common.Hash]*bareTx), senders: make(map[common.Address]*bareSender),
		bestFirst: bareHeap{which: inBest}, worstFirst: bareHeap{which: inWorst}, capacity: l.transactions,
	}
	b.nonces.Store(new(map[common.Address]uint64))
	return b
}

func (b *bare) add(tx *types.Transaction) {
	t := b.check(tx)
	b.mu.Lock()
	defer b.mu.Unlock()
	must(b.insert(t, sender(tx)))
}

func (b *bare) addAll(txs []*types.Transaction) {
	checked := make([]*bareTx, len(txs))
	for i, tx := range txs {
		checked[i] = b.check(tx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range checked {
		must(b.insert(t, sender(t.tx)))
	}
}

// check makes the checks that need neither the lock nor the account.
func (b *bare) check(tx *types.Transaction) *bareTx {
	if tx.ChainId().Cmp(chainID) != 0 || tx.Gas() < 21_000 || tx.Gas() > gasLimit {
		panic("bare: another chain, or too little or too much gas")
	}
	t := &bareTx{tx: tx, nonce: tx.Nonce(), tip: tx.GasTipCap().Uint64(), feeCap: tx.GasFeeCap().Uint64()}
	t.cost.SetUint64(t.feeCap)
	t.cost.Mul(&t.cost, uint256.NewInt(tx.Gas()))
	t.cost.Add(&t.cost, uint256.MustFromBig(tx.Value()))
	return t
}

// insert admits a transaction. The caller holds the lock.
func (b *bare) insert(t *bareTx, from common.Address) error {
	hash := t.tx.Hash()
	if b.all[hash] != nil {
		return fmt.Errorf("bare: %s is known", hash)
	}
	s := b.senders[from]
	if s == nil {
		s = &bareSender{address: from, nonce: (*b.nonces.Load())[from], spare: *wealth, slots: [2]int{absent, absent}}
	}
	if t.nonce < s.nonce {
		return fmt.Errorf("bare: nonce %d, want at least %d", t.nonce, s.nonce)
	}
	if s.spare.Lt(&t.cost) {
		return fmt.Errorf("bare: costs %v of %v", &t.cost, &s.spare)
	}
	t.sender = s
	i, there := s.find(t.nonce)
	if there {
		return b.replace(s, i, t)
	}
	if len(b.all) >= b.capacity {
		if err := b.evictFor(t); err != nil {
			return err
		}
	}
	s.spare.Sub(&s.spare, &t.cost)
	s.txs = slices.Insert(s.txs, i, t)
	b.senders[from] = s
	b.all[hash] = t
	b.reorder(s, i)
	return nil
}

func (s *bareSender) find(nonce uint64) (int, bool) {
	if n := len(s.txs); n == 0 || s.txs[n-1].nonce < nonce {
		return n, false
	}
	return slices.BinarySearchFunc(s.txs, nonce, func(t *bareTx, nonce uint64) int { return cmp.Compare(t.nonce, nonce) })
}

// replace puts a transaction into the place of one with the same nonce, if it
// pays an eighth more.
func (b *bare) replace(s *bareSender, i int, t *bareTx) error {
	old := s.txs[i]
	if t.tip < old.tip+old.tip/8 || t.feeCap < old.feeCap+old.feeCap/8 {
		return fmt.Errorf("bare: pays %d, want an eighth more than %d", t.tip, old.tip)
	}
	delete(b.all, old.tx.Hash())
	s.spare.Add(&s.spare, &old.cost)
	s.spare.Sub(&s.spare, &t.cost)
	s.txs[i] = t
	b.all[t.tx.Hash()] = t
	b.reorder(s, i)
	return nil
}

// evictFor removes the last transaction of the sender that is worst.
func (b *bare) evictFor(t *bareTx) error {
	s := b.worstFirst.items[0].sender
	i := len(s.txs) - 1
	worst := s.txs[i]
	if t.tip <= worst.tip {
		return fmt.Errorf("bare: pays %d, want more than %d", t.tip, worst.tip)
	}
	b.cut(s, i, i+1)
	return nil
}

// cut removes a part of a chain.
func (b *bare) cut(s *bareSender, from, to int) {
	for _, t := range s.txs[from:to] {
		delete(b.all, t.tx.Hash())
		s.spare.Add(&s.spare, &t.cost)
	}
	s.txs = slices.Delete(s.txs, from, to)
	b.reorder(s, from)
	if len(s.txs) == 0 {
		delete(b.senders, s.address)
	}
}

// reorder updates both heaps after a change at an index of a chain.
func (b *bare) reorder(s *bareSender, i int) {
	last := len(s.txs) - 1
	if i == 0 {
		if last >= 0 && s.txs[0].nonce == s.nonce {
			b.bestFirst.set(s, math.MaxUint64-s.txs[0].tip)
		} else {
			b.bestFirst.remove(s)
		}
	}
	switch {
	case last < 0:
		b.worstFirst.remove(s)
	case i >= last:
		b.worstFirst.set(s, s.txs[last].tip)
	}
}

// bestOf reads the best transactions and leaves the heap as it is: only the
// children of a place that was read can be next, or the next transaction of the
// same sender.
func (b *bare) bestOf(n int, yield func(*bareTx)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := frontier{}
	push := func(slot int) {
		if slot < len(b.bestFirst.items) {
			heap.Push(&next, front{b.bestFirst.items[slot].sender, slot, 0})
		}
	}
	push(0)
	for ; n > 0 && len(next) > 0; n-- {
		f := next[0]
		yield(f.sender.txs[f.at])
		if later := f.at + 1; later < len(f.sender.txs) && f.sender.txs[later].nonce == f.sender.txs[f.at].nonce+1 {
			next[0].at = later
			heap.Fix(&next, 0)
		} else {
			heap.Pop(&next)
		}
		if f.at == 0 {
			push(2*f.slot + 1)
			push(2*f.slot + 2)
		}
	}
}

// front is the next transaction of a sender that can be read, and frontier a
// heap of those.
type front struct {
	sender   *bareSender
	slot, at int
}

type frontier []front

func (f frontier) tip(i int) uint64   { return f[i].sender.txs[f[i].at].tip }
func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f.tip(i) > f.tip(j) }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(front)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

func (b *bare) best(n int) int {
	txs := make([]*types.Transaction, 0, n)
	b.bestOf(n, func(t *bareTx) { txs = append(txs, t.tx) })
	return len(txs)
}

// prepare creates the state after the block.
func (b *bare) prepare(block []*types.Transaction) {
	b.after = make(map[common.Address]uint64, len(block))
	for _, tx := range block {
		b.after[sender(tx)] = tx.Nonce() + 1
	}
}

// commit removes the block's transactions and reads the nonces of their
// senders again.
func (b *bare) commit(block []*types.Transaction) {
	b.nonces.Store(&b.after)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, tx := range block {
		t := b.all[tx.Hash()]
		if t == nil {
			continue // removed with an earlier one of the sender
		}
		s := t.sender
		s.nonce = b.after[s.address]
		used, _ := s.find(s.nonce)
		b.cut(s, 0, used)
	}
}

func (b *bare) look(tx *types.Transaction) { look(tx) }

func (b *bare) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}
func (b *bare) close() {}
