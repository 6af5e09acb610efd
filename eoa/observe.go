package eoa

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// observe reads the chain if that is due, and confirms. It reports whether the
// chain is known well enough to send new transactions.
func (e *Executor) observe(ctx context.Context) (ready bool, err error) {
	now := e.cfg.Clock.Now()
	if e.nodeBusy() {
		return false, nil
	}
	e.signal.Lock()
	newHead := e.look
	e.look = false
	e.signal.Unlock()
	blobs := e.wantsBlobs()
	old := e.lookAt.IsZero() || blobs && !e.priced || e.cfg.Poll > 0 && now.Sub(e.lookAt) >= e.cfg.Poll || now.Sub(e.lookAt) >= e.cfg.Rebroadcast
	if !newHead && (!old || len(e.view.Open)+len(e.pending) == 0) {
		return e.failed == 0 && e.view.look != nil, nil
	}
	if e.report.Reads == 0 { // for work of other processes
		e.seen = e.wake + 1
	}
	ask := e.chain.Look
	if blobs {
		ask = e.chain.LookBlobs
	}
	look, err := ask(ctx, e.account.Address)
	if err != nil {
		return e.lookFailed(ctx, "chain look failed", err)
	}
	doubted, why := e.view.doubts(&e.cfg, now, &look)
	if err := e.commit(ctx, doubted); err != nil {
		return false, err
	}
	if why != "" {
		return e.lookFailed(ctx, why, fmt.Errorf("count %d, want %d to %d", look.Latest, e.view.Head.Floor, e.view.Head.Next))
	}
	if e.view.Behind(&e.cfg, now, &look) {
		return e.lookFailed(ctx, "node is behind", fmt.Errorf("head %d, finalized %d", look.Number, look.Finalized))
	}
	answers := Answers{Number: look.Number}
	if q := e.view.Questions(&look); len(q.Txs)+len(q.Heights) > 0 {
		if answers, err = e.chain.Ask(ctx, q); err != nil {
			return e.lookFailed(ctx, "chain query failed", err)
		}
	}
	e.lookAt, e.priced, e.failed, e.eager = now, blobs, 0, false
	b := e.view.Confirm(&e.cfg, now, &look, &answers)
	again := slices.ContainsFunc(b.Records, func(r Record) bool { return r.State == Pending })
	if e.stage(b); len(b.Add) > 0 || again { // these requests must be read
		return true, e.flush(ctx)
	}
	return true, nil
}

// lookFailed records that the chain could not be read. Nothing new is sent
// until it can be.
func (e *Executor) lookFailed(ctx context.Context, message string, err error) (bool, error) {
	e.failed++
	e.lookErr = fmt.Errorf("eoa: %s: %w", message, err)
	e.noteHead()
	e.noteBusy(err)
	e.cfg.Log.Warn("eoa: "+message, "account", e.account.String(), "failures", e.failed, "err", err)
	return false, ctx.Err()
}

// noteBusy stops using the node for a while if err wraps [*BusyError].
func (e *Executor) noteBusy(err error) {
	var busy *BusyError
	if errors.As(err, &busy) {
		e.view.setQuietUntil(&e.cfg, e.cfg.Clock.Now(), busy.RetryAfter)
	}
}

// nodeBusy reports whether the node asked us to wait and the wait is not over.
func (e *Executor) nodeBusy() bool { return e.cfg.Clock.Now().Before(e.view.quietUntil) }
