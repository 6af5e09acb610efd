package node

import (
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/service"
)

// ServiceReport describes the calls that the rollup's service has received on the
// finalized JAM chain. The node reads them from the JAM chain and not from the queue,
// so that the report can reveal mistakes of the queue. The node does not read the calls
// for blocks that were final when it started, but assumes them. If one of them is
// missing in reality, the first call that is read shows this.
type ServiceReport struct {
	// Total is the number of the rollup's packages that JAM has accumulated. First and Last
	// are the numbers of the first and the latest block in these packages. Before the first
	// package, Last is the number of the block that precedes it.
	Total, First, Last uint64
	// Root is the state root after Last.
	Root common.Hash
	// Duplicates lists blocks that were accumulated more than once. Gaps lists blocks that
	// did not follow the previous one and that the service did not keep for later. Both
	// lists should be empty.
	Duplicates, Gaps []uint64
}

// calls records the calls of the rollup's service for ServiceReport. It reads them from
// the JAM chain and not from the queue, so that it can reveal mistakes of the queue. It
// is safe for concurrent use.
type calls struct {
	mu      sync.Mutex
	report  ServiceReport
	storage service.Storage // of a service that gets the same calls
}

// begin sets the block that the service has applied last.
func (s *calls) begin(last *evmrollup.Block, assumed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The node has not seen the assumed earlier calls, but counts them.
	s.report = ServiceReport{Total: assumed, First: min(assumed, 1), Last: last.NumberU64(), Root: last.Root()}
	s.storage = service.Genesis{Block: evmrollup.Header(last.Block, common.Hash{})}.Storage()
}

// taken records that the service has received an accumulated block.
func (s *calls) taken(header []byte) {
	c, err := service.DecodeHeader(header)
	if err != nil {
		return // of no block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The rules of package service tell whether the service applies the block, keeps it
	// for later or ignores it.
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

// Service returns a report about the calls that the rollup's service has received on
// the finalized JAM chain.
func (n *Node) Service() ServiceReport {
	n.service.mu.Lock()
	defer n.service.mu.Unlock()
	r := n.service.report
	r.Duplicates, r.Gaps = slices.Clone(r.Duplicates), slices.Clone(r.Gaps)
	return r
}
