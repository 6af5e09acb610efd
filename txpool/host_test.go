package txpool

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// A random host makes moves on a world and tells its model of them. There are two: a
// wild one, and an orderly one, which may also crash.

// senders is the greatest number of senders of a random host.
const senders = 5

// wild is a random host that respects no order: blocks of strangers move nonces and balances,
// State fails, sessions are forgotten, and the process ends, perhaps with other caps. It does
// whatever the pool must survive.
type wild struct {
	*model
	queue   []executed // blocks that can fail, the oldest first
	refuses bool       // Precheck refuses odd nonces
}

// executed is a block with the accounts before it.
type executed struct {
	block  Block
	before ledger
}

func newWild(t tester, d dice) *wild {
	h := &wild{}
	caps := h.caps(d)
	h.model = newModel(t, d, caps, func(c *Config) {
		if d.roll(2, "by score") == 0 {
			c.Score = func(c Candidate) int64 { return int64(c.Tip>>2) - int64(c.Size) }
		}
		if d.roll(2, "quarantine") == 0 {
			c.QuarantineTime = 0
		}
		if d.roll(2, "checked") == 0 {
			unless(func(tx *types.Transaction) bool { return h.refuses && tx.Nonce()%2 == 1 })(c)
		}
	})
	return h
}

// caps draws caps, which a restart may lower.
func (h *wild) caps(d dice) func(*Config) {
	return func(c *Config) {
		c.MaxPending, c.MaxQueued, c.MaxParked = pick(d, "pending", 4, 12, 2, 8, 16), 1+d.roll(8, "queued"), 1+d.roll(8, "parked")
		c.MaxPerSender, c.MaxDelegated = 1+d.roll(8, "per sender"), 1+d.roll(4, "delegated")
		c.FloorWindow, c.MinGasPrice = d.roll(4, "window"), uint64(1+d.roll(3, "least price"))*gwei
		c.BlockGasLimit = pick(d, "gas limit", uint64(30_000_000), 100_000, txGas)
		c.MaxTxSize, c.MaxBytes = 6000, pick(d, "bytes", uint64(9000), 1<<25)
	}
}

// The moves of the host, in groups.

func (h *wild) often() []func() { return []func(){h.normal, h.normal, h.drain, h.commit} }

// nextOf returns the next nonce of a sender.
func (m *model) nextOf(i int) uint64 {
	if nonce, known := m.NextNonce(addr(i)); known {
		return nonce
	}
	return m.accounts.get(addr(i)).Nonce
}

func (m *model) sender() int { return m.roll(m.senders, "sender") }

func (m *model) price() int64 { return 1 + int64(m.roll(20, "gwei")) }

// chosen returns a random element, or the zero value if there is none.
func chosen[T any](m *model, what string, all []T) (one T, some bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[m.roll(len(all), what)], true
}

// normal sends transactions of one sender in order.
func (h *wild) normal() {
	i := h.sender()
	next := h.nextOf(i)
	for n := range 1 + uint64(h.roll(4, "run")) {
		price := h.price()
		h.send(bare(i, next+n, price, price, txGas, 0, 0))
	}
}

func (h *wild) ofUsers() []func() {
	return []func(){
		func() { // behind a gap, in it, or at a used nonce
			i, price := h.sender(), h.price()
			h.send(bare(i, h.accounts.get(addr(i)).Nonce+uint64(h.roll(9, "ahead")), price, price, txGas, 0, 0))
		},
		func() { // a replacement
			pending, queued := h.ContentFrom(addr(h.sender()))
			if old, some := chosen(h.model, "old", append(pending, queued...)); some {
				to, price := *old.To(), h.price()
				h.send(types.NewTx(&types.LegacyTx{Nonce: old.Nonce(), GasPrice: gweis(price), Gas: txGas, To: &to}))
			}
		},
		func() { // rich, of a poor parent
			i := h.sender()
			h.send(bare(i, h.nextOf(i), 1, 1, txGas, 0, 0))
			h.send(bare(i, h.nextOf(i), 20, 20, txGas, 0, 0))
		},
		func() { // a batch
			var txs []*types.Transaction
			for range 1 + h.roll(4, "size") {
				i, price := h.sender(), h.price()
				txs = append(txs, bare(i, h.nextOf(i)+uint64(h.roll(3, "gap")), price, price, txGas, 0, 0))
			}
			h.send(txs...)
		},
		func() {
			i, tip := h.sender(), h.price()
			h.send(bare(i, h.nextOf(i), tip, tip+int64(h.roll(4, "more")), txGas, 0, 0))
		},
		func() { // takes much of the balance, of gas, or of bytes
			i, price := h.sender(), h.price()
			account := h.accounts.get(addr(i))
			value := new(uint256.Int).Div(&account.Balance, uint256.NewInt(gwei*uint64(1+h.roll(4, "share"))))
			h.send(bare(i, h.nextOf(i), price, price, 90_000, int64(value.Uint64()), h.roll(600, "zeros")))
		},
		func() { // a delegation
			i, j := h.sender(), h.sender()
			price, to := uint256.MustFromBig(gweis(h.price())), addr(i)
			auth := delegate(j, h.accounts.get(addr(j)).Nonce+uint64(h.roll(3, "ahead")))
			h.send(types.NewTx(&types.SetCodeTx{
				ChainID: uint256.MustFromBig(chainID), Nonce: h.nextOf(i) + uint64(h.roll(2, "gap")), GasTipCap: price, GasFeeCap: price,
				Gas: txGas + authorizationGas, To: to, AuthList: []types.SetCodeAuthorization{auth},
			}))
		},
		func() {
			if tx, some := chosen(h.model, "removed", offered(h)); some {
				require.NoError(h.t, h.Remove(tx.Hash()))
			}
		},
	}
}

