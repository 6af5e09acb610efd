package bundlequeue

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

// This file is a second, naive implementation of rules R1 to R6 for the model checker: a whole JAM
// chain of a few blocks as a small value. It shares nothing with package chainview, so the two
// check each other.

// anyLookup is a greatest age of lookup anchors that no search reaches: rule D3 does nothing.
const anyLookup = 200

// worldSpec is a chain on which packages live and die within a few blocks.
func worldSpec(history, lookup int) jamq.ChainSpec {
	s := jamq.Tiny()
	s.Name = "model"
	s.RecentHistory, s.EpochLength, s.AvailabilityTimeout = history, 4, 2
	s.RotationPeriod, s.MaxLookupAnchorAge = 1, jamq.Slot(lookup)
	return s
}

const worldCores = 2

// none stands for no block and no package.
const none = -1

// wblock is a block with the state after it.
type wblock struct {
	parent       int8
	height, slot uint8
	reported     [worldCores]int8 // package by core, or none
	available    [worldCores]bool
	clears       bool
	core         [worldCores]wcore
	ready        []wcore
	accumulated  []int8
}

// wcore is a package on a core or in the ready queue, since a slot.
type wcore struct {
	pkg   int8
	since uint8
}

// wpackage is a package that was built.
type wpackage struct {
	name   int8 // of the bundle
	anchor int8
	look   uint8 // slot of its lookup anchor
	needs  int8  // package or none
	core   int8
	sent   bool
}

// world is the chain and the builder's side of things.
type world struct {
	spec        *jamq.ChainSpec
	blocks      []wblock
	packages    []wpackage
	best, final int8
	now         time.Duration // since the common era
	builds      []Build
	sends       []Send
	handedBack  []int8
	left        budget
}

// budget is how often something may still happen.
type budget struct {
	blocks   int8 // blocks of any kind
	forks    int8 // blocks beside another one
	reorgs   int8 // changes to a best block of the same height
	failures int8 // builds that fail, and sends that arrive although they seem to fail
	careless int8 // packages that the queue must refuse
	delays   int8 // blocks that overtake builds and sends
	skips    int8 // slots without a block
	stalls   int8 // blocks while finality is late
	cores    int8 // changes of the set of cores
	outages  int8 // sends that fail and never arrive
	clears   int8 // blocks with another number of validators, which clear the cores
}

// budgetField is one field of a budget and its name.
type budgetField struct {
	name string
	left *int8
}

func (b *budget) fields() []budgetField {
	return []budgetField{
		{"blocks", &b.blocks}, {"forks", &b.forks}, {"reorgs", &b.reorgs}, {"failures", &b.failures}, {"careless", &b.careless},
		{"delays", &b.delays}, {"skips", &b.skips}, {"stalls", &b.stalls}, {"cores", &b.cores}, {"outages", &b.outages},
		{"clears", &b.clears},
	}
}

func newWorld(spec *jamq.ChainSpec, left budget) world {
	w := world{spec: spec, left: left}
	w.blocks = []wblock{{parent: none, reported: [worldCores]int8{none, none}, core: [worldCores]wcore{{pkg: none}, {pkg: none}}}}
	return w
}

func blockHash(i int8) jamq.HeaderHash    { return jamq.HeaderHash{byte(i) + 1, 0xb} }
func packageHash(i int8) jamq.PackageHash { return jamq.PackageHash{byte(i) + 1, 0xc} }

// clone returns a copy that shares only what is never written.
func (w *world) clone() world {
	c := *w
	c.blocks = append([]wblock(nil), w.blocks...)
	c.packages = append([]wpackage(nil), w.packages...)
	c.builds = append([]Build(nil), w.builds...)
	c.sends = append([]Send(nil), w.sends...)
	c.handedBack = append([]int8(nil), w.handedBack...)
	return c
}

// onChain calls f for each block from head back to the first, until it returns true.
func (w *world) onChain(head int8, f func(i int8, b *wblock) bool) bool {
	for i := head; i != none; i = w.blocks[i].parent {
		if f(i, &w.blocks[i]) {
			return true
		}
	}
	return false
}

// reports tells whether one of the last n blocks of a chain reports a package; n < 0 means any.
func (w *world) reports(head int8, pkg int8, n int) bool {
	return w.onChain(head, func(_ int8, b *wblock) bool {
		n--
		return n != -1 && (b.reported[0] == pkg || b.reported[1] == pkg)
	})
}

// has tells whether a chain has accumulated a package, in its last n blocks if n is not negative.
func (w *world) has(head int8, pkg int8, n int) bool {
	return w.onChain(head, func(_ int8, b *wblock) bool {
		n--
		if n == -1 {
			return false
		}
		for _, p := range b.accumulated {
			if p == pkg {
				return true
			}
		}
		return false
	})
}

