package eoa

import "context"

// gasCall is a running call that asks a node for gas estimates. It may outlast a
// step, so that a node that hangs does not delay the requests whose gas is given.
type gasCall struct {
	cancel  context.CancelFunc
	done    chan struct{}        // closed when answers is complete
	answers map[uint64]Estimated // by record id
	asking  map[uint64]bool      // ids of the records that wait for the call
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

// dropGasCall cancels the running call, if there is one, and drops its answers.
func (e *Executor) dropGasCall() {
	if e.gas != nil {
		e.gas.cancel()
		e.gas = nil
	}
}
