package bundlequeue_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// trouble is a set of faults: a slow builder, guarantors that cannot be
// reached, a JAM node that shows no blocks, a chain without blocks, and cores
// that come and go. Each fault is absent in many seeds, so that all
// combinations occur.
type trouble struct {
	random *rand.Rand
	// builds are the least and the greatest number of slots that a build takes.
	builds [2]jamq.Slot
	// chance is the chance per slot that one of the outages begins, cores that the set of cores
	// changes.
	chance, cores float64
	// unreachable, deaf and frozen are the slots that are left of each outage.
	unreachable, deaf, frozen int
	skip                      float64 // of the chain, when it is not frozen
	// hangs decides which builds hang; nil: none.
	hangs *rand.Rand
}

// slowBuild is a build that is ready at a slot.
type slowBuild struct {
	bundlequeue.Build
	context jamq.RefineContext
	fails   bool
	ready   jamq.Slot
}

func newTrouble(seed uint64) *trouble {
	t := &trouble{random: rand.New(rand.NewPCG(seed, 3))}
	switch t.random.IntN(4) {
	case 0:
		t.builds = [2]jamq.Slot{0, 1}
	case 1: // 12.5 s and more: an anchor from the table expires meanwhile
		t.builds = [2]jamq.Slot{2, 3}
	case 2:
		t.builds = [2]jamq.Slot{0, 6}
	}
	if t.random.IntN(2) == 0 {
		t.chance = 0.01
	}
	if t.random.IntN(3) == 0 {
		t.cores = 0.05
	}
	if seed%3 == 0 {
		t.hangs = rand.New(rand.NewPCG(seed, 5))
	}
	return t
}

// buildTime returns how many slots a build takes. Some builds hang until the
// queue has forgotten their anchor.
func (t *trouble) buildTime() jamq.Slot {
	if t.hangs != nil && t.hangs.IntN(30) == 0 {
		return jamq.Slot(t.hangs.IntN(80))
	}
	return t.builds[0] + jamq.Slot(t.random.IntN(int(t.builds[1]-t.builds[0])+1))
}

// makeTrouble begins and ends outages, and changes cores.
func (b *builder) makeTrouble() error {
	t := b.trouble
	for _, left := range []*int{&t.unreachable, &t.deaf, &t.frozen} {
		*left = max(0, *left-1)
		if *left == 0 && t.random.Float64() < t.chance {
			*left = 1 + t.random.IntN(60)
		}
	}
	faults := b.chain.Faults()
	if t.frozen > 0 && faults.SkipProbability != 0.99 {
		t.skip, faults.SkipProbability = faults.SkipProbability, 0.99
	} else if t.frozen == 0 && faults.SkipProbability == 0.99 {
		faults.SkipProbability = t.skip
	}
	if err := b.chain.SetFaults(faults); err != nil {
		return err
	}
	if t.random.Float64() >= t.cores {
		return nil
	}
	sets := [][]jamq.CoreIndex{{0}, {1}, {0, 1}, {1, 0}}
	return b.step(bundlequeue.Cores{Cores: sets[t.random.IntN(len(sets))]})
}

// causes knows why bundles may fail: it counts the packages of each that a guarantor took or
// refused and that the chain then lost. It is an independent reading of Config.MaxVersionRetries.
type causes struct {
	retries int
	sends   map[uint64]jamq.PackageHash // by ticket
	reached map[jamq.PackageHash]bool
	lost    map[uint64]map[jamq.PackageHash]bool // by number
}

func newCauses(retries int) causes {
	return causes{retries, map[uint64]jamq.PackageHash{}, map[jamq.PackageHash]bool{}, map[uint64]map[jamq.PackageHash]bool{}}
}

func (c *causes) observe(ev bundlequeue.Event, effects []bundlequeue.Effect) error {
	switch ev := ev.(type) {
	case bundlequeue.Enqueue:
		c.lost[ev.Number] = map[jamq.PackageHash]bool{}
	case bundlequeue.Sent:
		if ev.OK || ev.Refused {
			c.reached[c.sends[ev.Ticket]] = true
		}
	}
	for _, e := range effects {
		switch e := e.(type) {
		case bundlequeue.Send:
			c.sends[e.Ticket] = e.Package
		case bundlequeue.Died:
			loss := e.Reason == anchor.AnchorExpired || e.Reason == anchor.Unavailable || e.Reason == anchor.NeverReady
			if loss && c.reached[e.Package] {
				c.lost[e.Number][e.Package] = true
			}
		case bundlequeue.Failed:
			if n := len(c.lost[e.Cause]); e.Number == e.Cause && n <= c.retries {
				return fmt.Errorf("bundle %d failed (%s) after %d lost packages, want more than %d", e.Number, e.Reason, n, c.retries)
			}
		}
	}
	return nil
}