// descends tells whether head is a descendant of i or i itself.
func (w *world) descends(head, i int8) bool {
	return w.onChain(head, func(j int8, _ *wblock) bool { return j == i })
}

// lookup returns the slot of the lookup anchor of a package that is built now. Guarantors want a
// final block, which is an ancestor of every block to come.
func (w *world) lookup(anchor int8) uint8 {
	if w.spec.MaxLookupAnchorAge == anyLookup {
		return w.blocks[anchor].slot
	}
	return w.blocks[w.final].slot
}

// mayReport reports whether a block that follows a parent by some slots may
// report a package, according to the chain (R1 to R3). with are other packages
// of the same block, which count as prerequisites.
func (w *world) mayReport(p int8, parent int8, slots uint8, with []int8) bool {
	pkg, h := &w.packages[p], w.spec.RecentHistory
	switch {
	case !pkg.sent, !w.descends(parent, pkg.anchor), w.depthOf(parent, pkg.anchor) >= h, w.reports(parent, p, -1):
		return false
	case int(w.blocks[parent].slot)+int(slots)-int(pkg.look) > int(w.spec.MaxLookupAnchorAge):
		return false
	}
	return pkg.needs == none || w.reports(parent, pkg.needs, h) || contains(with, pkg.needs)
}

// depthOf returns how many blocks i is behind head.
func (w *world) depthOf(head, i int8) int {
	n := 0
	w.onChain(head, func(j int8, _ *wblock) bool {
		if j == i {
			return true
		}
		n++
		return false
	})
	return n
}

// extend adds a block and returns its index and the host's view of it.
func (w *world) extend(parent int8, slots uint8, available [worldCores]bool, clears bool, reported [worldCores]int8) (int8, jamq.Block) {
	spec := w.spec
	p := &w.blocks[parent]
	b := wblock{parent: parent, height: p.height + 1, slot: p.slot + slots, reported: reported, clears: clears, core: p.core}
	i := int8(len(w.blocks))
	out := jamq.Block{Hash: blockHash(i), Parent: blockHash(parent), Slot: jamq.Slot(b.slot), CoresCleared: clears}
	var free, bound []wcore
	for c := range b.core {
		on := b.core[c]
		if on.pkg == none {
			continue
		}
		if available[c] {
			b.available[c] = true
			out.Available = append(out.Available, jamq.CoreIndex(c))
			if w.packages[on.pkg].needs == none {
				free = append(free, on)
			} else {
				bound = append(bound, wcore{pkg: on.pkg, since: b.slot})
			}
		}
		if available[c] || clears || jamq.Slot(b.slot) >= jamq.Slot(on.since)+spec.AvailabilityTimeout {
			b.core[c] = wcore{pkg: none}
		}
	}
	for c, pkg := range reported {
		if pkg != none {
			b.core[c] = wcore{pkg: pkg, since: b.slot}
			r := jamq.Report{Package: packageHash(pkg), Core: jamq.CoreIndex(c)}
			if needs := w.packages[pkg].needs; needs != none {
				r.Prerequisites = []jamq.PackageHash{packageHash(needs)}
			}
			out.Reported = append(out.Reported, r)
		}
	}
	for _, f := range free {
		b.accumulated = append(b.accumulated, f.pkg)
	}
	queue := append(append([]wcore(nil), p.ready...), bound...)
	for again := true; again; {
		again = false
		for k, r := range queue {
			needs := w.packages[r.pkg].needs
			if contains(b.accumulated, needs) || w.has(parent, needs, int(spec.EpochLength)) {
				b.accumulated = append(b.accumulated, r.pkg)
				queue = append(queue[:k:k], queue[k+1:]...)
				again = true
				break
			}
		}
	}
	for _, r := range queue {
		if jamq.Slot(b.slot) < jamq.Slot(r.since)+spec.EpochLength {
			b.ready = append(b.ready, r)
		}
	}
	w.blocks = append(w.blocks, b)
	return i, out
}

func contains(list []int8, x int8) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// judge checks the chain that ends in a block against the promises: each bundle executed at most
// once, and in order.
func (w *world) judge(head int8) error {
	var chain []int8
	w.onChain(head, func(i int8, _ *wblock) bool {
		chain = append(chain, i)
		return false
	})
	next := int8(0)
	for k := len(chain) - 1; k >= 0; k-- {
		for _, p := range w.blocks[chain[k]].accumulated {
			switch name := w.packages[p].name; {
			case name < next:
				return fmt.Errorf("B1: bundle %d is executed twice on the chain of block %d", name, head)
			case name > next:
				return fmt.Errorf("B3: bundle %d is executed before %d on the chain of block %d", name, next, head)
			default:
				next++
			}
		}
	}
	return nil
}
