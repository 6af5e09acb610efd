package eoa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// job is a transaction to be signed.
type job struct {
	// Record is the current record of the request.
	Record Record
	// Gas is the gas limit; 0 means that it must be estimated first.
	Gas uint64
	// Nonce is the transaction's nonce.
	Nonce uint64
	// Fees are the transaction's prices.
	Fees Fees
	// Noop means that the transaction does nothing.
	Noop bool
}

// Transaction returns the transaction to be signed. It has the hashes of its
// blobs but not the blobs. It returns an error that wraps ErrInvalidRequest if
// the blobs are invalid.
func (j *job) Transaction(a Account) (*types.Transaction, error) {
	to, value, data, kind := j.Record.To, new(uint256.Int), j.Record.Data, j.Record.Kind
	if j.Record.Value != nil {
		value = j.Record.Value
	}
	if j.Noop {
		to, value, data = &a.Address, new(uint256.Int), nil
		if kind == SetCode {
			kind = DynamicFee
		}
	}
	accessList := j.Record.AccessList
	if j.Noop {
		accessList = nil
	}
	chain := new(uint256.Int).SetUint64(a.ChainID)
	switch kind {
	case Legacy:
		return types.NewTx(&types.LegacyTx{Nonce: j.Nonce, GasPrice: j.Fees.Cap.ToBig(), Gas: j.Gas, To: to, Value: value.ToBig(), Data: data}), nil
	case AccessList:
		return types.NewTx(&types.AccessListTx{ChainID: chain.ToBig(), Nonce: j.Nonce, GasPrice: j.Fees.Cap.ToBig(), Gas: j.Gas, To: to,
			Value: value.ToBig(), Data: data, AccessList: accessList}), nil
	case Blob:
		return j.blobTransaction(&types.BlobTx{ChainID: chain, Nonce: j.Nonce, GasTipCap: &j.Fees.Tip, GasFeeCap: &j.Fees.Cap, Gas: j.Gas, To: *to,
			Value: value, Data: data, AccessList: accessList})
	case SetCode:
		return types.NewTx(&types.SetCodeTx{ChainID: chain, Nonce: j.Nonce, GasTipCap: &j.Fees.Tip, GasFeeCap: &j.Fees.Cap, Gas: j.Gas, To: *to,
			Value: value, Data: data, AccessList: accessList, AuthList: j.Record.Authorizations}), nil
	}
	return types.NewTx(&types.DynamicFeeTx{ChainID: chain.ToBig(), Nonce: j.Nonce, GasTipCap: j.Fees.Tip.ToBig(), GasFeeCap: j.Fees.Cap.ToBig(), Gas: j.Gas,
		To: to, Value: value.ToBig(), Data: data, AccessList: accessList}), nil
}

// cost returns the most that the transaction can cost, in wei, saturated.
func (j *job) cost() uint256.Int {
	sum, over := new(uint256.Int).MulOverflow(&j.Fees.Cap, uint256.NewInt(j.Gas))
	add := func(x *uint256.Int, overflow bool) {
		_, more := sum.AddOverflow(sum, x)
		over = over || overflow || more
	}
	if n := len(j.blobs()); n > 0 {
		add(new(uint256.Int).MulOverflow(&j.Fees.Blob, uint256.NewInt(uint64(n)*gasPerBlob)))
	}
	if j.Record.Value != nil && !j.Noop {
		add(j.Record.Value, false)
	}
	if over {
		sum.SetAllOne()
	}
	return *sum
}

