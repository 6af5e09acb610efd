package txpool

import (
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

// wild is a random host that respects no order: it commits any lease, blocks of
// strangers move nonces and balances, State and the journal fail, and the process
// ends, perhaps with other caps. It does whatever the pool must survive.
type wild struct {
	*model
	leases  []*Lease
	queue   []executed // committed blocks that can fail, the oldest first
	shows   bool       // the chain shows a block as soon as it is committed
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
	h.shows = h.one(2, "shows")
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
			if tx, some := chosen(h.model, "removed", h.Candidates()); some {
				require.NoError(h.t, h.Remove(tx.Hash()))
			}
		},
	}
}

// drain takes a lease of some transactions.
func (h *wild) drain() {
	n := h.begin(Budget{Count: h.roll(6, "count")})
	for h.next(n) != nil {
		continue
	}
	if l, err := n.Seal(); err == nil {
		h.leases = append(h.leases, l)
	}
}

func (h *wild) ofSessions() []func() {
	session := func(do func(*naive)) func() {
		return func() {
			if n, some := chosen(h.model, "session", h.sessions); some {
				do(n)
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
			if len(h.core.sessions) > 0 && !h.one(3, "several") {
				return // one alone is compared
			}
			h.begin(Budget{Count: h.roll(7, "count"), Gas: pick(h, "gas", uint64(0), 100_000, 30_000), Bytes: pick(h, "bytes", uint64(0), 400)})
		},
		take, take, take,
		session(func(n *naive) {
			if l, err := n.Seal(); err == nil {
				h.leases = append(h.leases, l)
			}
		}),
		session(func(n *naive) { h.leases = append(h.leases, n.Lease()) }),
		session(func(n *naive) { _ = n.Cancel() }),
		session(func(n *naive) { n.cancel() }),
	}
}

// lease returns one of the leases with its transactions.
func (h *wild) lease() (l *Lease, txs []*types.Transaction) {
	if l, some := chosen(h.model, "lease", h.leases); some {
		return l, l.Transactions()
	}
	return nil, nil
}

// commit puts a lease into a block.
func (h *wild) commit() {
	l, txs := h.lease()
	if l == nil || l.Commit() != nil {
		return
	}
	b := executed{blockOf(txs...), maps.Clone(h.accounts)}
	h.enter(txs)
	h.queue = append(h.queue, b)
	if h.shows {
		h.told(h.include(b.block))
	}
}

func (h *wild) ofLeases() []func() {
	return []func(){
		func() {
			l, txs := h.lease()
			if l != nil && l.Release() == nil && l.sealed { // else a restart forgets that
				h.cameBack(txs)
			}
		},
		func() {
			l, txs := h.lease()
			tx, some := chosen(h.model, "tx", txs)
			switch {
			case !some:
				return
			case h.one(2, "reject"):
				if err := l.Reject(tx.Hash(), errTest); err == nil && h.cfg.QuarantineTime > 0 {
					require.Error(h.t, h.Add(tx), "I14")
				}
			default:
				_ = l.Return(tx.Hash())
			}
			h.putAside(l, tx)
		},
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
			if h.shows {
				h.accounts = maps.Clone(h.queue[first].before)
			}
			h.queue = h.queue[:first]
			h.told(h.Reset(Head{Reverted: reverted}))
		},
		func() { // the oldest block is final
			if len(h.queue) == 0 {
				return
			}
			b := h.queue[0].block
			h.queue = h.queue[1:]
			if !h.shows {
				h.told(h.include(b))
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
			for _, l := range h.Leases() {
				if l.sealed && !l.bundled && !h.clock().Before(l.Expires()) {
					h.cameBack(l.Transactions())
				}
			}
			h.CleanupExpired()
		},
		h.again,
		h.rotate,
		func() {
			h.repairs()
			if h.one(2, "broken") {
				h.breaks(h.sender())
			}
		},
		func() {
			h.tape.broken = nil
			if h.one(2, "broken") {
				h.tape.broken = errNoDisk
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
	h.tape.broken = nil
	require.NoError(h.t, h.Flush())
	if h.one(2, "new journal") {
		h.rotate()
	}
	// One that is held aside can take the place of a later one with its nonce.
	old, alike := h.Pool, h.synced() && !h.refuses && len(h.Held()) == 0
	if h.Stats().Leased > 0 { // else Restore fails
		h.repairs()
	}
	if h.one(2, "other caps") {
		h.reopen(h.caps(h))
	} else if h.reopen(); alike {
		require.NoError(h.t, sameContent(old, h.Pool))
	}
	h.leases = h.Leases()
}

// orderly is a random host that does everything right: it commits bundles in the
// order in which it has built them, executes them in this order, and returns them
// from the end. Each transaction that could run is then pending.
//
// If crashes is set, writes of the tape fail, and the process of the host ends in a
// write, of which the tape has a prefix. It continues with the durable parts: the
// tape, its bundles, and the answers that users have received.
type orderly struct {
	*model
	crashes bool
	open    []*Lease               // of bundles that are not committed, oldest first
	flight  [][]*types.Transaction // committed, not on the chain; oldest first
	blocks  [][]*types.Transaction // on the chain
	untold  int                    // blocks on the chain not passed to Reset
	stuck   *Lease                 // its commit was refused; its bundle is the last in flight
	undone  [][]*types.Transaction // failed; the tape may not know it
}

func newOrderly(t tester, d dice, changes ...func(*Config)) *orderly {
	free := func(c *Config) {
		c.QuarantineTime = 0
		c.Lifetime, c.LeaseLifetime = 1000*time.Hour, 1000*time.Hour
	}
	h := &orderly{model: newModel(t, d, append([]func(*Config){free}, changes...)...)}
	for i := range senders {
		h.balance(i, 300*txGas*gwei)
	}
	return h
}

func (h *orderly) moves() []func() {
	return []func(){
		h.add, h.add, h.add, h.build, h.build, h.commit, h.commit, h.execute, h.release, h.giveBack, h.failBundles, h.reorg,
		func() { h.advance(time.Minute); h.CleanupExpired() },
		func() {
			h.showAll()
			h.tellOf(Head{})
		},
		h.again, h.resolve, h.turn, h.shorten,
	}
}

// ahead returns the next nonces of the senders after the blocks on the chain, the
// bundles in flight and, if leased is set, the leases.
func (h *orderly) ahead(leased bool) map[common.Address]uint64 {
	bundles := slices.Clip(h.flight)
	for _, l := range h.open {
		if leased {
			bundles = append(bundles, l.Transactions())
		}
	}
	next := make(map[common.Address]uint64)
	for i := range senders {
		next[addr(i)] = h.accounts.get(addr(i)).Nonce
	}
	for _, tx := range slices.Concat(bundles...) {
		next[*tx.To()] = max(next[*tx.To()], tx.Nonce()+1)
	}
	return next
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

// build takes transactions into a session, and mostly seals it.
func (h *orderly) build() {
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
	if !h.crashes || h.one(2, "seal") {
		_, _ = n.Seal() // the session has ended even if the journal fails
	}
	h.sessions = nil
	h.open = append(h.open, n.Lease())
}

// runs reports whether transactions can run after all bundles.
func (h *orderly) runs(txs []*types.Transaction) bool {
	next := h.ahead(false)
	return !slices.ContainsFunc(txs, func(tx *types.Transaction) bool {
		next[*tx.To()]++
		return tx.Nonce()+1 != next[*tx.To()]
	})
}

// commit enqueues the oldest bundle. The host's queue has it from the call of
// Commit on.
func (h *orderly) commit() {
	if len(h.open) == 0 || h.stuck != nil {
		return
	}
	l := h.open[0]
	h.open = h.open[1:]
	txs := l.Transactions()
	if !h.runs(txs) {
		require.True(h.t, h.crashes, "a bundle that cannot run")
		_ = l.Release()
		return
	}
	h.flight = append(h.flight, txs)
	h.enter(txs)
	h.settle(l)
}

func (h *orderly) settle(l *Lease) {
	h.stuck = l
	if err := l.Commit(); err == nil {
		h.stuck, h.undone = nil, nil // the tape has what came before
	} else {
		require.ErrorIs(h.t, err, ErrJournal)
	}
}

// resolve commits the lease of a refused commit again, or gives its bundle up.
func (h *orderly) resolve() {
	l := h.stuck
	if l == nil {
		return
	}
	if h.one(2, "again") {
		h.settle(l)
		return
	}
	txs := l.Transactions()
	h.stuck = nil
	h.leave(h.flight[len(h.flight)-1])
	h.flight = h.flight[:len(h.flight)-1]
	for _, tx := range txs {
		switch h.roll(6, "fate") {
		case 0:
			h.fate(tx.Hash()).rejected = true
			_ = l.Reject(tx.Hash(), errTest)
		case 1:
			_ = l.Return(tx.Hash())
		}
	}
	_ = l.Release()
}

// execute makes the chain show the oldest bundle, and perhaps tells the pool.
func (h *orderly) execute() {
	if len(h.flight) == 0 || h.stuck != nil {
		return
	}
	h.show()
	if h.one(2, "tell") {
		told := h.blocks[len(h.blocks)-h.untold:]
		h.untold = 0
		h.tellOf(Head{Included: blocksOf(told)})
	}
}

// show makes the chain show the oldest bundle, and showAll all of them.
func (h *orderly) show() {
	h.run(h.flight[0]...)
	h.blocks, h.flight = append(h.blocks, h.flight[0]), h.flight[1:]
	h.untold++
}

func (h *orderly) showAll() {
	for h.stuck == nil && len(h.flight) > 0 {
		h.show()
	}
}

// release gives leases back: those from one on, or, if the host crashes, any.
func (h *orderly) release() {
	if len(h.open) == 0 {
		return
	}
	k := h.roll(len(h.open), "lease")
	if h.crashes {
		_ = h.open[k].Release()
		h.open = slices.Delete(h.open, k, k+1)
		return
	}
	if h.one(2, "backwards") {
		slices.Reverse(h.open[k:])
	}
	h.releaseFrom(k)
}

func (h *orderly) releaseFrom(k int) {
	for _, l := range h.open[k:] {
		if err := l.Release(); !h.crashes {
			require.NoError(h.t, err)
		}
	}
	h.open = h.open[:k]
}

// giveBack returns or rejects one transaction of the last lease, and returns those
// that follow it.
func (h *orderly) giveBack() {
	if len(h.open) == 0 {
		return
	}
	l := h.open[len(h.open)-1]
	txs := l.Transactions()
	tx, some := chosen(h.model, "tx", txs)
	if !some {
		return
	}
	reject := h.one(2, "reject")
	for _, other := range txs {
		switch {
		case *other.To() != *tx.To() || other.Nonce() < tx.Nonce():
		case reject && other == tx:
			h.fate(tx.Hash()).rejected = true
			_ = l.Reject(tx.Hash(), errTest)
		default:
			_ = l.Return(other.Hash())
		}
	}
}

// failBundles fails the bundles from one on, which are not on the chain, after the
// leases that were built on them are released.
func (h *orderly) failBundles() {
	if len(h.flight) == 0 || h.stuck != nil {
		return
	}
	h.releaseFrom(0)
	k := h.roll(len(h.flight), "first")
	gone := h.flight[k:]
	h.flight = h.flight[:k]
	h.giveUp(gone, nil)
}

// reorg takes blocks from one on back, and all that is in flight, and executes some
// of the blocks again.
func (h *orderly) reorg() {
	if len(h.blocks) == 0 || h.stuck != nil || h.untold > 0 && !h.crashes {
		return
	}
	h.releaseFrom(0)
	k := h.roll(len(h.blocks), "first")
	gone := append(slices.Clone(h.blocks[k:]), h.flight...)
	for _, b := range slices.Backward(h.blocks[k:]) {
		h.undo(b...)
	}
	again := h.roll(len(h.blocks)-k+1, "again")
	h.blocks, h.flight, h.untold = h.blocks[:k], nil, 0
	for _, b := range gone[:again] {
		h.run(b...)
		h.blocks = append(h.blocks, b)
	}
	h.giveUp(gone[again:], gone[:again])
}

// giveUp tells the pool that bundles have failed, and that others have moved to
// another block.
func (h *orderly) giveUp(failed, moved [][]*types.Transaction) {
	for _, b := range failed {
		h.leave(b)
	}
	h.undone = append(h.undone, failed...)
	h.tellOf(Head{Reverted: append(blocksOf(moved), blocksOf(h.undone)...), Included: blocksOf(moved)})
	if h.Flush() == nil {
		h.undone = nil
	}
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

// turn continues with a new tape.
func (h *orderly) turn() {
	next := &tape{before: h.tape.before}
	if next.before != nil {
		next.before = h.torn(next)
	}
	if h.Rotate(next) == nil {
		h.tape = next
	}
}

// shorten replaces the records by the content of the pool and those of the last
// ones that were appended while the host made the new ones.
func (h *orderly) shorten() {
	if h.Flush() != nil {
		return
	}
	began := h.roll(len(h.tape.records)+1, "began")
	h.tape.records = append(h.Records(), h.tape.records[began:]...)
}

// torn lets some writes of a tape fail, or end the process.
func (h *orderly) torn(j *tape) func([][]byte) {
	return func(records [][]byte) {
		j.broken = nil
		if h.one(5, "fails") {
			j.keeps = h.roll(len(records)+1, "keeps")
			j.broken = pick[error](h, "how", errNoDisk, errCrash)
		}
	}
}

// standing checks that all transactions of a sender that follow without a gap are
// pending.
func (h *orderly) standing() {
	for from, next := range h.ahead(true) {
		waiting := make(map[uint64]Status)
		for hash, f := range h.fates {
			if s := h.Status(hash); *f.tx.To() == from && s != StatusUnknown && s != StatusLeased {
				waiting[f.tx.Nonce()] = s
			}
		}
		for s, some := waiting[next]; some; s, some = waiting[next] {
			require.Equal(h.t, StatusPending, s, "nonce %d of %v", next, from)
			next++
		}
		if have, known := h.NextNonce(from); known {
			require.Equal(h.t, next, have)
		}
	}
}

// again ends the process without a shutdown and begins another one. Each lease with
// transactions is open again.
func (h *orderly) again() {
	if h.crashes {
		h.reopenAll()
		return
	}
	var leased [][]*types.Transaction
	for _, l := range h.open {
		leased = append(leased, l.Transactions())
	}
	h.reopen()
	require.Empty(h.t, h.Held())
	old := h.open
	h.open = nil
	for i, l := range old {
		if len(leased[i]) > 0 {
			again := h.Lease(l.ID())
			require.NotNil(h.t, again)
			same(h.t, leased[i], again.Transactions())
			h.open = append(h.open, again)
		}
	}
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

// reopenAll begins another process. The chain then shows all bundles. The host
// commits the leases whose bundles it has and releases the others.
func (h *orderly) reopenAll() {
	h.open, h.stuck = nil, nil
	h.showAll()
	cfg := h.cfg
	cfg.Journal = h.tape
	h.world.open(cfg, nil)
	if _, err := h.Restore(h.tape.replay); err != nil {
		require.ErrorIs(h.t, err, ErrJournal)
	}
	for _, l := range h.Leases() {
		end := l.Release
		if slices.ContainsFunc(l.Transactions(), func(tx *types.Transaction) bool { return h.fate(tx.Hash()).block }) {
			end = l.Commit
		}
		if err := end(); err != nil {
			require.ErrorIs(h.t, err, ErrJournal)
			panic(errCrash) // the host gives up and starts again
		}
	}
	h.giveUp(nil, nil)
}
