package proof

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Log is the accumulation-output log of the JAM chain: a Merkle mountain range over
// the [OutputRoot] of every block (GP 7.7, E.2). Validators sign its super-peak; see
// [Beefy]. The zero value is an empty log. A Log is not safe for concurrent use.
type Log struct {
	// The log is a list of perfect trees. peaks[i] is the root of the tree with 2^i leaves, or
	// nil if the log has no tree of that size. Older leaves are in larger trees.
	peaks []*common.Hash
}

// NewLog returns a log that continues from the peaks in a JAM state, which are
// ordered by height. A nil peak means that the log has no tree of that height.
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

// Append adds the output root of the next block to the log.
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

// Peaks returns a copy of the peaks, ordered by height. A nil peak means that the
// log has no tree of that height.
func (l *Log) Peaks() []*common.Hash { return NewLog(l.peaks).peaks }

// SuperPeak returns the hash over all peaks. A refine context calls this hash the
// BEEFY root. It is zero if the log is empty.
func (l *Log) SuperPeak() common.Hash {
	var present []common.Hash
	for _, p := range l.peaks {
		if p != nil {
			present = append(present, *p)
		}
	}
	return superPeak(present)
}

// superPeak hashes the peaks together, from the lowest to the highest.
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

// LogProof proves that the log with a given super-peak contains an output root.
type LogProof struct {
	// Index is the position of the output root in the log, from 0. Count is the number of
	// output roots in the log.
	Index uint64 `json:"index"`
	Count uint64 `json:"count"`
	// Siblings are the sibling nodes on the path from the output root to the peak of its tree,
	// from the leaf up.
	Siblings []common.Hash `json:"siblings"`
	// Peaks are the peaks of all other trees, from the lowest to the highest.
	Peaks []common.Hash `json:"peaks"`
}

// ProveLog returns a proof for the output root at the given index of the log.
// leaves are all output roots of the log, so the cost grows with the length of the
// log. The error wraps ErrInput if the log has no such index.
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

// pairUp computes one level of a perfect tree from the level below, by hashing the nodes
// in pairs. It reuses the memory of the given level.
func pairUp(level []common.Hash) []common.Hash {
	for i := range len(level) / 2 {
		level[i] = crypto.Keccak256Hash(level[2*i][:], level[2*i+1][:])
	}
	return level[:len(level)/2]
}

// VerifyLog checks that the log with the given super-peak contains the output root.
// The error wraps ErrOutput if the proof does not show it.
//
// VerifyLog proves that the output root is in the log, but not always where. The shape
// of the log follows from p.Count, which the super-peak does not bind: a proof with a
// wrong Count and Index can lead to the same super-peak. So p.Index is reliable only if
// the caller knows the number of leaves, which is the number of blocks since the log
// began. Membership is reliable in any case, because the hashed texts of output roots,
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
	// Each tree begins at a multiple of its size, so bit i of the index tells whether the node
	// at height i is a left or a right child.
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

// mountain finds the tree of the log that contains the leaf at index. It returns the
// height of that tree and the number of lower trees. index must be less than count.
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
