package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// scale is the size of the workloads.
type scale struct {
	senders   []int // W1, ascending; the last is that of the other workloads
	round     int   // single Adds that are timed together
	batch     int
	chains    int // W2: senders
	nonces    int // W2: transactions of each
	replaced  int // W3
	full      int // W4
	evictions int // W4
	best      int // W5
	block     int // W6
	raw       int // signatures to recover
	few       int // transactions in the smaller pool of growth
	million   int // those in the greater one
	short     int // transactions in the shorter chain of one sender
	long      int // those in the longer one
	rounds    int
}

var (
	full  = scale{[]int{5_000, 20_000, 100_000}, 400, 1000, 1000, 100, 10_000, 10_000, 2000, 1700, 10_000, 20_000, 10_000, 1_000_000, 1024, 16_384, 3}
	quick = scale{[]int{1000, 2000, 5000}, 100, 200, 50, 20, 1000, 1000, 200, 300, 1000, 2000, 2000, 20_000, 64, 512, 1}
)

// largest returns the greatest number of senders.
func (s scale) largest() int { return s.senders[len(s.senders)-1] }

// spare returns the number of accounts without a transaction in the pool.
func (s scale) spare() int { return max(4*s.batch, 2*s.round, s.evictions) + 2*s.block }

// stock holds the transactions that all contenders get.
type stock struct {
	scale
	people   *people
	resident []*types.Transaction // one of each sender
	fresh    []*types.Transaction // one of each spare sender
	better   []*types.Transaction // the same, dearer than any resident
	chains   []*types.Transaction
	bumped   []*types.Transaction
}

func newStock(s scale) *stock {
	n := s.largest()
	p := newPeople(n + s.spare())
	resident := once(0, n, 1)
	return &stock{
		scale: s, people: p,
		resident: p.sign(resident),
		fresh:    p.sign(once(n, n+s.spare(), 2)),
		better:   p.sign(dearer(once(n, n+s.evictions, 3), 100)),
		chains:   p.sign(shuffled(s.chains, s.nonces, 4)),
		bumped:   p.sign(dearer(resident[:s.replaced], 2)),
	}
}

// open returns a pool that holds the given transactions.
func (s *stock) open(c contender, l limits, txs ...*types.Transaction) pool {
	l.accounts = s.people.addresses
	if l.perSender == 0 {
		l.perSender = 16
	}
	if l.transactions == 0 {
		l.transactions = 4 * (s.largest() + len(s.chains))
	}
	p := c.open(l)
	if w, ok := p.(*cosmos); ok {
		for _, txs := range [][]*types.Transaction{s.resident, s.fresh, s.better, s.chains, s.bumped} {
			w.wrap(txs)
		}
	}
	for batch := range slices.Chunk(txs, s.batch) {
		p.addAll(batch)
	}
	holds(p, len(txs))
	return p
}

// holds panics if a pool does not hold the wanted number of transactions,
// because the figures would then be meaningless.
func holds(p pool, want int) {
	if got := p.size(); got != want {
		panic(fmt.Sprintf("%T holds %d, want %d", p, got, want))
	}
}

// timed returns the duration of f. It collects garbage first.
func timed(f func()) time.Duration {
	runtime.GC()
	began := time.Now()
	f()
	return time.Since(began)
}

// per returns nanoseconds per operation.
func per(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) }

// arrive adds transactions in batches and returns nanoseconds per transaction.
// It loads each batch into the CPU's cache before the clock starts, because a
// transaction reaches a pool directly after it was decoded and its sender
// recovered. A first part, which is not counted, loads the pool's memory into
// the cache too.
func (s *stock) arrive(p pool, txs []*types.Transaction, size, warmup int) float64 {
	runtime.GC()
	var spent time.Duration
	counted := 0
	for batch := range slices.Chunk(txs, size) {
		for _, tx := range batch {
			p.look(tx)
		}
		began := time.Now()
		if size == 1 {
			p.add(batch[0])
		} else {
			p.addAll(batch)
		}
		if warmup -= len(batch); warmup < 0 {
			spent += time.Since(began)
			counted += len(batch)
		}
	}
	return per(spent, counted)
}

// arriveSingly is like arrive, one transaction at a time. Several Adds are
// timed together, so that reading the clock does not distort the result. It
// ends after about a second, so a fast pool gets more of the transactions than
// a slow one.
func (s *stock) arriveSingly(p pool, txs []*types.Transaction) (ns float64, added int) {
	const together, enough = 50, time.Second
	runtime.GC()
	var warmup, spent time.Duration
	counted := 0
	for group := range slices.Chunk(txs, together) {
		for _, tx := range group {
			p.look(tx)
		}
		began := time.Now()
		for _, tx := range group {
			p.add(tx)
		}
		took := time.Since(began)
		added += len(group)
		if added <= len(txs)/4 && warmup < enough/4 {
			warmup += took
			continue
		}
		spent += took
		if counted += len(group); spent > enough {
			break
		}
	}
	return per(spent, counted), added
}

