package bundlequeue

import (
	"fmt"
	"time"

	"github.com/jamq/jamq/anchor"
)

// Delay describes the bundle that holds up the queue, for alarms and status pages: the
// first bundle without a submitted package. All later bundles wait for it.
type Delay struct {
	// Number is the number of the bundle's rollup block.
	Number uint64
	// Since is when the bundle began to wait. It is the latest of three times: when the
	// bundle was enqueued, when its last submitted package died, and when the package of
	// the bundle before it was first sent.
	Since time.Time
	// Reason describes in words why the bundle waits.
	Reason string
	// FailedBuilds counts the builds that failed since the queue last sent a new package of the
	// bundle. UselessBuilds counts the builds since then whose package was already dead when it
	// was ready.
	FailedBuilds, UselessBuilds int
}

// Delayed returns the first bundle without a submitted package, or false if there is
// none. In normal operation every bundle waits for a short time, so a host should raise
// an alarm only after a long wait. Some waits never end by themselves; the host can end
// them with [GiveUp].
func (q *Queue) Delayed() (Delay, bool) {
	for place := max(q.active, q.frontier); place < q.end(); place++ {
		if it := q.at(place); it.state < Guaranteed && !it.left() {
			return q.delayOf(it), true
		}
	}
	return Delay{}, false
}

func (q *Queue) delayOf(it *item) Delay {
	since, t := it.queuedAt, it.troubles()
	if p := q.predecessor(it); p != nil {
		if v := p.live(); v != nil {
			since = max(since, v.firstSend)
		}
	}
	return Delay{
		Number: it.number, Since: since.time(), Reason: q.waitsFor(it),
		FailedBuilds: t.failed, UselessBuilds: t.useless,
	}
}

// waitsFor tells operators what the first bundle without a submitted package waits for.
func (q *Queue) waitsFor(it *item) string {
	t := it.troubles()
	admission := q.admissible(it)
	switch {
	case it.state == Reserved:
		return "its number is reserved and not filled"
	case q.ended(it) && it.troubles().givenUp != "":
		return "it is given up, and waits until its packages are dead on the finalized chain"
	case q.ended(it):
		return fmt.Sprintf("%d packages are lost, and their death is not final", it.losses())
	case it.live() != nil:
		return "its package waits to be sent"
	case it.request != nil && t.useless > 0:
		return fmt.Sprintf("a package is being built; the last %d were dead when they were ready (%v)", t.useless, t.reason)
	case it.request != nil:
		return "a package is being built"
	case len(it.versions) >= q.cfg.maxVersions():
		return fmt.Sprintf("%d packages are dead, and finality has not settled them", len(it.versions))
	case !t.untilFinal.IsZero() && t.untilFinal == q.view.Finalized().Hash:
		return fmt.Sprintf("finality does not move, and the last package was dead when it was ready (%v)", t.reason)
	case !t.untilBest.IsZero() && t.untilBest == q.view.Best().Hash:
		return fmt.Sprintf("no new block, and the last package was dead when it was ready (%v)", t.reason)
	case q.now < it.notBefore && t.failed > 0:
		return fmt.Sprintf("%d builds failed", t.failed)
	case !admission.ok:
		return "the package before it can be neither named nor left out yet"
	case q.cores.free == 0:
		return "no core is free"
	}
	if _, _, ok := q.anchorAt(admission.minAnchor, q.offset(it)); !ok {
		return "no block can be its anchor yet"
	}
	if t.reason != anchor.Alive {
		return fmt.Sprintf("the last package was dead when it was ready (%v)", t.reason)
	}
	return "its turn"
}