// choose returns the pending requests that may be sent now, best first. Their
// number is limited by the room in flight. The batch ends requests whose
// deadline has passed and noops that are not needed. pending are requests
// without a nonce, in order of rank.
func (v *view) choose(c *Config, now time.Time, pending []Record) ([]job, Batch) {
	b := v.batch()
	room, free, pools := v.room(c), v.free(), v.pools()
	v.poolBlocked = false
	ahead, held := v.groupsInFlight(), map[string]bool{}
	var jobs []job
	fills := len(v.Head.Holes)
	for i := range pending {
		r := &pending[i]
		switch {
		case r.State != Pending:
			// The store must not offer it.
		case !r.Deadline.IsZero() && !now.Before(r.Deadline):
			gone := r.clone()
			gone.Reason = "deadline passed"
			b.move(now, &gone, Failed, EventFailed)
			b.Records = append(b.Records, gone)
		case r.own() && fills == 0:
			gone := r.clone()
			b.move(now, &gone, Cancelled, EventCancelled)
			b.Records = append(b.Records, gone)
		case v.look == nil || len(jobs) >= room || r.waits(now) || v.asking[r.ID]:
			held[r.Group] = true
		case r.Group != "" && (held[r.Group] || r.Gas == 0 && !r.Noop && ahead[r.Group] > 0):
			held[r.Group] = true
		default:
			j := job{Record: *r, Gas: r.Gas, Noop: r.Noop}
			if j.Noop {
				j.Gas = v.noopGas(c)
			}
			if r.own() {
				j.Record.Kind = v.filler(v.Head.Holes[len(v.Head.Holes)-fills])
			}
			least := j
			least.Gas = max(j.Gas, noopGas)
			if why := v.afford(c, &least, free); why != "" {
				held[r.Group] = true
				if r.Reason == "" && len(b.Records) < c.Batch { // say it once
					waits := r.clone()
					waits.Reason = why
					b.Records = append(b.Records, waits)
				}
				continue
			}
			if r.own() {
				fills--
			} else if v.poolBlocked = v.poolBlocked || !pools.takes(r.Kind); v.poolBlocked {
				held[r.Group] = true
				continue
			}
			pools.add(j.Record.Kind)
			jobs = append(jobs, j)
			ahead[r.Group]++
		}
	}
	return jobs, b
}

// refusal is a request that cannot be sent now, and the reason.
type refusal struct {
	// Record is the current record of the request.
	Record Record
	// Reason explains why it cannot be sent.
	Reason string
}

// postpone delays requests that cannot be estimated, paid for or signed now, so
// that they do not hold up others. The delay equals the time since they were
// queued, but at least Config.Retry and at most one minute.
func (v *view) postpone(c *Config, now time.Time, refused []refusal) Batch {
	b := v.batch()
	for _, f := range refused {
		r := f.Record.clone()
		r.Reason, r.NotBefore = f.Reason, now.Add(min(max(now.Sub(r.QueuedAt), c.Retry), maxRetry))
		b.Records = append(b.Records, r)
	}
	return b
}

// refuse fails requests that the node reports to revert. They have no nonce and
// nothing was signed for them. If a transaction of the account was mined a
// moment ago, the node may have executed the call on a state before it. Such a
// request is postponed first, and fails if it still reverts some blocks later.
func (v *view) refuse(c *Config, now time.Time, refused []refusal) Batch {
	var early []refusal
	b := v.batch()
	for _, f := range refused {
		if again, reason := v.asksAgain(c, now, &f.Record); again {
			early = append(early, refusal{f.Record, reason})
			continue
		}
		r := f.Record.clone()
		r.Reason = f.Reason
		b.move(now, &r, Failed, EventFailed)
		b.Records = append(b.Records, r)
	}
	b.Records = append(b.Records, v.postpone(c, now, early).Records...)
	return b
}

// askedAgain is the reason of a request that waits because it reverted at a
// block soon after one with a transaction of the account.
const askedAgain = "reverted at block %d, soon after a transaction of the account"

// asksAgain reports whether a revert may come from a node that is behind, and
// the reason of the request until it is estimated again. On a chain that makes
// no blocks, the revert counts Fees.StallTimeout after the request was queued.
func (v *view) asksAgain(c *Config, now time.Time, r *Record) (again bool, reason string) {
	var first uint64
	_, err := fmt.Sscanf(r.Reason, askedAgain, &first)
	switch {
	case v.mined == 0 || v.look.Number > v.mined+nodeLag:
		return false, ""
	case err != nil:
		return true, fmt.Sprintf(askedAgain, v.look.Number)
	}
	return v.look.Number <= first+nodeLag && now.Sub(r.QueuedAt) < c.Fees.StallTimeout, r.Reason
}

func (v *view) noopGas(c *Config) uint64 {
	if v.delegated(c) {
		return noopGasDelegated
	}
	return noopGas
}

