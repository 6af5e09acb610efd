package builder

import "github.com/jamq/jamq/anchor"

// This file has the rule for a log that may have lost acknowledged records, because its database
// was replaced by a standby that did not have them. Among them can be the record of a package that
// has left. The builder that leads next does not know this package, so it must not make another one
// for the same block before the lost one can no longer be accumulated, or is in a JAM block that
// the builder sees.
//
// The anchor of a lost package is at or below the best block of the moment of the loss. So when the
// best chain has H blocks more (jamq.ChainSpec.RecentHistory), the anchor is no longer in the
// recent history of any block that can follow (rule D2 in docs/jam-safety.md), and the package is
// reported or dead. Until then the builder makes and sends nothing. The wait is in the log, so that
// a builder that leads next continues it; it waits for H blocks again.

// doubt is the state of the rule.
type doubt struct {
	lost bool // records may be lost
	seen bool // a recent block has been imported since
	// from is a height that the best chain had not exceeded at the moment of the loss.
	from uint64
}

// set begins or ends the doubt. A doubt that begins counts from the next recent block.
func (d *doubt) set(lost bool) { *d = doubt{lost: lost} }

// doubtIfPromoted begins to doubt if the log may have lost records.
func (e *engine) doubtIfPromoted() error {
	if e.shared != nil && e.shared.Promoted() {
		if err := e.records.append([]byte{recordDoubt}); err != nil {
			return err
		}
		e.log.Warn("builder: the log may have lost records; no package is made until the JAM chain has grown", "blocks", e.cfg.Queue.Spec.RecentHistory)
		e.doubt.set(true)
	}
	e.note(func(h *Health) { h.Doubted = e.doubt.lost })
	return nil
}

// caughtUp releases the builder after a restart, because the best block is recent. While the log is
// doubted, the builder is released only when the best chain has grown by H blocks. A recent block
// can be three slots old, so the best block of the moment of the loss can be three blocks higher
// than the first recent block that this process sees. The wait counts from that height.
func (e *engine) caughtUp(best anchor.Point) error {
	if d := &e.doubt; d.lost {
		if !d.seen {
			d.seen, d.from = true, best.Height+recentSlots
		}
		if best.Height < d.from+uint64(e.cfg.Queue.Spec.RecentHistory) {
			return nil
		}
		if err := e.trustLog(); err != nil {
			return err
		}
	}
	e.release()
	return nil
}

// trustLog ends the doubt.
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