// drain takes some transactions.
func (h *wild) drain() {
	n := h.begin(Budget{Count: h.roll(6, "count")})
	for h.next(n) != nil {
		continue
	}
}

func (h *wild) ofSessions() []func() {
	session := func(do func(*naive)) func() {
		return func() {
			if h.session != nil {
				do(h.session)
			}
		}
	}
	take := session(func(n *naive) {
		for range 1 + h.roll(3, "times") {
			if h.next(n) == nil {
				return
			}
			switch h.roll(4, "answer") {
			case 0:
				gas, bytes := uint64(h.roll(40_000, "gas")), uint64(50)
				n.Used(gas, bytes)
				n.answer(gas, bytes)
			case 1:
				n.dismiss(func() { n.Fail(errTest) })
			case 2:
				n.dismiss(n.Later)
			}
		}
	})
	return []func(){
		func() {
			h.begin(Budget{Count: h.roll(7, "count"), Gas: pick(h, "gas", uint64(0), 100_000, 30_000), Bytes: pick(h, "bytes", uint64(0), 400)})
		},
		take, take, take,
		session(func(n *naive) { n.Cancel() }),
		session(func(n *naive) { n.cancel() }),
		session(func(n *naive) { // reject
			if tx, some := chosen(h.model, "tx", n.Transactions()); some {
				require.NoError(h.t, h.Reject(tx.Hash(), errTest))
				if h.cfg.QuarantineTime > 0 {
					require.Error(h.t, h.Add(tx), "I14")
				}
				h.putAside(tx)
			}
		}),
	}
}

// commit puts the transactions of the session into a block.
func (h *wild) commit() {
	if h.session == nil {
		return
	}
	txs := h.session.Transactions()
	b := executed{blockOf(txs...), maps.Clone(h.accounts)}
	h.enter(txs)
	h.queue = append(h.queue, b)
	h.told(h.include(b.block))
	if h.one(2, "ends") {
		h.session.Cancel()
	}
}

func (h *wild) ofBlocks() []func() {
	return []func(){
		func() { // the newest blocks can never be accumulated
			if len(h.queue) == 0 {
				return
			}
			first := h.roll(len(h.queue), "first")
			var reverted []Block
			for _, b := range h.queue[first:] {
				reverted = append(reverted, b.block)
				h.leave(b.block.Transactions)
			}
			h.accounts = maps.Clone(h.queue[first].before)
			h.queue = h.queue[:first]
			h.told(h.Reset(Head{Reverted: reverted}))
		},
		func() { // the oldest block is final
			if len(h.queue) > 0 {
				h.queue = h.queue[1:]
			}
		},
		func() { // a stranger's block
			i := h.sender()
			h.set(i, func(a *Account) { a.Nonce++; a.Delegated = h.one(2, "delegated") })
			h.told(h.Reset(Head{}))
		},
		func() { h.told(h.Reset(Head{Included: []Block{{}}})) },
		func() { h.told(h.Reset(Head{BaseFee: gweis(int64(h.roll(13, "base fee")))})) },
		func() {
			i := h.sender()
			h.balance(i, uint64(h.roll(40*txGas, "balance"))*gwei)
			h.told(h.Reset(Head{Touched: []common.Address{addr(i)}}))
		},
	}
}

