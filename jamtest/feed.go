package jamtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/jamq/jamq"
)

// FeedFaults says how badly a host hears of a chain. The zero value is a perfect feed.
type FeedFaults struct {
	// Duplicate is the chance that an update comes twice, Late that it is held back until the next one has come, Batch that it waits to
	// come together with those after it, Miss that a block is left out of it; each from 0 to 1.
	Duplicate, Late, Batch, Miss float64
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig].
func (f *FeedFaults) Validate() error {
	for _, p := range []struct {
		field string
		have  float64
	}{{"Duplicate", f.Duplicate}, {"Late", f.Late}, {"Batch", f.Batch}, {"Miss", f.Miss}} {
		if !(p.have >= 0 && p.have <= 1) {
			return fmt.Errorf("%w: %s is %v, want 0 to 1", ErrInvalidConfig, p.field, p.have)
		}
	}
	return nil
}

// Feed stands between a chain and a host and delivers updates badly: twice, late, in batches, or with a block missing. A host finds out
// about a missing block when the next one names a parent that it does not know; it fetches it by [Chain.Block]. Parents come before
// children otherwise. Nothing stays away for ever: Flush gives what is held back.
type Feed struct {
	faults FeedFaults
	random *rand.Rand
	held   []Update
}

// NewFeed returns a feed whose faults depend on the seed alone. The error wraps [ErrInvalidConfig].
func NewFeed(faults FeedFaults, seed uint64) (*Feed, error) {
	if err := faults.Validate(); err != nil {
		return nil, err
	}
	return &Feed{faults: faults, random: rand.New(rand.NewPCG(seed, 1))}, nil
}

func (f *Feed) chance(p float64) bool { return p > 0 && f.random.Float64() < p }

// Push takes an update of the chain and returns what the host hears now.
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

// Flush returns what is held back.
func (f *Feed) Flush() []Update {
	out := f.held
	f.held = nil
	return out
}
