package eoa

import "time"

// Report describes what one step did. The counts are for this step only.
type Report struct {
	// Account is the account of the step.
	Account Account
	// Sent is the number of transactions given to a node for the first time, as
	// far as the executor knows.
	Sent int
	// Recovered is the number of transactions given to a node again.
	Recovered int
	// Accepted is the number of those sends that a node accepted.
	Accepted int
	// Signed is the number of new signatures, replacements included.
	Signed int
	// Bumped is the number of replacements signed.
	Bumped int
	// Mined is the number of records that were found in a block.
	Mined int
	// Ended is the number of records that became Final, Cancelled or
	// Superseded.
	Ended int
	// Failed is the number of records that became Failed.
	Failed int
	// Dropped is the number of ended records whose history was dropped.
	Dropped int
	// Commits is the number of write round trips to the store.
	Commits int
	// Reads is the number of read round trips to the store.
	Reads int
	// Problems are the reasons for which the account makes no progress, or less
	// than it could, at the end of the step. See also [Fleet.Health].
	Problems []Problem
	// ToSubmitted has, for each request that a node took for the first time,
	// the time since it was queued. It is meant for histograms.
	ToSubmitted []time.Duration
	// ToConfirmed has the same for each request that was confirmed.
	ToConfirmed []time.Duration
}

// Stats is the state of an account at its executor's last step.
type Stats struct {
	// Pending is the number of requests without a nonce that the executor has
	// read. The store may have more.
	Pending int
	// Prepared is the number of records that are signed and not known to be on
	// a node.
	Prepared int
	// Broadcast is the number of records that a node has and that are in no
	// block.
	Broadcast int
	// Mined is the number of records in blocks that are not final.
	Mined int
	// Next is the next new nonce.
	Next uint64
	// Latest is the account's transaction count at the latest block.
	Latest uint64
	// Free is the number of nonces below Next that must be filled.
	Free int
	// Balance is the balance in wei, in decimal; empty if unknown.
	Balance string
	// Stalled is how long the transaction count has not changed although
	// something is in flight; 0 if nothing is in flight.
	Stalled time.Duration
	// Failures is the number of failed looks at the chain since the last
	// successful one.
	Failures int
	// Held means that this executor holds the account's lease.
	Held bool
	// Resets are the last resets of the next nonce; see [Head.Resets].
	Resets []Reset
	// Stop is set if the account is stopped; see [Client.Resume].
	Stop Stop
}

// Stats returns the state of the account at the end of the last step. It never
// waits for a step.
func (e *Executor) Stats() Stats {
	return e.signals.published(e.cfg.Now())
}

// tellStats makes the present state visible in Stats. written means that the store has
// all of it; otherwise a record in the store may be in a block that is gone, so that
// nothing is known about depths.
func (e *Executor) tellStats(written bool) {
	s := Stats{Pending: len(e.inbox.pending), Failures: e.watch.failed, Held: e.lease.Epoch != 0}
	var since time.Time
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
		s.Next, s.Latest, s.Free, s.Resets, s.Stop = v.Head.Next, v.Latest(), len(v.Head.Holes), v.Head.Resets, v.Head.Stop
		if look := v.Look(); look != nil && look.Balance != nil {
			s.Balance = look.Balance.Dec()
		}
		since = v.Head.Since
		if written {
			height = v.Verified()
		}
	}
	e.signals.publish(s, since, height)
}
