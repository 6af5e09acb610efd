package anchor

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jamq/jamq"
)

// MaxDelay is the longest delay that [Delays] tells apart, in blocks. No package lives longer than H blocks after its anchor.
const MaxDelay = 64

// ErrInvalidDelays is wrapped by UnmarshalBinary.
var ErrInvalidDelays = errors.New("anchor: invalid delays")

// Delays is what was observed between sending a package and the block that reports it. The zero value has seen nothing, and then
// expects a report in one block or two. It remembers about the last 256 packages, older ones with half the weight each time.
// It is a plain value: a copy is independent.
type Delays struct {
	// reported[k] counts packages reported in the k-th block after they were sent; lost[k] those that had k blocks to be reported
	// and were not. Of these it is known only that their delay is more than k.
	reported, lost [MaxDelay + 1]uint32
	total          uint32
}

// forgetAt is how many observations are kept before all counts are halved.
const forgetAt = 256

// Observe notes a package that was reported in the given block after it was sent, from 1. Other values are clamped.
func (d *Delays) Observe(blocks int) { d.add(&d.reported, blocks) }

// Lost notes a package that was not reported although it could have been in so many blocks, from 1. Other values are clamped.
func (d *Delays) Lost(window int) { d.add(&d.lost, window) }

func (d *Delays) add(counts *[MaxDelay + 1]uint32, k int) {
	counts[min(max(k, 1), MaxDelay)]++
	d.total++
	if d.total < forgetAt {
		return
	}
	d.total = 0
	for k := range d.reported {
		d.reported[k] /= 2
		d.lost[k] /= 2
		d.total += d.reported[k] + d.lost[k]
	}
}

// Distribution returns the chance p[k] that a package is reported in the k-th block after it is sent, for k from 1 to max.
// What is missing to 1 is the chance that it is reported later or never.
//
// A lost package says only that its delay was longer than its window, so the estimate goes by the share of those still
// waiting at k that are reported in k (the product-limit estimate). Two packages, reported after one block and after two, are
// assumed besides what was seen.
func (d *Delays) Distribution(max int) []float64 {
	reported := d.reported
	reported[1]++
	reported[2]++
	waiting := uint32(0)
	for k := range reported {
		waiting += reported[k] + d.lost[k]
	}
	p := make([]float64, max+1)
	survive := 1.0
	for k := 1; k <= max && k <= MaxDelay && waiting > 0; k++ {
		p[k] = survive * float64(reported[k]) / float64(waiting)
		survive -= p[k]
		waiting -= reported[k] + d.lost[k]
	}
	return p
}

// Best returns the offset for the next package by what was observed: see [Best].
func (d *Delays) Best(spec *jamq.ChainSpec) int {
	offset, _ := Best(spec, d.Distribution(spec.RecentHistory))
	return offset
}

// Best returns the offset, in blocks behind the newest, that minimizes the expected time until a package of a bundle is reported, and
// that time in blocks. p[k] is the chance that a package is reported in the k-th block after it is sent, if it may be; p[0] is not
// read. Accumulation follows after a time that no anchor changes. The offset is from 1 to H-2; among equals it is the greatest.
//
// A package sent with offset o may be reported in the next w = H-o blocks (GP 11.33). Let D be the delay, F(w) = P(D ≤ w). If it is
// not reported, the w-th block is the evidence of its death, and a new version may be anchored there or later (the safety theorem
// of jamq's ARCHITECTURE.md). Sent j blocks later, it has offset j: the evidence block needs a child, so j ≥ 1. Let R be
// the expected time from an evidence block to the report of a later version, if these always wait j:
//
//	R(j) = j + E[min(D, H-j)] + (1 - F(H-j)) R(j)  ⇒  R(j) = (j + E[min(D, H-j)]) / F(H-j)
//
// Waiting never helps: one more block adds 1 to j and takes at most 1 from E[min(D, H-j)], and F only falls. So R = R(1), and the
// first version takes
//
//	T(o) = E[min(D, H-o)] + (1 - F(H-o)) R
//
// which Best evaluates for each o. An older anchor gives up sooner what is lost, a fresher one waits for what is late.
func Best(spec *jamq.ChainSpec, p []float64) (offset int, blocks float64) {
	h := spec.RecentHistory
	within := make([]float64, h+1) // F(w)
	spent := make([]float64, h+1)  // E[min(D, w)] = sum of P(D ≥ k) for k up to w
	for k := 1; k <= h; k++ {
		chance := 0.0
		if k < len(p) {
			chance = max(p[k], 0)
		}
		within[k] = min(within[k-1]+chance, 1)
		spent[k] = spent[k-1] + 1 - within[k-1]
	}
	offset = Offset(spec, 0, 1)
	if within[h-1] <= 0 {
		return offset, 0 // nothing is ever reported: nothing to choose by
	}
	again := (1 + spent[h-1]) / within[h-1]
	blocks = -1
	for o := h - 2; o >= 1; o-- {
		const rounding = 1e-9
		if t := spent[h-o] + (1-within[h-o])*again; blocks < 0 || t < blocks-rounding {
			offset, blocks = o, t
		}
	}
	return offset, blocks
}

var (
	_ encoding.BinaryAppender    = (*Delays)(nil)
	_ encoding.BinaryUnmarshaler = (*Delays)(nil)
)

// AppendBinary appends the counts. The error is always nil.
func (d *Delays) AppendBinary(b []byte) ([]byte, error) {
	for k := 1; k <= MaxDelay; k++ {
		b = binary.AppendUvarint(b, uint64(d.reported[k]))
		b = binary.AppendUvarint(b, uint64(d.lost[k]))
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary wrote. The error wraps [ErrInvalidDelays] and leaves d as it was.
func (d *Delays) UnmarshalBinary(b []byte) error {
	var read Delays
	for i := range 2 * MaxDelay {
		v, n := binary.Uvarint(b)
		if n <= 0 || v >= forgetAt {
			return fmt.Errorf("%w: count %d of %d", ErrInvalidDelays, i, 2*MaxDelay)
		}
		b = b[n:]
		if k := 1 + i/2; i%2 == 0 {
			read.reported[k] = uint32(v)
		} else {
			read.lost[k] = uint32(v)
		}
		read.total += uint32(v)
	}
	if len(b) > 0 || read.total >= forgetAt {
		return fmt.Errorf("%w: %d observations, want less than %d; %d bytes too many", ErrInvalidDelays, read.total, forgetAt, len(b))
	}
	*d = read
	return nil
}