// delegated reports whether the account has code, so that nodes take one of its
// transactions at a time.
func (v *view) delegated(c *Config) bool { return c.Delegated || v.look != nil && v.look.Delegated }

// room returns how many more requests may be in flight. A request that fills a
// nonce below others always has room.
func (v *view) room(c *Config) int {
	n, sure := v.inFlight()
	most := c.maxInFlight(sure)
	if v.delegated(c) {
		most = 1
	}
	return max(most-n, min(len(v.Head.Holes), c.Batch))
}

// groupsInFlight returns, for each group with members in flight, the highest
// nonce of those plus one.
func (v *view) groupsInFlight() map[string]uint64 {
	ahead := map[string]uint64{}
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() && r.Group != "" {
			ahead[r.Group] = r.Nonce + 1
		}
	}
	return ahead
}

// price returns the fees of a new transaction. It returns false if a limit is
// below the base fee, or if the price of blobs is needed and unknown.
func (p *FeePolicy) price(look *Look, r *Record) (Fees, bool) {
	f, limits := Fees{Tip: look.Tip}, p.limits(r.limits())
	f.Cap.Lsh(&look.BaseFee, 1)
	f.Cap.Add(&f.Cap, &look.Tip)
	if r.Kind == Blob {
		if look.BlobFee.IsZero() {
			return Fees{}, false
		}
		f.Blob.Lsh(&look.BlobFee, 1)
	}
	for _, x := range []struct{ price, base, limit *uint256.Int }{{&f.Cap, &look.BaseFee, limits.Fee}, {&f.Blob, &look.BlobFee, limits.BlobFee}} {
		if x.limit != nil && x.limit.Lt(x.price) {
			if x.limit.Lt(x.base) {
				return Fees{}, false
			}
			x.price.Set(x.limit)
		}
	}
	if f.Cap.Lt(&f.Tip) {
		f.Tip = f.Cap
	}
	return singlePrice(r, f), true
}

// singlePrice sets the tip to the cap if the transaction type has only one
// price.
func singlePrice(r *Record, f Fees) Fees {
	if r.Kind == Legacy || r.Kind == AccessList {
		f.Tip = f.Cap
	}
	return f
}

// free returns the balance less the cost of everything in flight; nil means
// unknown.
func (v *view) free() *uint256.Int {
	if v.look == nil || v.look.Balance == nil {
		return nil
	}
	free, spent := new(uint256.Int).Set(v.look.Balance), v.inFlightCost()
	take(free, &spent)
	return free
}

// inFlightCost returns the most that the transactions in flight can cost, in wei,
// saturated.
func (v *view) inFlightCost() (sum uint256.Int) {
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() && r.Nonce >= v.look.Latest {
			if _, over := sum.AddOverflow(&sum, &r.Newest().Cost); over {
				sum.SetAllOne()
			}
		}
	}
	return sum
}

// take subtracts cost from from, not below zero, and reports whether from was
// enough.
func take(from, cost *uint256.Int) bool {
	if from.Lt(cost) {
		from.Clear()
		return false
	}
	from.Sub(from, cost)
	return true
}

// assign assigns nonces and prices to jobs. The executor's own noops fill holes,
// and every other job gets a new nonce. A job is returned in later if the
// balance does not cover it, its price limit is below the base fee, or its gas
// is unknown. Later jobs of its group are then left out; all other jobs go on.
func (v *view) assign(c *Config, jobs []job) (out []job, later []refusal) {
	if v.look == nil {
		return nil, nil
	}
	next := allocator{next: v.Head.Next, holes: v.Head.Holes}
	free, held := v.free(), map[string]bool{}
	for _, j := range jobs {
		group := j.Record.Group
		if group != "" && held[group] {
			continue
		}
		if why := v.afford(c, &j, free); why != "" {
			held[group] = true
			later = append(later, refusal{j.Record, why})
			continue
		}
		if free != nil {
			cost := j.cost()
			take(free, &cost)
		}
		var ok bool
		if j.Nonce, ok = next.take(j.Record.own()); ok {
			next.next = max(next.next, j.Nonce+1+j.usesMore(v.Account))
			out = append(out, j)
		}
	}
	// In nonce order, the first signature that fails ends the step without a
	// gap.
	slices.SortStableFunc(out, func(x, y job) int { return cmp.Compare(x.Nonce, y.Nonce) })
	return out, later
}

