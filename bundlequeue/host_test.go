package bundlequeue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
)

var handTime = time.Unix(1_800_000_000, 0).UTC()

func handHash(fork byte, n int) jamq.HeaderHash {
	return jamq.HeaderHash{fork, byte(n >> 8), byte(n), 1}
}

// hand is a queue whose blocks and packages are made by hand, one after another.
type hand struct {
	t      *testing.T
	q      *bundlequeue.Queue
	now    time.Time
	last   jamq.HeaderHash
	slot   jamq.Slot
	log    []bundlequeue.Effect
	pkgs   byte
	blocks []jamq.Block
}

func newHand(t *testing.T, change func(*bundlequeue.Config)) *hand {
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	if change != nil {
		change(&cfg)
	}
	root := jamq.Block{Hash: handHash('r', 0)}
	q, err := bundlequeue.New(cfg, root)
	require.NoError(t, err)
	return &hand{t: t, q: q, now: handTime, last: root.Hash}
}

// newFinalHand returns a queue after ten blocks, all of them final.
func newFinalHand(t *testing.T) *hand {
	t.Helper()
	h := newHand(t, nil)
	for range 10 {
		h.block(nil)
	}
	h.step(bundlequeue.FinalizedBlock{Hash: h.last})
	return h
}

func (h *hand) step(ev bundlequeue.Event) []bundlequeue.Effect {
	h.t.Helper()
	out, err := h.q.Step(h.now, ev)
	require.NoError(h.t, err)
	require.NoError(h.t, h.q.Check())
	for _, e := range out {
		h.t.Logf("%d: %v", h.slot, e)
	}
	h.log = append(h.log, out...)
	return out
}

func (h *hand) block(change func(*jamq.Block)) []bundlequeue.Effect {
	h.slot++
	h.now = h.now.Add(6 * time.Second)
	b := jamq.Block{Hash: handHash('m', int(h.slot)), Parent: h.last, Slot: h.slot}
	if change != nil {
		change(&b)
	}
	h.last = b.Hash
	h.blocks = append(h.blocks, b)
	return h.step(bundlequeue.Imported{Block: b, Best: b.Hash})
}

func builds(out []bundlequeue.Effect) (all []bundlequeue.Build) {
	for _, e := range out {
		if b, ok := e.(bundlequeue.Build); ok {
			all = append(all, b)
		}
	}
	return all
}

func (h *hand) built(b bundlequeue.Build, look jamq.Slot, extra ...jamq.PackageHash) (jamq.PackageHash, []bundlequeue.Effect) {
	h.t.Helper()
	h.pkgs++
	pkg := jamq.PackageHash{h.pkgs, 0xcc}
	out := h.step(bundlequeue.Built{Ticket: b.Ticket, Package: pkg, Bundle: b.Bundle, Context: jamq.RefineContext{
		Anchor: b.Anchor.Hash, LookupAnchorSlot: look, Prerequisites: append(b.Prerequisites, extra...)}})
	for _, e := range out {
		if s, ok := e.(bundlequeue.Send); ok && s.Package == pkg {
			out = append(out, h.step(bundlequeue.Sent{Ticket: s.Ticket, OK: true})...)
		}
	}
	return pkg, out
}

// A bundle does not name a predecessor whose report the queue has not seen: the
// report may have left recent history, and then no block can report a package
// that names it (R3).
func TestPredecessorWithoutReportIsNotNamed(t *testing.T) {
	h := newFinalHand(t)
	p, _ := h.built(builds(h.step(bundlequeue.Enqueue{Number: 1, Bundle: []byte("1")}))[0], h.slot)
	h.block(func(b *jamq.Block) { b.AccumulatedKnown, b.Accumulated = true, []jamq.PackageHash{p} })
	next := builds(append(h.step(bundlequeue.Enqueue{Number: 2, Bundle: []byte("2")}), h.block(nil)...))
	require.Len(t, next, 1)
	require.Empty(t, next[0].Prerequisites)
}

// Numbers stay below the bound that a snapshot can hold, however often they are shifted.
func TestRekeyKeepsNumbersInBounds(t *testing.T) {
	h := newHand(t, nil)
	for n := range uint64(3) {
		h.step(bundlequeue.Enqueue{Number: n + 1, Bundle: []byte("x")})
	}
	const most = 1 << 60
	h.step(bundlequeue.Rekey{From: 3, To: most})
	_, err := h.q.Step(h.now, bundlequeue.Rekey{From: 2, To: most})
	require.ErrorIs(t, err, bundlequeue.ErrWrongNumber)
	_, err = bundlequeue.Restore(bundlequeue.DefaultConfig(jamq.Tiny()), h.q.AppendSnapshot(nil))
	require.NoError(t, err)
}

// NextWake forgets a reservation that ran out before its turn came.
func TestNextWakeReservation(t *testing.T) {
	h := newHand(t, nil)
	for range 10 {
		h.block(nil)
	}
	b := builds(h.step(bundlequeue.Enqueue{Number: 1, Bundle: []byte("1")}))[0]
	p, _ := h.built(b, h.slot)
	h.step(bundlequeue.Reserve{Number: 2})
	h.now = h.now.Add(2 * time.Minute)
	h.block(func(b *jamq.Block) { b.Reported = []jamq.Report{{Package: p}} })
	info, _ := h.q.Info(1)
	require.Equal(t, bundlequeue.Guaranteed, info.State)
	at, ok := h.q.NextWake(h.now)
	t.Log(at, ok, h.q.Next())
	before := h.q.Next()
	h.now = h.now.Add(time.Nanosecond)
	h.step(bundlequeue.Tick{})
	require.False(t, !ok && before != h.q.Next(), "NextWake knows no time, and a Tick released the reservation: %d, %d", before, h.q.Next())
}

// A package that was built on an old lookup anchor waits for one more final block than it needs.
func TestUntilFinalAfterFinalityMoved(t *testing.T) {
	h := newFinalHand(t)
	old := h.slot
	for range 22 { // finality stalls for nearly L = 24 slots
		h.block(nil)
	}
	b := builds(h.step(bundlequeue.Enqueue{Number: 1, Bundle: []byte("1")}))[0]
	for range 3 {
		h.block(nil)
	}
	h.step(bundlequeue.FinalizedBlock{Hash: h.last}) // during the build
	for _, e := range h.q.Open() {
		if again, ok := e.(bundlequeue.Build); ok {
			b = again
		}
	}
	_, out := h.built(b, old)
	require.Len(t, builds(out), 1, "finality has moved since the request")
}

func TestLateForkIsNoGap(t *testing.T) {
	spec := jamq.Tiny()
	root := jamq.Block{Hash: handHash('r', 0)}
	v, err := chainview.New(&spec, root)
	require.NoError(t, err)
	imp := func(fork byte, slot int, parent jamq.HeaderHash, best bool) error {
		b := jamq.Block{Hash: handHash(fork, slot), Parent: parent, Slot: jamq.Slot(slot)}
		if best {
			return v.ImportBest(&b, b.Hash)
		}
		return v.Import(&b)
	}
	require.NoError(t, imp('m', 1, root.Hash, true))
	require.NoError(t, imp('m', 2, handHash('m', 1), true))
	require.NoError(t, imp('f', 3, handHash('m', 1), false))
	require.NoError(t, v.Finalize(handHash('m', 2)))
	err = imp('f', 4, handHash('f', 3), false)
	require.ErrorIs(t, err, chainview.ErrOld, "a late block of a fork that finality has passed by is no gap")
}
