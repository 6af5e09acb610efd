package anchor

import "github.com/jamq/jamq"

// Expected is what Best minimizes.
func Expected(spec *jamq.ChainSpec, d Distribution, offset int) float64 {
	return expected(spec, d, offset)
}

// Within returns the probability of a report in the first given number of
// blocks.
func (d Distribution) Within(blocks int) float64 {
	reported, _ := d.within(blocks)
	return reported
}

// Validate returns an error if d is no distribution.
func (d Distribution) Validate() error { return d.validate() }

// Total returns how many packages the histogram holds.
func (d *Delays) Total() int { return d.total() }

// LookupStale reports whether a lookup anchor is too old.
func LookupStale(spec *jamq.ChainSpec, lookupSlot, slot jamq.Slot) bool {
	return lookupStale(spec, lookupSlot, slot)
}
