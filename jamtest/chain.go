package jamtest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// Chain is a simulated JAM chain. It is not safe for concurrent use; see [Driver].
type Chain struct {
	cfg    Config
	random *rand.Rand

	slot      jamq.Slot
	best      *block
	side      *block // the head of a second branch, or nil
	forkPoint *block // where side left the best chain
	finalized *block
	pruned    uint64 // the height below which blocks were forgotten
	blocks    map[jamq.HeaderHash]*block
	packages  map[jamq.PackageHash]*Package
	offers    []offer
	seen      map[delivery]bool
}

// delivery is a package at a guarantor; the same one again does nothing.
type delivery struct {
	pkg       jamq.PackageHash
	core      jamq.CoreIndex
	guarantor int
}

// Update is what one slot brought.
type Update struct {
	// Slot is the slot.
	Slot jamq.Slot
	// Imported are the new blocks, parents first; none where the slot was skipped.
	Imported []jamq.Block
	// Best and Finalized are the heads afterwards. Finality never moves back, and never leaves the best chain.
	Best, Finalized jamq.HeaderHash
	// Final are the packages whose accumulation became final, in the order of accumulation.
	Final []Package
}

// New returns a chain that consists of a genesis block, which is final.
// The error wraps [ErrInvalidConfig].
func New(cfg Config) (*Chain, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	genesis := &block{
		Block: jamq.Block{Hash: digest("genesis", binary.LittleEndian.AppendUint64(nil, cfg.Seed)), Slot: cfg.StartSlot},
		cores: make([]*report, cfg.Spec.Cores),
	}
	return &Chain{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), slot: cfg.StartSlot,
		best: genesis, finalized: genesis,
		blocks:   map[jamq.HeaderHash]*block{genesis.Hash: genesis},
		packages: make(map[jamq.PackageHash]*Package),
		seen:     make(map[delivery]bool),
	}, nil
}

// digest is how the simulated chain makes hashes.
func digest(kind string, data ...[]byte) [32]byte {
	return blake2b.Sum256(slices.Concat(append([][]byte{[]byte("jamtest " + kind)}, data...)...))
}

// stateRoot and beefyRoot stand for the posterior roots of a block.
func stateRoot(h jamq.HeaderHash) common.Hash { return digest("state", h[:]) }
func beefyRoot(h jamq.HeaderHash) common.Hash { return digest("beefy", h[:]) }

// Submit gives a package to a guarantor of a core; guarantor is any number that tells one from another. That it returns nil
// says that it was sent, not that it arrived. The same package at the same guarantor again does nothing.
// The error wraps [ErrRefused].
func (c *Chain) Submit(p Package, core jamq.CoreIndex, guarantor int) error {
	spec := &c.cfg.Spec
	switch {
	case int(core) >= spec.Cores:
		return fmt.Errorf("%w: core %d, want below %d", ErrRefused, core, spec.Cores)
	case len(p.Context.Prerequisites) > spec.MaxDependencies:
		return fmt.Errorf("%w: %d prerequisites, want at most %d", ErrRefused, len(p.Context.Prerequisites), spec.MaxDependencies)
	case len(p.Payload) > spec.MaxBundleSize:
		return fmt.Errorf("%w: %d bytes, want at most %d", ErrRefused, len(p.Payload), spec.MaxBundleSize)
	}
	to := delivery{p.Hash, core, guarantor}
	if c.seen[to] {
		return nil
	}
	c.seen[to] = true
	lost := c.random.Float64() < c.cfg.LossProbability
	from := c.slot.Add(c.between(c.cfg.ReportLatency))
	if lost {
		return nil
	}
	kept := c.packages[p.Hash]
	if kept == nil {
		kept = &Package{Hash: p.Hash, Context: p.Context, Payload: slices.Clone(p.Payload)}
		kept.Context.Prerequisites = slices.Clone(p.Context.Prerequisites)
		c.packages[p.Hash] = kept
	}
	c.offers = append(c.offers, offer{pkg: kept, core: core, from: from})
	return nil
}

func (c *Chain) between(span [2]jamq.Slot) jamq.Slot {
	return span[0] + jamq.Slot(c.random.Uint64N(uint64(span[1]-span[0])+1))
}

// Advance moves to the next slot.
func (c *Chain) Advance() Update { return c.AdvanceTo(c.slot.Add(1)) }

// AdvanceTo moves to a slot; those between are skipped. A slot that is not later than the current one changes nothing.
func (c *Chain) AdvanceTo(slot jamq.Slot) Update {
	u := Update{Slot: slot, Best: c.best.Hash, Finalized: c.finalized.Hash}
	if slot <= c.slot {
		u.Slot = c.slot
		return u
	}
	c.slot = slot
	if c.random.Float64() < c.cfg.SkipProbability {
		return u
	}
	u.Imported = append(u.Imported, c.author(c.chooseParent()).Block)
	u.Final = c.finalize()
	u.Best, u.Finalized = c.best.Hash, c.finalized.Hash
	return u
}

