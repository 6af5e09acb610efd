package eoa

import "time"

// Report is passed to Config.Observe after each step, for metrics. The counts are
// for that step only.
type Report struct {
	// Account is the account that the step worked on.
	Account Account
	// Sent is how many transactions were given to a node for the first time, as far
	// as the executor knows.
	Sent int
	// Recovered is how many transactions were given to a node again.
	Recovered int
	// Accepted is how many of the sent transactions, first and repeated, a node
	// accepted.
	Accepted int
	// Signed is how many transactions were signed, replacements included.
	Signed int
	// Bumped is how many of the signed transactions were replacements.
	Bumped int
	// Mined is how many requests were found to be in a block.
	Mined int
	// Ended is how many requests became Final, Cancelled or Superseded.
	Ended int
	// Failed is how many requests became Failed.
	Failed int
	// Dropped is how many records of ended requests were deleted; see [Retention].
	Dropped int
	// Commits is how many writing calls were made to the store.
	Commits int
	// Reads is how many calls were made to the store that only read.
	Reads int
	// Problems are the reasons why the account makes no progress, or less progress
	// than it could, at the end of the step. [Fleet.Health] returns the problems of
	// all accounts.
	Problems []Problem
	// ToSubmitted contains one duration for each request that a node accepted for
	// the first time in this step: the time since the store accepted the request.
	// Use it for a histogram.
	ToSubmitted []time.Duration
	// ToConfirmed contains the time since the store accepted the request, for each
	// request that was confirmed in this step.
	ToConfirmed []time.Duration
}

// Stats is the state of an account after the last step of its executor.
type Stats struct {
	// Pending is the number of requests that wait for a nonce, as far as the executor has read
	// them from the store. The store may have more.
	Pending int
	// Prepared is how many requests are signed but not known to be on a node.
	Prepared int
	// Broadcast is how many requests are on a node but in no block.
	Broadcast int
	// Mined is how many requests are in blocks that are not final yet.
	Mined int
	// Next is the nonce that the next request gets.
	Next uint64
	// Latest is the number of the account's transactions on the chain.
	Latest uint64
	// Free is the number of gaps: nonces below Next that no known transaction has.
	// The executor fills them with no-op transactions.
	Free int
	// Balance is the balance in wei, in decimal; empty if unknown.
	Balance string
	// Stalled is how long the account has had transactions in flight without one
	// of them being mined; 0 if none is in flight.
	Stalled time.Duration
	// Held means that this executor holds the account's lease.
	Held bool
	// Resets are the last five resets of the next nonce, oldest first.
	Resets []Reset
	// Stopped is why the account is stopped, and wraps ErrStopped; nil if the
	// account is not stopped. See [Client.Resume].
	Stopped error
}

// Stats returns the state of the account after the last step. It never waits for a step that
// is running.
func (e *Executor) Stats() Stats { return e.signals.published() }

// publishStats makes the state after a step visible in Stats.
func (e *Executor) publishStats(written bool) {
	s := Stats{Pending: len(e.inbox.pending), Held: e.lease.Epoch != 0}
	height := uint64(0)
	if v := e.view; v != nil {
		for i := range v.Open {
			switch v.Open[i].State {
			case Prepared:
				s.Prepared++
			case Broadcast:
				s.Broadcast++
			default:
				s.Mined++
			}
		}
		s.Next, s.Latest, s.Free, s.Resets, s.Stopped = v.Head.Next, v.Latest(), len(v.Head.Gaps), v.Head.Resets, v.Head.Stop.Err()
		if look := v.LastLook; look != nil && look.Balance != nil {
			s.Balance = look.Balance.Dec()
		}
		if s.Prepared+s.Broadcast > 0 {
			s.Stalled = max(0, e.cfg.Now().Sub(v.Head.Since))
		}
		// If the step was not stored, the store may still say that a request is mined in a
		// block that a reorg has removed. Then publish height 0, which means unknown.
		if written {
			height = v.VerifiedAt
		}
	}
	e.signals.publish(s, height)
}

// count adds the changes of a batch to the report.
func (e *Executor) count(b Batch) {
	queued := make(map[uint64]time.Time, len(b.Records))
	for i := range b.Records {
		queued[b.Records[i].ID] = b.Records[i].QueuedAt
	}
	for i := range b.Events {
		took := b.Events[i].At.Sub(queued[b.Events[i].ID])
		switch b.Events[i].Kind {
		case EventSubmitted:
			e.report.ToSubmitted = append(e.report.ToSubmitted, took)
		case EventConfirmed:
			e.report.ToConfirmed = append(e.report.ToConfirmed, took)
		case EventBumped:
			e.report.Bumped++
		case EventMined:
			e.report.Mined++
		case EventFinal, EventCancelled, EventSuperseded:
			e.report.Ended++
		case EventFailed:
			e.report.Failed++
		}
	}
}
