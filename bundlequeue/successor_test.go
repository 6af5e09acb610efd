package bundlequeue_test

import (
	"testing"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// Only packages of bundle 1 are ever dropped by the network until it is final; each drop counts
// against bundle 2 too, though its package could not be reported because it names the dropped one.
func TestLossCountsForSuccessor(t *testing.T) {
	h := newHand(t, func(c *bundlequeue.Config) { c.MaxVersionRetries = 1; c.Cores = []jamq.CoreIndex{0, 1} })
	for range 10 {
		h.block(nil)
	}
	h.step(bundlequeue.FinalizedBlock{Hash: h.last})
	h.step(bundlequeue.Enqueue{Number: 1, Bundle: []byte("1")})
	sent, versions := map[uint64]jamq.PackageHash{}, map[uint64]int{}
	serve := func() {
		for range 3 {
			for _, e := range h.q.Open() {
				if b, ok := e.(bundlequeue.Build); ok {
					sent[b.Number], _ = h.built(b, h.slot)
					versions[b.Number]++
				}
			}
		}
	}
	serve()
	h.step(bundlequeue.Enqueue{Number: 2, Bundle: []byte("2")})
	serve()
	one := false
	ownLosses := 0
	var avail bool
	for range 16 { // until the third package of bundle 2 is out
		h.block(func(b *jamq.Block) {
			if avail {
				b.Available = []jamq.CoreIndex{0}
				avail = false
			}
			// The second package of bundle 1 arrives. That of bundle 2 is lost,
			// which is its first loss.
			if versions[1] == 2 && !one {
				b.Reported = []jamq.Report{{Package: sent[1], Core: 0}}
				one, avail = true, true
				ownLosses++
			}
		})
		h.step(bundlequeue.FinalizedBlock{Hash: h.last})
		serve()
		for _, e := range h.log {
			if f, ok := e.(bundlequeue.Failed); ok {
				t.Fatalf("bundle %d failed (%s): the network lost %d package of it, want at least 2 with MaxVersionRetries 1", f.Number, f.Reason, ownLosses)
			}
		}
	}
}
