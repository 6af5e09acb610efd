package eoa

import "context"

// gasCall asks a node for gas limits. It may last longer than a step, so that a
// node that hangs does not delay the requests whose gas is given.
type gasCall struct {
	cancel  context.CancelFunc
	done    chan struct{}        // closed when answers is complete
	answers map[uint64]Estimated // by the id of the record
	asking  map[uint64]bool      // records that wait for its end
}

// ended reports whether the answers are there.
func (g *gasCall) ended() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// dropGasCall ends the call, if any, and forgets its answers.
func (e *Executor) dropGasCall() {
	if e.gas != nil {
		e.gas.cancel()
		e.gas = nil
	}
}