func (h *wild) ofTheWorld() []func() {
	return []func(){
		func() {
			h.advance(time.Duration(h.roll(21, "minutes")) * time.Minute)
			h.CleanupExpired()
		},
		h.again,
		h.shorten,
		func() {
			h.repairs()
			if h.one(2, "broken") {
				h.breaks(h.sender())
			}
		},
		func() {
			h.refuses = !h.refuses
			h.told(h.Reset(Head{}))
		},
	}
}

// again ends the process and begins another one.
func (h *wild) again() {
	if h.one(2, "short") {
		h.shorten()
	}
	// One that is held aside can take the place of a later one with its nonce.
	old, alike := h.Pool, h.synced() && !h.refuses && len(h.Held()) == 0
	if h.one(2, "other caps") {
		h.reopen(h.caps(h))
	} else if h.reopen(); alike {
		require.NoError(h.t, sameContent(old, h.Pool))
	}
}

// orderly is a random host that does everything right: it executes its blocks one after the
// other, and returns them from the end. Each transaction that could run is then pending.
//
// If crashes is set, the process of the host ends in a write to the tape, which has a prefix
// of it. It continues with the durable parts: the tape, its blocks, and the answers that
// users have received.
type orderly struct {
	*model
	crashes bool
	blocks  [][]*types.Transaction // on the chain
	untold  int                    // blocks on the chain not passed to Reset
	undone  [][]*types.Transaction // failed; the tape may not know it
}

func newOrderly(t tester, d dice, changes ...func(*Config)) *orderly {
	free := func(c *Config) {
		c.QuarantineTime, c.Lifetime = 0, 1000*time.Hour
	}
	h := &orderly{model: newModel(t, d, append([]func(*Config){free}, changes...)...)}
	for i := range senders {
		h.balance(i, 300*txGas*gwei)
	}
	return h
}

func (h *orderly) moves() []func() {
	return []func(){
		h.add, h.add, h.add, h.build, h.build, h.commit, h.commit, h.commit, h.cancel, h.reject, h.fail, h.reorg,
		func() { h.advance(time.Minute); h.CleanupExpired() },
		func() { h.tellOf(Head{}) },
		h.again, h.save, h.cut,
	}
}

func (h *orderly) add() {
	i := h.sender()
	nonce := h.nextOf(i)
	switch h.roll(6, "nonce") {
	case 0:
		nonce += 1 + uint64(h.roll(4, "gap"))
	case 1, 2: // a replacement, or one that came too late
		nonce = h.accounts.get(addr(i)).Nonce + uint64(h.roll(6, "ahead"))
	}
	price := int64(2 << h.roll(3, "price"))
	h.send(bare(i, min(nonce, 40), price, price, txGas, 0, 0))
}

// build takes transactions into a session.
func (h *orderly) build() {
	h.tellAll()
	n := h.begin(Budget{})
	for range h.roll(6, "transactions") {
		tx := h.next(n)
		if tx == nil {
			break
		}
		require.False(h.t, h.fate(tx.Hash()).block, "nonce %d is built twice", tx.Nonce())
		switch h.roll(9, "answer") {
		case 0:
			h.fate(tx.Hash()).rejected = true
			n.dismiss(func() { n.Fail(nil) })
		case 1:
			n.dismiss(n.Later)
		}
	}
}

// commit makes the chain show the block of the session, and perhaps tells the pool.
func (h *orderly) commit() {
	if h.session == nil {
		return
	}
	txs := h.session.Transactions()
	h.enter(txs)
	h.run(txs...)
	h.blocks = append(h.blocks, txs)
	h.untold++
	if h.one(2, "tell") {
		h.tellAll()
	}
	h.cancel()
}

// tellAll tells the pool which blocks the chain has.
func (h *orderly) tellAll() {
	told := h.blocks[len(h.blocks)-h.untold:]
	h.untold = 0
	h.tellOf(Head{Included: blocksOf(told)})
}

// cancel ends the session. If there is a block of it, the pool has that before.
func (h *orderly) cancel() {
	if h.session == nil {
		return
	}
	if h.untold > 0 {
		h.tellAll()
	}
	h.session.Cancel()
	h.session = nil
}