// usesMore returns how many nonces the job's transaction uses beside its own.
func (j *job) usesMore(a Account) uint64 {
	if j.Noop {
		return 0
	}
	return j.Record.usesMore(a, j.Nonce)
}

// usesMore returns how many nonces of its sender a SetCode transaction uses
// beside its own, nonce. The sender's nonce rises before the authorizations are
// processed, and each valid one raises its authority's nonce (EIP-7702).
func (r *Request) usesMore(a Account, nonce uint64) (n uint64) {
	if r.Kind != SetCode {
		return 0
	}
	for i := range r.Authorizations {
		auth := &r.Authorizations[i]
		if auth.Nonce != nonce+1+n || !auth.ChainID.IsZero() && auth.ChainID.CmpUint64(a.ChainID) != 0 {
			continue
		}
		if authority, err := auth.Authority(); err == nil && authority == a.Address {
			n++
		}
	}
	return n
}

const noEstimate = "gas could not be estimated"

// afford prices a job. It returns the reason if the job cannot be sent with the
// free balance; a nil balance is unlimited. It notes the reason, and whether the
// balance covers the job.
func (v *view) afford(c *Config, j *job, free *uint256.Int) (why string) {
	fees, ok := c.Fees.price(v.look, &j.Record)
	j.Fees = fees
	cost := j.cost()
	switch {
	case j.Record.Kind == Blob && v.look.BlobFee.IsZero():
		why = "the price of blobs is unknown"
	case !ok:
		why = fmt.Sprintf("the price limit is below the base fee of %v wei", &v.look.BaseFee)
	case j.Gas == 0:
		why = noEstimate
	}
	if why != "" {
		v.waiting = refusal{j.Record, why}
		return why
	}
	if v.waiting.Record.ID == j.Record.ID {
		v.waiting = refusal{}
	}
	covered := free == nil || !free.Lt(&cost)
	v.unpaid.considered(j.Record.ID, &cost, covered)
	if !covered {
		return "the balance does not cover it"
	}
	return ""
}

// allocator hands out free nonces, each once. It does not change holes in place.
type allocator struct {
	next  uint64
	holes []uint64
}

// take returns the next nonce. Nonces in holes are only for the executor's own
// noops, and these never get new nonces.
func (a *allocator) take(own bool) (uint64, bool) {
	switch {
	case own && len(a.holes) > 0:
		n := a.holes[0]
		a.holes = a.holes[1:]
		return n, true
	case own || a.next == math.MaxUint64: // EIP-2681
		return 0, false
	}
	a.next++
	return a.next - 1, true
}

// signedJob is a job with its signed transaction.
type signedJob struct {
	// Job is the job.
	Job job
	// Tx is the transaction hash.
	Tx common.Hash
	// Raw is the encoded transaction, without blobs.
	Raw []byte
	// Proofs are the commitments and proofs of the blobs; see Attempt.Proofs.
	Proofs []byte
}

// prepared returns the step that makes signatures durable. It must be committed
// before any of the bytes are sent.
func (v *view) prepared(now time.Time, signed []signedJob) Batch {
	b := v.batch()
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
			if r.Unused = 0; v.look != nil && v.look.Final <= r.Nonce {
				r.Unused = v.look.Finalized
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

// fill returns a step that adds noops for the holes that no pending noop takes.
func (v *view) fill(pending []Record, assigned []job) Batch {
	b := v.batch()
	want := len(v.Head.Holes)
	for _, j := range assigned {
		if slices.Contains(v.Head.Holes, j.Nonce) {
			want--
		}
	}
	for i := range pending {
		if pending[i].own() {
			want--
		}
	}
	for i := range max(0, want) {
		b.Add = append(b.Add, Request{Key: fmt.Sprintf("%snoop/%d/%d", ownKeys, v.Head.Version, i), Noop: true, Priority: math.MaxInt32})
	}
	return b
}