// chooseParent picks the head that the slot's author builds on: the best one, or that of a second branch.
func (c *Chain) chooseParent() *block {
	if c.cfg.MaxForkDepth == 0 {
		return c.best
	}
	if c.side == nil && c.random.Float64() < c.cfg.ForkProbability {
		from := c.best
		for depth := 1 + c.random.IntN(c.cfg.MaxForkDepth); depth > 0 && from != c.finalized; depth-- {
			from = from.parent
		}
		if from != c.best {
			c.side, c.forkPoint = from, from
		}
	}
	if c.side != nil && c.random.IntN(2) == 0 {
		return c.side
	}
	return c.best
}

// author makes a block on a parent and moves the heads.
func (c *Chain) author(parent *block) *block {
	b := &block{
		Block:  jamq.Block{Hash: digest("block", parent.Hash[:], binary.LittleEndian.AppendUint32(nil, uint32(c.slot))), Parent: parent.Hash, Slot: c.slot, AccumulatedKnown: true},
		height: parent.height + 1,
		parent: parent,
	}
	available := c.freeCores(b)
	for _, o := range c.offers {
		if o.from > b.Slot || c.refusal(b, o.pkg, o.core) != "" {
			continue
		}
		availableAt := b.Slot.Add(c.between(c.cfg.AvailabilityLatency))
		if c.random.Float64() < c.cfg.UnavailableProbability {
			availableAt = jamq.MaxSlot
		}
		b.cores[o.core] = &report{pkg: o.pkg, reportedAt: b.Slot, availableAt: availableAt}
		b.Reported = append(b.Reported, jamq.Report{
			Package: o.pkg.Hash, Core: o.core, Anchor: o.pkg.Context.Anchor, Prerequisites: slices.Clone(o.pkg.Context.Prerequisites),
		})
	}
	c.accumulate(b, available)
	c.blocks[b.Hash] = b
	if parent == c.best {
		c.best = b
	} else {
		c.side = b
	}
	c.settleForks()
	return b
}

// settleForks makes the longer branch the best, and gives up a branch that fell too far behind.
func (c *Chain) settleForks() {
	if c.side == nil {
		return
	}
	if c.side.height > c.best.height {
		c.best, c.side = c.side, c.best
	}
	if c.side.height+uint64(c.cfg.MaxForkDepth) < c.best.height {
		c.side, c.forkPoint = nil, nil
	}
}

// finalize moves finality along the best chain, never past a fork that is undecided, and forgets what no rule can reach.
func (c *Chain) finalize() []Package {
	target := c.best
	for lag := c.cfg.FinalityLag; lag > 0 && target != c.finalized; lag-- {
		target = target.parent
	}
	for c.forkPoint != nil && target.height > c.forkPoint.height {
		target = target.parent
	}
	var path []*block
	for b := target; b.height > c.finalized.height; b = b.parent {
		path = append(path, b)
	}
	var final []Package
	for _, b := range slices.Backward(path) {
		for _, h := range b.Accumulated {
			final = append(final, *c.packages[h])
		}
	}
	if len(path) > 0 {
		c.finalized = target
		c.prune()
	}
	return final
}

// prune forgets blocks older than every rule looks back, and packages that can never be reported again.
func (c *Chain) prune() {
	spec := &c.cfg.Spec
	// A package is reported at most H blocks after its anchor, available at most U later in the usual case, and waits an epoch;
	// its hash is remembered for another one.
	keep := uint64(spec.RecentHistory) + uint64(spec.AvailabilityTimeout) + 2*uint64(spec.EpochLength)
	if c.finalized.height < c.pruned+2*keep {
		return // now and then is enough
	}
	floor := c.finalized.height - keep
	c.pruned = floor
	for h, b := range c.blocks {
		if b.height < floor {
			delete(c.blocks, h)
		} else if b.height == floor {
			b.parent = nil
		}
	}
	anchored := func(p *Package) bool { return c.blocks[p.Context.Anchor] != nil }
	c.offers = slices.DeleteFunc(c.offers, func(o offer) bool { return !anchored(o.pkg) })
	inUse := make(map[jamq.PackageHash]bool)
	for _, b := range c.blocks {
		for _, r := range b.Reported {
			inUse[r.Package] = true
		}
		for _, w := range b.ready {
			inUse[w.pkg.Hash] = true
		}
	}
	for h, p := range c.packages {
		if !anchored(p) && !inUse[h] {
			delete(c.packages, h)
		}
	}
	for d := range c.seen {
		if c.packages[d.pkg] == nil {
			delete(c.seen, d)
		}
	}
}
