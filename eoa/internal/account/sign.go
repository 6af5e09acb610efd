package account

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Signed is a job together with its signed transaction.
type Signed struct {
	// Job is the job that was signed.
	Job Job
	// Tx is the transaction hash.
	Tx common.Hash
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// Prepare adds the signed transactions to their records, and delays the requests
// that could not be signed. The caller must store the batch before it sends
// anything: after a crash, the next worker must know every transaction that a node
// may have.
func (v *View) Prepare(c *Rules, now time.Time, signed []Signed, failed []Refusal) Batch {
	b := v.postpone(c, now, failed)
	for _, s := range signed {
		r := s.Job.Record.clone()
		if void := len(r.Attempts); r.State == Pending && void >= maxVoid { // all are void
			r.Attempts = slices.Delete(r.Attempts, 0, void-maxVoid+1)
		}
		r.Attempts = append(r.Attempts, Attempt{Hash: s.Tx, Raw: s.Raw, Proofs: s.Proofs, Nonce: s.Job.Nonce, Gas: s.Job.Gas, Fees: s.Job.Fees,
			Cost: s.Job.cost(), Noop: s.Job.Noop})
		r.Nonce, r.Urgent, r.Reason, r.NotBefore = s.Job.Nonce, false, "", time.Time{}
		if r.State == Pending {
			r.State = Prepared
			b.Head.Next = max(b.Head.Next, r.Nonce+1+s.Job.usesMore(v.Account))
			if r.Unused = 0; v.LastLook != nil && v.LastLook.Final <= r.Nonce {
				r.Unused = v.LastLook.Finalized
			}
			b.Head.Gaps = slices.DeleteFunc(b.Head.Gaps, func(n uint64) bool { return n == r.Nonce })
			if r.madeByExecutor() {
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