// one is W1: one Add to a pool that holds one transaction of each sender.
func (s *stock) one(c contender, senders int) float64 {
	p := s.open(c, limits{}, s.resident[:senders]...)
	defer p.close()
	ns, added := s.arriveSingly(p, s.fresh[:min(10*s.round, len(s.fresh))])
	holds(p, senders+added)
	return ns
}

// batches is W1 in batches.
func (s *stock) batches(c contender) float64 {
	p := s.open(c, limits{}, s.resident...)
	defer p.close()
	fresh := s.fresh[:4*s.batch]
	ns := s.arrive(p, fresh, s.batch, s.batch)
	holds(p, len(s.resident)+len(fresh))
	return ns
}

// shuffledChains is W2: chains of transactions in random order.
func (s *stock) shuffledChains(c contender) float64 {
	p := s.open(c, limits{perSender: s.nonces})
	defer p.close()
	ns := s.arrive(p, s.chains, s.batch, 0)
	holds(p, len(s.chains))
	return ns
}

// replace is W3: replacements.
func (s *stock) replace(c contender) float64 {
	p := s.open(c, limits{}, s.resident[:s.replaced]...)
	defer p.close()
	ns := s.arrive(p, s.bumped, s.batch, s.batch)
	holds(p, s.replaced)
	return ns
}

// evict is W4: each Add to a full pool evicts a transaction.
func (s *stock) evict(c contender) float64 {
	p := s.open(c, limits{transactions: s.full, full: true}, s.resident[:s.full]...)
	defer p.close()
	ns, _ := s.arriveSingly(p, s.better)
	holds(p, s.full)
	return ns
}

// read is W5: reading the best transactions for a block.
func (s *stock) read(c contender) float64 {
	p := s.open(c, limits{}, s.resident...)
	defer p.close()
	got := 0
	d := timed(func() { got = p.best(s.best) })
	if got != s.best {
		panic(fmt.Sprintf("%s read %d, want %d", c.name, got, s.best))
	}
	return float64(d.Nanoseconds())
}

// bestBlock returns the best of the resident transactions.
func (s *stock) bestBlock() []*types.Transaction {
	sorted := slices.Clone(s.resident)
	slices.SortFunc(sorted, func(a, b *types.Transaction) int { return -cmp.Compare(a.GasTipCap().Int64(), b.GasTipCap().Int64()) })
	return sorted[:s.block]
}

// prepared lets a pool create the state that the chain has when a block is
// committed.
func prepared(p pool, block []*types.Transaction) {
	switch p := p.(type) {
	case *geth:
		p.prepare(block)
	case *bare:
		p.prepare(block)
	case *jamq:
		p.prepare(block)
		p.session = p.drain(len(block))
	}
}

// commit is W6, the duration of a commit, and W7, the slowest Add meanwhile,
// both in nanoseconds.
func (s *stock) commit(c contender) (total, worst float64) {
	p := s.open(c, limits{}, s.resident...)
	block := s.bestBlock()
	prepared(p, block)
	total = float64(timed(func() { p.commit(block) }).Nanoseconds())
	holds(p, len(s.resident)-len(block))
	p.close()

	p = s.open(c, limits{}, s.resident...)
	prepared(p, block)
	runtime.GC()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.commit(block)
	}()
	worst = s.addUntil(p, done)
	p.close()
	return total, worst
}

// addUntil adds one transaction after another until done is closed, and returns
// the duration of the slowest Add.
func (s *stock) addUntil(p pool, done <-chan struct{}) float64 {
	var worst time.Duration
	for _, tx := range s.fresh {
		began := time.Now()
		p.add(tx)
		worst = max(worst, time.Since(began))
		select {
		case <-done:
			return float64(worst.Nanoseconds())
		default:
		}
	}
	<-done
	return float64(worst.Nanoseconds())
}

// memory returns bytes per transaction in addition to the transaction itself.
func (s *stock) memory(c contender) float64 {
	empty := s.open(c, limits{})
	before := heapInUse()
	p := s.open(c, limits{}, s.resident...)
	after := heapInUse()
	runtime.KeepAlive(empty)
	p.close()
	empty.close()
	return (float64(after) - float64(before)) / float64(len(s.resident))
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
