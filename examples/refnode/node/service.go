package node

import (
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/examples/refnode/evmrollup"
)

// ServiceReport lists the calls that the rollup's service received on the
// finalized JAM chain. Those of the blocks that were final when the node started are
// assumed: if one of them was not received once, the first call that is read shows it.
type ServiceReport struct {
	// Total is the number of accumulated packages of the rollup. First and Last
	// are the block numbers of the first and the latest one.
	Total, First, Last uint64
	// Root is the state root after the last block.
	Root common.Hash
	// Duplicates are the numbers of blocks that were accumulated again, and
	// Gaps those that did not continue the previous block. Both should be
	// empty.
	Duplicates, Gaps []uint64
}

// service follows the rollup's service. It reads the chain and uses no answer of the
// queue. It is safe for concurrent use.
type service struct {
	mu     sync.Mutex
	report ServiceReport
}

// begin assumes one call for each block up to a final one.
func (s *service) begin(last *evmrollup.Block) {
	if n := last.NumberU64(); n > 0 {
		s.report = ServiceReport{Total: n, First: 1, Last: n, Root: last.Root()}
	}
}

// taken records the payload of an accumulated package.
func (s *service) taken(payload []byte) {
	t, err := evmrollup.DecodeTransition(payload)
	if err != nil {
		return // of another service
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.report
	r.Total++
	switch {
	case r.First == 0:
		r.First = t.Number
	case t.Number <= r.Last:
		r.Duplicates = append(r.Duplicates, t.Number)
		return
	case t.Number != r.Last+1 || t.PreRoot != r.Root:
		r.Gaps = append(r.Gaps, t.Number)
	}
	r.Last, r.Root = t.Number, t.PostRoot
}

// Service returns the accumulations of the finalized JAM chain.
func (n *Node) Service() ServiceReport {
	n.service.mu.Lock()
	defer n.service.mu.Unlock()
	r := n.service.report
	r.Duplicates, r.Gaps = slices.Clone(r.Duplicates), slices.Clone(r.Gaps)
	return r
}