// reject drops a transaction of the session. Those that follow it leave with the session.
func (h *orderly) reject() {
	if h.session == nil {
		return
	}
	if tx, some := chosen(h.model, "tx", h.session.Transactions()); some {
		h.fate(tx.Hash()).rejected = true
		require.NoError(h.t, h.Reject(tx.Hash(), errTest))
	}
	h.cancel()
}

// fail makes the blocks from one on fail.
func (h *orderly) fail() { h.goBack(false) }

// reorg takes blocks from one on back, and executes some of them again.
func (h *orderly) reorg() { h.goBack(true) }

func (h *orderly) goBack(again bool) {
	if len(h.blocks) == 0 {
		return
	}
	h.cancel()
	k, moved := h.roll(len(h.blocks), "first"), 0
	gone := slices.Clone(h.blocks[k:])
	for _, b := range slices.Backward(gone) {
		h.undo(b...)
	}
	if again {
		moved = h.roll(len(gone)+1, "again")
	}
	for _, b := range gone[:moved] {
		h.run(b...)
	}
	h.blocks, h.untold = append(h.blocks[:k], gone[:moved]...), 0
	h.giveUp(gone[moved:], gone[:moved])
}

// giveUp tells the pool that blocks have failed, and that others have moved. The host
// remembers the failed ones until the tape has the changes of the pool.
func (h *orderly) giveUp(failed, moved [][]*types.Transaction) {
	for _, b := range failed {
		h.leave(b)
	}
	h.undone = append(h.undone, failed...)
	h.tellOf(Head{Reverted: append(blocksOf(moved), blocksOf(h.undone)...), Included: blocksOf(moved)})
	h.save()
	h.undone = nil
}

// tellOf tells the pool of a change of the chain. It refuses nothing, unless a crash
// came in between.
func (h *orderly) tellOf(head Head) {
	if displaced := h.Reset(head); !h.crashes {
		require.Empty(h.t, displaced)
	}
}

func blocksOf(bundles [][]*types.Transaction) (out []Block) {
	for _, txs := range bundles {
		out = append(out, blockOf(txs...))
	}
	return out
}

// cut replaces the records by the content of the pool and those of the last
// ones that were appended while the host made the new ones.
func (h *orderly) cut() {
	h.save()
	began := h.roll(len(h.tape.records)+1, "began")
	h.tape.records = append(h.Records(), h.tape.records[began:]...)
}

// tear appends the changes of the pool. Sometimes the process ends with a prefix of them.
func (h *orderly) tear() {
	changes := h.TakeChanges()
	if len(changes) > 0 && h.one(5, "dies") {
		h.tape.append(changes[:h.roll(len(changes)+1, "keeps")])
		panic(errCrash)
	}
	h.tape.append(changes)
}

// errCrash is the value of the panic by which the process ends.
var errCrash = errors.New("crash")

// standing checks that all transactions of a sender that follow without a gap are
// pending.
func (h *orderly) standing() {
	if h.untold > 0 {
		return
	}
	for i := range senders {
		next := h.accounts.get(addr(i)).Nonce
		waiting := make(map[uint64]Status)
		for hash, f := range h.fates {
			if s := h.Status(hash); *f.tx.To() == addr(i) && s != StatusUnknown {
				waiting[f.tx.Nonce()] = s
			}
		}
		for s, some := waiting[next]; some; s, some = waiting[next] {
			require.Contains(h.t, []Status{StatusPending, StatusLocked}, s, "nonce %d of %v", next, addr(i))
			next++
		}
		if have, known := h.NextNonce(addr(i)); known {
			require.Equal(h.t, next, have)
		}
	}
}

// again ends the process without a shutdown and begins another one.
func (h *orderly) again() {
	if h.crashes {
		h.reopenAll()
		return
	}
	h.tellAll()
	h.reopen()
	require.Empty(h.t, h.Held())
}

// survive makes a move. If the process ends in it, another one begins.
func (h *orderly) survive(move func()) {
	for died := h.dies(move); died; died = h.dies(h.reopenAll) {
		continue
	}
}

// dies reports whether the process has ended in a call.
func (h *orderly) dies(call func()) (died bool) {
	defer func() {
		if r := recover(); r != nil && r != errCrash {
			panic(r)
		} else if r != nil {
			died = true
		}
	}()
	call()
	return false
}

// reopenAll begins another process, without the changes that the tape does not have. It tells
// the pool of failed blocks again, if the tape may not know it.
func (h *orderly) reopenAll() {
	h.session, h.untold = nil, 0
	h.world.open(h.cfg, nil)
	h.restore()
	h.giveUp(nil, nil)
}
