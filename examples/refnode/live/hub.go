package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Source provides the values that the hub polls. The hub calls its methods from
// the goroutine of Run and holds no lock.
type Source interface {
	// Pool returns the occupancy and the prices of the pool.
	Pool() Pool
	// Heads returns the heads of the rollup.
	Heads() Heads
	// Txs returns the number of transactions in a rollup block, or false if the
	// block does not exist.
	Txs(number uint64) (int, bool)
	// Lab returns the settings of fault injection, or nil if there is no lab.
	Lab() *Lab
	// Cluster returns the replicas of the node, or nil if it has none.
	Cluster() *Cluster
}

// Pool describes the transaction pool. Txs is the number of transactions, and
// Max its maximum.
type Pool struct {
	Txs, Max    int
	Base, Floor uint64 // wei per gas
	Surge       uint64 // per mille
}

// period is the minimum time between two snapshots.
const period = 250 * time.Millisecond

// Hub collects the events of a node. Its methods are safe for concurrent use,
// fast, and never wait for readers.
type Hub struct {
	source Source
	sent   atomic.Uint64
	done   chan struct{}
	ending sync.Once

	mu    sync.Mutex
	model *model

	published sync.Mutex // guards the fields below
	snapshot  *Snapshot
	changed   chan struct{} // closed at the next snapshot
}

// NewHub returns a hub. It publishes no new snapshot before Run. Blocks up to
// the number first, those that were final at the start, are not shown.
func NewHub(info Info, spec jamq.ChainSpec, first uint64, source Source) *Hub {
	h := &Hub{source: source, done: make(chan struct{}), model: newModel(info, spec, first), changed: make(chan struct{})}
	h.snapshot = newSnapshot(nil, h.model.state(time.Now(), &levels{}))
	return h
}

// Run publishes snapshots until ctx ends, and returns its error. It must be called once.
func (h *Hub) Run(ctx context.Context) error {
	defer h.ending.Do(func() { close(h.done) })
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-ticker.C:
			h.publish(now)
		}
	}
}

// publish makes a snapshot if something changed.
func (h *Hub) publish(now time.Time) {
	l := levels{pool: h.source.Pool(), heads: h.source.Heads(), lab: h.source.Lab(), cluster: h.source.Cluster(), sent: h.sent.Load()}
	for _, number := range h.missing(l.heads.Pending) {
		if txs, ok := h.source.Txs(number); ok {
			h.with(func(m *model) { m.bundle(now, number, txs, bundlequeue.Queued) })
		}
	}
	h.mu.Lock()
	state := h.model.state(now, &l)
	h.mu.Unlock()
	h.published.Lock()
	defer h.published.Unlock()
	if next := newSnapshot(h.snapshot, state); next != h.snapshot {
		h.snapshot = next
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

// missing returns the numbers of executed blocks that the model does not have.
func (h *Hub) missing(pending uint64) (numbers []uint64) {
	h.with(func(m *model) { numbers = m.missing(pending) })
	return numbers
}

func (h *Hub) with(f func(m *model)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.model)
}

// Snapshot returns the newest snapshot, and a channel that is closed when there
// is a newer one.
func (h *Hub) Snapshot() (*Snapshot, <-chan struct{}) {
	h.published.Lock()
	defer h.published.Unlock()
	return h.snapshot, h.changed
}

// Done returns a channel that is closed when Run has ended. There are no more
// snapshots after that.
func (h *Hub) Done() <-chan struct{} { return h.done }

// Sent records that the node accepted txs transactions from users.
func (h *Hub) Sent(txs int) { h.sent.Add(uint64(txs)) }

// Import records that a JAM block was imported, and which block is now the
// best.
func (h *Hub) Import(b jamq.Block, best jamq.HeaderHash) {
	h.with(func(m *model) { m.importBlock(time.Now(), b, best) })
}

// Finalize records that a JAM block is final.
func (h *Hub) Finalize(hash jamq.HeaderHash) { h.with(func(m *model) { m.finalize(hash) }) }

// Build records that a version of a bundle with txs transactions is being
// built.
func (h *Hub) Build(number uint64, version, txs int, core jamq.CoreIndex) {
	h.with(func(m *model) { m.build(time.Now(), number, version, txs, core) })
}

// Send records that a version is sent to a core.
func (h *Hub) Send(number uint64, version int, pkg jamq.PackageHash, core jamq.CoreIndex) {
	h.with(func(m *model) { m.send(time.Now(), number, version, pkg, core) })
}

// Changed records that a bundle with txs transactions entered another state.
func (h *Hub) Changed(e bundlequeue.Changed, txs int) {
	h.with(func(m *model) { m.change(time.Now(), e, txs) })
}

// Died records that a version is dead.
func (h *Hub) Died(number uint64, version int, reason anchor.Reason) {
	h.with(func(m *model) { m.die(time.Now(), number, version, reason) })
}

// Failed records that a bundle was given up.
func (h *Hub) Failed(number uint64, reason string) {
	h.with(func(m *model) { m.fail(time.Now(), number, reason) })
}

// Note records that a user injected or removed a fault.
func (h *Hub) Note(text string) {
	h.with(func(m *model) { m.note(time.Now(), KindLab, text) })
}
