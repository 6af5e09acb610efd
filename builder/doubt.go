package builder

import (
	"context"
	"errors"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// This file contains the rule for a log that may have lost acknowledged records,
// for example because its database was replaced by a standby that did not have
// them. A lost record may be the record of a package that was already sent. The
// next leader does not know this package, so it must not make another package for
// the same block before the fate of the lost package is certain.
//
// The builder therefore waits, and the wait has three parts, after the rules in
// docs/jam-safety.md:
//
//   - The anchor of a lost package was not above the best block at the moment of
//     the loss. When a chain has H more blocks (jamq.ChainSpec.RecentHistory), no
//     block that follows can have the anchor in its recent history, so the package
//     is either reported or dead (D2).
//   - A reported package is available or removed after the availability timeout, in
//     slots (D5).
//   - An available package with prerequisites can wait in the ready queue for an
//     epoch, in slots, because other reports may use up the gas of the blocks (D6).
//
// When the finalized chain has grown by the sum of these numbers, nothing can
// change any more. The service then knows which blocks it has accepted with
// packages that the log does not know: see [Explainer]. Until then the builder
// makes and sends nothing. The wait is itself a record in the log, so that the next
// leader continues it; that leader waits for the whole time again.

// Explainer is an optional part of a [Network] whose log is a [SharedLog]. If the
// log has lost the record of a package, Explainer tells the builder whether JAM has
// already accepted the block of that package. Without an Explainer the builder
// sends the block again, and relies on the service to ignore a block that it
// already has.
type Explainer interface {
	// Accepted returns the package that made the rollup's service accept a block on the
	// finalized chain, or the zero hash if the service has not accepted the block.
	// payload is the result of Rollup.Payload for the block.
	//
	// The error wraps ErrServiceInUse if the service has accepted a different block in
	// its place; the builder then stops. After any other error the builder calls Accepted
	// again later.
	Accepted(ctx context.Context, payload []byte) (jamq.PackageHash, error)
}

// doubt describes the wait after a loss of records: if the log has lost the newest
// records, it may also have lost packages that were already sent. The builder sends
// nothing until the finalized JAM chain is doubtBlocks higher than the field from, because
// by then each of these packages is accumulated or dead.
type doubt struct {
	lost bool // records may be lost
	seen bool // a recent block has been imported since the wait began
	// ahead is the largest lead of the best block over the host's clock since the wait began,
	// in slots. It is negative if the blocks were always behind the clock.
	ahead int64
	// from is the height at which counting begins. It is at least the height of the best chain
	// at the time of the loss, so that no lost package can have a newer anchor.
	from uint64
}

// set begins a new wait if lost is true, and otherwise ends the wait. A new wait starts
// counting when the first recent block arrives.
func (d *doubt) set(lost bool) { *d = doubt{lost: lost} }

// doubtIfPromoted begins the wait if the log may have lost records.
func (e *engine) doubtIfPromoted() error {
	if e.shared != nil && e.shared.Promoted() {
		// The record lets the wait survive a restart.
		if err := e.records.append([]byte{recordDoubt}); err != nil {
			return err
		}
		e.startDoubt()
	}
	e.note(func(h *Health) { h.Doubted = e.doubt.lost })
	return nil
}

// startDoubt begins the wait and logs a warning for the operator. It does not write the
// record with which the wait survives a restart; the caller does.
func (e *engine) startDoubt() {
	e.log.Warn("builder: the log may have lost records; no package is made until the finalized JAM chain has grown", "blocks", e.doubtBlocks())
	e.doubt.set(true)
	e.note(func(h *Health) { h.Doubted = true })
}

// doubtBlocks returns how many JAM blocks must become final until the fate of every sent
// package is certain: until it is accumulated, or can never be.
func (e *engine) doubtBlocks() uint64 {
	spec := &e.cfg.Queue.Spec
	return uint64(spec.RecentHistory) + uint64(spec.AvailabilityTimeout) + uint64(spec.EpochLength)
}

// noteBest is called for each new best block. If the block shows that the builder has
// caught up with the chain, the wait after a restart or after a loss of records can end.
func (e *engine) noteBest(best anchor.Point) {
	ahead := e.ahead(best.Slot)
	// The builder has not caught up with the chain yet.
	if ahead < -recentSlots {
		return
	}
	d := &e.doubt
	if !d.lost {
		e.release()
		return
	}
	// A block counts as recent if it is at most three slots old. At the time of the loss, the
	// best chain was therefore at most three blocks higher than this block. If the host's
	// clock is late, older blocks look recent too; then newer blocks get further ahead of the
	// clock, and counting begins again.
	if !d.seen || ahead > d.ahead {
		d.seen, d.ahead, d.from = true, ahead, best.Height+recentSlots
	}
	if e.queue.Finalized().Height >= d.from+e.doubtBlocks() {
		select {
		case e.certain <- struct{}{}:
		default:
		}
	}
}

// endDoubt waits until every lost package is accumulated or dead, and ends the doubt.
func (e *engine) endDoubt(ctx context.Context) error {
	for {
		select {
		case <-e.certain:
		case <-ctx.Done():
			return nil
		}
		err := e.adoptLost(ctx)
		if err == nil {
			err = e.inTurn(ctx, func() error {
				defer e.release()
				return e.trustLog()
			})
		}
		switch {
		case errors.Is(err, ErrServiceInUse), errors.Is(err, ErrLog):
			return err
		case err != nil && ctx.Err() == nil: // the next block wakes endDoubt again
			e.log.Error("builder: it is unknown what has become of the packages whose records are lost", "err", err)
		}
	}
}

// adoptLost makes each block final that JAM has accumulated with a lost package.
func (e *engine) adoptLost(ctx context.Context) error {
	network, ok := e.network.(Explainer)
	for skip := 0; ok; {
		b, some := e.chain.open(skip)
		if !some {
			break
		}
		pkg, err := e.accepted(ctx, network, &b)
		if err != nil || pkg.IsZero() {
			return err
		}
		err = e.inTurn(ctx, func() error {
			if e.queue.Holds(pkg) {
				skip++ // the queue knows the package, and makes the block final by itself
				return nil
			}
			e.log.Warn("builder: JAM has accumulated a package whose record is lost", "block", b.Number, "package", pkg)
			return e.step(bundlequeue.Adopt{Number: b.Number, Package: pkg})
		})
		if err != nil {
			return err
		}
	}
	// The builder must not continue with a log that has fewer blocks than the service has
	// accepted. In that case the error wraps ErrServiceInUse. After any other error the wait
	// continues.
	newest, _, _ := e.chain.parent()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.BuildTimeout)
	defer cancel()
	return e.checkReceived(ctx, newest.Number, true)
}

// accepted returns the package that made the service accept a block, or zero.
func (e *engine) accepted(ctx context.Context, network Explainer, b *block) (pkg jamq.PackageHash, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.BuildTimeout)
	defer cancel()
	applied, err := e.awaitApplied(ctx, b)
	if err != nil {
		return pkg, err
	}
	payload, err := await(ctx, e.calls, "Rollup.Payload", func() ([]byte, error) { return e.host.payload(ctx, applied) })
	if err != nil {
		return pkg, err
	}
	return await(ctx, e.calls, "Network.Accepted", func() (jamq.PackageHash, error) { return network.Accepted(ctx, payload) })
}

// trustLog ends the wait after a loss of records, and records that.
func (e *engine) trustLog() error {
	if !e.doubt.lost {
		return nil
	}
	if err := e.records.append([]byte{recordTrust}); err != nil {
		return e.fail(err)
	}
	e.doubt.set(false)
	e.note(func(h *Health) { h.Doubted = false })
	return nil
}
