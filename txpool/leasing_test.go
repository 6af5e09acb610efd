package txpool

import "context"

// Drain leases the best transactions that fit into a budget by their limits.
func (p *Pool) Drain(budget Budget) *Lease {
	s := p.Build(context.Background(), budget)
	defer func() { _ = s.Cancel() }() // does nothing after Seal, unless State panics
	for s.Next() != nil {
		continue
	}
	lease, _ := s.Seal() // a test with a journal that fails looks at the journal
	return lease
}
