package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// Bounds of the model and of the shown state.
const (
	shownBundles = 24
	shownFinal   = 8 // bundles that are final, at least; more if there is room
	shownSlots   = 64
	shownCores   = 8
	keptEvents   = 40  // the newest
	keptFees     = 240 // samples, at most one per second
	keptPackages = 4096
	// rateTime is the period over which the rate is measured.
	rateTime = 5 * time.Second
)

// model holds the shown state as a value: the current time is a parameter. It
// is not safe for concurrent use.
type model struct {
	info  Info
	clock jamq.SlotClock
	chain chain
	drawn *Chain // cached drawing; nil after a change

	bundles  map[uint64]*bundle
	newest   uint64 // highest number added so far
	finals   []uint64
	txs      [bundlequeue.NumStates]int // not final, by the bundle's state
	final    uint64                     // transactions that became final
	packages packages

	heads  Heads
	begun  bool // heads are known
	fees   []Fee
	events []Event // oldest first
	count  uint64  // of events
	rates  []rate
}

// rate is the number of final transactions at one time.
type rate struct {
	at    time.Time
	final uint64
}

// levels are the values read from the source.
type levels struct {
	pool    Pool
	heads   Heads
	lab     *Lab
	cluster *Cluster
	sent    uint64
}

func newModel(info Info, spec jamq.ChainSpec, first uint64) *model {
	return &model{
		info: info, clock: jamq.NewSlotClock(spec), newest: first,
		chain:    chain{blocks: make(map[jamq.HeaderHash]*block), timeout: spec.AvailabilityTimeout},
		bundles:  make(map[uint64]*bundle),
		packages: packages{named: make(map[jamq.PackageHash]name)},
	}
}

// slot returns the current slot by the clock. If the chain does not follow the
// clock, it returns the slot of the newest block.
func (m *model) slot(now time.Time) jamq.Slot {
	slot := m.clock.SlotAt(now)
	if newest := m.chain.newest; newest > slot || newest > 0 && slot-newest > shownSlots {
		return newest
	}
	return slot
}

func (m *model) importBlock(now time.Time, b jamq.Block, best jamq.HeaderHash) {
	m.drawn = nil
	if depth := m.chain.add(b, best); depth > 0 {
		m.note(now, KindBack, fmt.Sprintf("JAM reorganized: %s replaced", plural(depth, "block")))
	}
}

func (m *model) finalize(hash jamq.HeaderHash) {
	m.drawn = nil
	m.chain.finalize(hash)
}

// note adds an event.
func (m *model) note(now time.Time, kind, text string) {
	m.count++
	m.events = append(m.events, Event{ID: m.count, At: now.UnixMilli(), Slot: m.slot(now), Kind: kind, Text: text})
	if len(m.events) > keptEvents {
		m.events = slices.Clone(m.events[len(m.events)-keptEvents:])
	}
}

// state returns the state to show, including the values from the source.
func (m *model) state(now time.Time, l *levels) State {
	m.moveHeads(now, l.heads)
	if l.pool.Max > 0 {
		m.sample(now, &l.pool)
	}
	slot := m.slot(now)
	if m.drawn == nil || m.drawn.Slot != slot {
		drawn := m.chain.state(slot, m.packages.named)
		m.drawn = &drawn
	}
	events := append([]Event{}, m.events...) // never null in JSON
	slices.Reverse(events)
	on := func(states ...bundlequeue.State) (txs int) {
		for _, s := range states {
			txs += m.txs[s]
		}
		return txs
	}
	return State{
		Node: m.info,
		Flow: Flow{
			Sent: l.sent, Pool: l.pool.Txs,
			Queue:       on(bundlequeue.Reserved, bundlequeue.Queued, bundlequeue.Building, bundlequeue.Sending),
			Cores:       on(bundlequeue.Submitted, bundlequeue.Guaranteed),
			Accumulated: on(bundlequeue.Accumulated),
			Finalized:   m.final, Rate: m.rate(now),
		},
		Heads: m.heads, Bundles: m.shown(), Chain: *m.drawn,
		Fees: append([]Fee{}, m.fees...), Events: events, Lab: l.lab, Cluster: l.cluster,
	}
}

// moveHeads adds one event for each head that moved, however many blocks it
// moved by.
func (m *model) moveHeads(now time.Time, heads Heads) {
	before := m.heads
	m.heads = heads
	if heads.Pending < before.Pending {
		m.drop(heads.Pending)
	}
	if !m.begun {
		m.begun = heads != Heads{}
		return
	}
	if heads.Latest > before.Latest {
		m.note(now, KindLatest, span(before.Latest+1, heads.Latest)+" accumulated")
	}
	if heads.Latest < before.Latest {
		m.note(now, KindBack, fmt.Sprintf("latest moves back from %d to %d", before.Latest, heads.Latest))
	}
	if heads.Finalized > before.Finalized {
		m.note(now, KindFinal, span(before.Finalized+1, heads.Finalized)+" final")
	}
}

// sample records the pool's prices if they differ from the previous sample, at
// most once a second.
func (m *model) sample(now time.Time, p *Pool) {
	const gwei = 1e9
	f := Fee{At: now.UnixMilli(), Base: float64(p.Base) / gwei, Floor: float64(p.Floor) / gwei, Surge: float64(p.Surge) / 1000}
	f.Full = float64(int(1000*float64(p.Txs)/float64(p.Max)+0.5)) / 1000
	if len(m.fees) > 0 {
		last := m.fees[len(m.fees)-1]
		if last.At+1000 > f.At {
			return
		}
		if last.At = f.At; last == f {
			return
		}
	}
	m.fees = append(m.fees, f)
	if len(m.fees) > keptFees {
		m.fees = slices.Clone(m.fees[len(m.fees)-keptFees:])
	}
}

// rate returns the number of transactions that became final per second over
// rateTime.
func (m *model) rate(now time.Time) float64 {
	for len(m.rates) > 1 && now.Sub(m.rates[0].at) > rateTime {
		m.rates = m.rates[1:]
	}
	m.rates = append(m.rates, rate{now, m.final})
	took := max(now.Sub(m.rates[0].at), time.Second).Seconds()
	return float64(int(10*float64(m.final-m.rates[0].final)/took)) / 10
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func span(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("block %d", first)
	}
	return fmt.Sprintf("blocks %d–%d", first, last)
}
