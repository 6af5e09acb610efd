package eoa

import "context"

// gasCall is a call that asks a node for gas limits. It may take longer than a step, so that
// a node which hangs does not delay the requests whose gas is given.
type gasCall struct {
	cancel  context.CancelFunc
	done    chan struct{}        // closed when answers is complete
	answers map[uint64]Estimated // by the id of the record
	asking  map[uint64]bool      // records that wait for its end
}

// ended reports whether the call has ended.
func (g *gasCall) ended() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// dropGasCall ends the call, if there is one, and forgets its answers.
func (e *Executor) dropGasCall() {
	if e.gas != nil {
		e.gas.cancel()
		e.gas = nil
	}
}
