package jamtest

import (
	"math/rand/v2"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/fields"
)

// FeedFaults are the faults of a [Feed]. The zero value is a feed without faults.
type FeedFaults struct {
	// Duplicate, Late, Batch and Miss are the probabilities of the faults for each update,
	// from 0 to 1:
	//
	//   - Duplicate: the update is delivered twice.
	//   - Late: the update is delivered together with the next one.
	//   - Batch: the update is delivered together with the following ones.
	//   - Miss: the update lacks one block.
	Duplicate, Late, Batch, Miss float64
}

// Validate returns an error that wraps [ErrInvalidConfig] and lists each field
// that is out of range.
func (f *FeedFaults) Validate() error {
	var wrong fields.Errors
	fields.Range(&wrong, "Duplicate", f.Duplicate, 0, 1)
	fields.Range(&wrong, "Late", f.Late, 0, 1)
	fields.Range(&wrong, "Batch", f.Batch, 0, 1)
	fields.Range(&wrong, "Miss", f.Miss, 0, 1)
	return wrong.Wrap(ErrInvalidConfig)
}

// Feed passes updates from a chain to a host, but with faults: twice, late, in batches,
// or without some blocks. A host notices a missing block when a later block has an
// unknown parent, and can fetch the missing one with [Chain.Block]. Apart from missing
// blocks and repeated updates, parents come before children.
type Feed struct {
	faults FeedFaults
	random *rand.Rand
	held   []Update
}

// NewFeed returns a feed whose faults are determined by the seed. The error wraps
// [ErrInvalidConfig].
func NewFeed(faults FeedFaults, seed uint64) (*Feed, error) {
	if err := faults.Validate(); err != nil {
		return nil, err
	}
	return &Feed{faults: faults, random: rand.New(rand.NewPCG(seed, 1))}, nil
}

func (f *Feed) chance(p float64) bool { return p > 0 && f.random.Float64() < p }

// Push takes an update of the chain, and returns the updates that the host receives
// now.
func (f *Feed) Push(u Update) []Update {
	if len(u.Imported) > 0 && f.chance(f.faults.Miss) {
		i := f.random.IntN(len(u.Imported))
		u.Imported = append(append([]jamq.Block(nil), u.Imported[:i]...), u.Imported[i+1:]...)
	}
	f.held = append(f.held, u)
	if f.chance(f.faults.Batch) {
		return nil
	}
	if n := len(f.held); n == 1 && f.chance(f.faults.Late) {
		return nil
	}
	out := f.Flush()
	if f.chance(f.faults.Duplicate) {
		out = append(out, out[f.random.IntN(len(out))])
	}
	return out
}

// Flush returns all updates that the feed still holds back, for example at the end of a
// test.
func (f *Feed) Flush() []Update {
	out := f.held
	f.held = nil
	return out
}
