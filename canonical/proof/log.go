package proof

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Log is the accumulation-output log: a Merkle mountain range of the
// [OutputRoot] of every block (GP 7.7, E.2). The zero value is empty. It is not
// safe for concurrent use.
type Log struct {
	// peaks[i] is the root of a perfect tree over 2^i leaves, or nil. Older
	// leaves are in higher trees.
	peaks []*common.Hash
}

// NewLog returns a log that continues from the peaks in a state, ordered by
// height. A nil peak means that there is no tree of that height.
func NewLog(peaks []*common.Hash) *Log {
	l := &Log{peaks: make([]*common.Hash, len(peaks))}
	for i, p := range peaks {
		if p != nil {
			peak := *p
			l.peaks[i] = &peak
		}
	}
	return l
}

// Append adds the output root of the next block.
func (l *Log) Append(root common.Hash) {
	for height, peak := range l.peaks {
		if peak == nil {
			l.peaks[height] = &root
			return
		}
		root = crypto.Keccak256Hash(peak[:], root[:])
		l.peaks[height] = nil
	}
	l.peaks = append(l.peaks, &root)
}

// Peaks returns a copy of the peaks, ordered by height. A nil peak means that
// there is no tree of that height.
func (l *Log) Peaks() []*common.Hash { return NewLog(l.peaks).peaks }

// SuperPeak returns the hash over all peaks, which is the BEEFY root of a
// refine context. It is zero for an empty log.
func (l *Log) SuperPeak() common.Hash {
	var present []common.Hash
	for _, p := range l.peaks {
		if p != nil {
			present = append(present, *p)
		}
	}
	return superPeak(present)
}

// superPeak folds the peaks from the lowest to the highest.
func superPeak(present []common.Hash) (out common.Hash) {
	for i, p := range present {
		if i == 0 {
			out = p
		} else {
			out = crypto.Keccak256Hash([]byte("peak"), out[:], p[:])
		}
	}
	return out
}

// LogProof proves that an output root is in the log.
type LogProof struct {
	// Index is the position of the leaf, from 0. Count is the number of leaves
	// in the log.
	Index uint64 `json:"index"`
	Count uint64 `json:"count"`
	// Siblings are the sibling nodes on the path from the leaf to its peak.
	Siblings []common.Hash `json:"siblings"`
	// Peaks are the other peaks, from the lowest to the highest.
	Peaks []common.Hash `json:"peaks"`
}

// ProveLog returns the proof for the leaf at an index. The error wraps ErrInput
// if there is no such leaf.
func ProveLog(leaves []common.Hash, index int) (LogProof, error) {
	if index < 0 || index >= len(leaves) {
		return LogProof{}, fmt.Errorf("%w: leaf %d of %d", ErrInput, index, len(leaves))
	}
	p := LogProof{Index: uint64(index), Count: uint64(len(leaves)), Siblings: []common.Hash{}, Peaks: []common.Hash{}}
	begin := len(leaves)
	for height := range bits.Len(uint(len(leaves))) {
		size := 1 << height
		if len(leaves)&size == 0 {
			continue
		}
		begin -= size // the lowest mountain holds the newest leaves
		level := slices.Clone(leaves[begin : begin+size])
		at := index - begin
		inside := at >= 0 && at < size
		for ; len(level) > 1; at /= 2 {
			if inside {
				p.Siblings = append(p.Siblings, level[at^1])
			}
			level = pairUp(level)
		}
		if !inside {
			p.Peaks = append(p.Peaks, level[0])
		}
	}
	return p, nil
}

// pairUp returns the next higher level of a perfect tree, in the same memory.
func pairUp(level []common.Hash) []common.Hash {
	for i := range len(level) / 2 {
		level[i] = crypto.Keccak256Hash(level[2*i][:], level[2*i+1][:])
	}
	return level[:len(level)/2]
}

// VerifyLog checks that the log with the given super-peak contains an output
// root. The error wraps ErrOutput.
//
// The shape of the log follows from p.Count, and the super-peak does not bind
// that number. The position p.Index is therefore certain only for a caller that
// knows the number of leaves: one for each block since the log began.
// Membership is certain in any case, because the hashed texts of output roots,
// nodes and super-peaks differ in length or prefix.
func VerifyLog(peak, root common.Hash, p LogProof) error {
	if p.Index >= p.Count {
		return fmt.Errorf("%w: leaf %d of %d", ErrOutput, p.Index, p.Count)
	}
	height, below := mountain(p.Index, p.Count)
	if others := bits.OnesCount64(p.Count) - 1; len(p.Siblings) != height || len(p.Peaks) != others {
		return fmt.Errorf("%w: %d siblings and %d peaks for leaf %d of %d, want %d and %d", ErrOutput,
			len(p.Siblings), len(p.Peaks), p.Index, p.Count, height, others)
	}
	// Each tree begins at a multiple of its size, so the index distinguishes
	// left from right.
	for i, sibling := range p.Siblings {
		if p.Index>>i&1 == 0 {
			root = crypto.Keccak256Hash(root[:], sibling[:])
		} else {
			root = crypto.Keccak256Hash(sibling[:], root[:])
		}
	}
	if have := superPeak(slices.Insert(slices.Clone(p.Peaks), below, root)); have != peak {
		return fmt.Errorf("%w: the super-peak is %s, want %s", ErrOutput, have, peak)
	}
	return nil
}

// mountain returns the height of the tree that contains a leaf, and the number
// of lower trees. index is less than count.
func mountain(index, count uint64) (height, below int) {
	begin := count
	for rest := count; ; rest &= rest - 1 {
		height = bits.TrailingZeros64(rest)
		begin -= 1 << height
		if index >= begin {
			return height, below
		}
		below++
	}
}
