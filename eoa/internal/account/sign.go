package account

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Signed is a job with its signed transaction.
type Signed struct {
	// Job is the job.
	Job Job
	// Tx is the transaction hash.
	Tx common.Hash
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// prepared returns the step that makes signatures durable. It must be committed
// before any of the bytes are sent.
func (v *View) prepared(now time.Time, signed []Signed) Batch {
	b := v.Batch()
	for _, s := range signed {
		r := s.Job.Record.clone()
		if void := len(r.Attempts) - r.live(); r.State == Pending && void >= maxVoid {
			// The void attempts come first.
			r.Attempts = slices.Delete(r.Attempts, 0, void-maxVoid+1)
		}
		r.Attempts = append(r.Attempts, Attempt{Hash: s.Tx, Raw: s.Raw, Proofs: s.Proofs, Nonce: s.Job.Nonce, Gas: s.Job.Gas, Fees: s.Job.Fees,
			Cost: s.Job.cost(), Noop: s.Job.Noop})
		r.Nonce, r.Urgent, r.Reason, r.NotBefore = s.Job.Nonce, false, "", time.Time{}
		if r.State == Pending {
			r.State = Prepared
			b.Head.Next = max(b.Head.Next, r.Nonce+1+s.Job.usesMore(v.Account))
			if r.Unused = 0; v.seen != nil && v.seen.Final <= r.Nonce {
				r.Unused = v.seen.Finalized
			}
			b.Head.Holes = slices.DeleteFunc(b.Head.Holes, func(n uint64) bool { return n == r.Nonce })
			if r.own() {
				b.addEvent(now, EventNoop, &r)
			}
		} else {
			r.Bumps++
			r.BumpedAt = now
			b.addEvent(now, EventBumped, &r)
		}
		b.Records = append(b.Records, r)
	}
	return b
}
