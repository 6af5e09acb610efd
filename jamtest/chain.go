package jamtest

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/jamq/jamq"
)

// Chain is a simulated JAM chain, which begins with a genesis block without packages.
// It is not safe for concurrent use, unlike [Driver].
type Chain struct {
	cfg    Config
	random *rand.Rand

	slot      jamq.Slot
	best      *block
	side      *block // the head of a second branch, or nil
	forkPoint *block // where side left the best chain, or nil
	finalized *block
	oldest    uint64 // the height below which blocks were forgotten
	blocks    map[jamq.HeaderHash]*block

	packages map[jamq.PackageHash]*Package
	offers   []offer
	seen     map[delivery]bool
	// reportedIn and accumulatedIn contain, for each package, the blocks of any branch that
	// have reported or accumulated the package.
	reportedIn, accumulatedIn map[jamq.PackageHash][]*block

	script     running
	skipLeft   int       // slots of a burst that are still to be skipped
	stallUntil jamq.Slot // no block becomes final before this slot
	// finalityStopped and congested are the fields of [Faults] with these names.
	finalityStopped, congested bool
	killed                     map[jamq.PackageHash]bool

	foreign foreign
	keys    map[uint64]*validators // by the number of the validator set
}

// Update is the result of one slot.
type Update struct {
	// Slot is the chain's slot after the update.
	Slot jamq.Slot
	// Imported contains the new blocks, parents before children. A skipped slot has no
	// block, and a slot with an open fork can have two.
	Imported []jamq.Block
	// Best and Finalized are the best and the finalized block after the slot. Best may be
	// on a different branch than before. The finalized block is on the best chain and never
	// moves back.
	Best, Finalized jamq.HeaderHash
	// Final contains the packages whose accumulation became final in this slot, in the
	// order of accumulation. It leaves out packages of other rollups (Config.ForeignLoad).
	Final []Accumulation
}

// New returns a chain with only the genesis block, which is final. The error wraps
// [ErrInvalidConfig].
func New(cfg Config) (*Chain, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	genesis := &block{
		Block: jamq.Block{Hash: digest("genesis", binary.LittleEndian.AppendUint64(nil, cfg.Seed)), Slot: cfg.StartSlot},
		cores: make([]*report, cfg.Spec.Cores),
	}
	c := &Chain{
		script: newRunning(cfg.Script),
		cfg:    cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), slot: cfg.StartSlot,
		best: genesis, finalized: genesis,
		blocks:        map[jamq.HeaderHash]*block{genesis.Hash: genesis},
		keys:          make(map[uint64]*validators),
		packages:      make(map[jamq.PackageHash]*Package),
		seen:          make(map[delivery]bool),
		killed:        make(map[jamq.PackageHash]bool),
		reportedIn:    make(map[jamq.PackageHash][]*block),
		accumulatedIn: make(map[jamq.PackageHash][]*block),
	}
	genesis.active = c.activeCores(0)
	c.settle(genesis)
	return c, nil
}

// Advance moves to the next slot. In the last slot, jamq.MaxSlot, it does
// nothing.
func (c *Chain) Advance() Update { return c.AdvanceTo(c.slot.Add(1)) }

// AdvanceTo advances the chain to a slot. All slots before it are skipped, so at most
// that slot has a block. AdvanceTo does nothing if the slot is not later than the
// current one.
func (c *Chain) AdvanceTo(slot jamq.Slot) Update {
	u := Update{Slot: c.slot, Best: c.best.Hash, Finalized: c.finalized.Hash}
	if slot <= c.slot {
		return u
	}
	c.slot, u.Slot = slot, slot
	c.play()
	if c.skips() {
		return u
	}
	for _, parent := range c.parents() {
		b := c.author(parent)
		c.extend(b)
		u.Imported = append(u.Imported, b.copyBlock())
	}
	c.settleForks()
	u.Final = c.finalize()
	u.Best, u.Finalized = c.best.Hash, c.finalized.Hash
	return u
}

// author makes a block in the current slot on a parent. It follows the order of the
// Gray Paper's state transition: disputes, availability, guarantees, accumulation (4.5
// to 4.20).
func (c *Chain) author(parent *block) *block {
	b := c.childOf(parent, c.slot)
	c.dispute(b)
	available := c.freeCores(b)
	c.report(b)
	c.fillCores(b)
	c.accumulate(b, available)
	b.seal()
	c.settle(b)
	c.blocks[b.Hash] = b
	for _, r := range b.Reported {
		c.reportedIn[r.Package] = append(c.reportedIn[r.Package], b)
	}
	for _, h := range b.Accumulated {
		c.accumulatedIn[h] = append(c.accumulatedIn[h], b)
	}
	return b
}

// chance returns true with probability p. If p is 0 or less, it draws no random number,
// so that a fault that is off does not influence other decisions.
func (c *Chain) chance(p float64) bool { return p > 0 && c.random.Float64() < p }

// between returns a random number of slots from an inclusive range.
func (c *Chain) between(span [2]jamq.Slot) jamq.Slot {
	if span[0] == span[1] {
		return span[0]
	}
	return span[0] + jamq.Slot(c.random.Uint64N(uint64(span[1]-span[0])+1))
}
