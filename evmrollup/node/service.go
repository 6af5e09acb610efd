package node

import (
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/service"
)

// ServiceReport lists the calls that the rollup's service received on the
// finalized JAM chain. Those of the blocks that were final when the node started are
// assumed: if one of them was not received once, the first call that is read shows it.
type ServiceReport struct {
	// Total is the number of accumulated packages of the rollup. First and Last
	// are the block numbers of the first and the latest one; Last is that of the block
	// before if there is none yet.
	Total, First, Last uint64
	// Root is the state root after Last.
	Root common.Hash
	// Duplicates are the numbers of blocks that were accumulated again, and
	// Gaps those that did not continue the previous block and were not kept for
	// later. Both should be empty.
	Duplicates, Gaps []uint64
}

// calls follows the rollup's service. It reads the chain and uses no answer of the
// queue. It is safe for concurrent use.
type calls struct {
	mu      sync.Mutex
	report  ServiceReport
	storage service.Storage // of a service that gets the same calls
}

// begin sets the block after which the calls follow, and the number of calls up to it that
// are assumed.
func (s *calls) begin(last *evmrollup.Block, assumed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = ServiceReport{Total: assumed, First: min(assumed, 1), Last: last.NumberU64(), Root: last.Root()}
	s.storage = service.Genesis{Block: evmrollup.Header(last.Block, common.Hash{})}.Storage()
}

// taken records the header of an accumulated block; more may follow it. The rules of the
// service decide whether the block is applied, waits for its turn, or has no effect.
func (s *calls) taken(header []byte) {
	c, err := service.DecodeHeader(header)
	if err != nil {
		return // of no block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	output, err := service.Refine(header, jamq.PackageHash{})
	if err != nil {
		return
	}
	changes, _, err := service.Accumulate(s.storage.Get, 0, []service.Operand{{Output: output}})
	if err != nil {
		return // nothing has begun
	}
	s.storage.Write(changes)
	last, _ := service.Last(s.storage.Get) // it is installed
	r := &s.report
	r.Total++
	switch {
	case len(changes) == 0 && c.Number <= r.Last:
		r.Duplicates = append(r.Duplicates, c.Number)
	case len(changes) == 0:
		r.Gaps = append(r.Gaps, c.Number)
	case r.First == 0 && last.Number > r.Last:
		r.First = r.Last + 1
	}
	r.Last, r.Root = last.Number, last.PostRoot
}

// Service returns the accumulations of the finalized JAM chain.
func (n *Node) Service() ServiceReport {
	n.service.mu.Lock()
	defer n.service.mu.Unlock()
	r := n.service.report
	r.Duplicates, r.Gaps = slices.Clone(r.Duplicates), slices.Clone(r.Gaps)
	return r
}
