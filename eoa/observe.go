package eoa

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// watch has the time and the result of the last read of the chain.
type watch struct {
	at     time.Time // time of the last successful look; zero: none
	eager  bool      // since then, a node has accepted a new transaction
	failed int       // failed looks since then
	err    error     // error of the last failed look
}

// observeChain reads the chain if a read is due, and updates the records.
func (e *Executor) observeChain(ctx context.Context) (ready bool, err error) {
	now := e.cfg.Now()
	if e.nodeBusy() {
		return false, nil
	}
	newHead := e.signals.takeLookRequest()
	idle := len(e.view.Open)+len(e.inbox.pending) == 0
	age := now.Sub(e.watch.at)
	due := e.watch.at.IsZero() || e.cfg.Poll > 0 && age >= e.cfg.Poll || age >= e.cfg.Rebroadcast
	if !newHead && (idle || !due) {
		// New transactions may be sent if the last read succeeded.
		return e.watch.failed == 0 && e.view.LastLook != nil, nil
	}
	if e.report.Reads == 0 { // for work of other processes
		e.inbox.expire()
	}
	look, err := e.chain.Look(ctx, e.account.Address)
	if err != nil {
		return e.lookFailed(ctx, "chain look failed", err)
	}
	b, doubt := e.view.Trust(&e.rules, now, &look)
	if err := e.commit(ctx, b); err != nil {
		return false, err
	}
	if doubt != nil {
		return e.lookFailed(ctx, "look not used", doubt)
	}
	answers := Answers{Number: look.Number}
	if q := e.view.Questions(&look); len(q.Txs)+len(q.Heights) > 0 {
		if answers, err = e.chain.Ask(ctx, q); err != nil {
			return e.lookFailed(ctx, "chain query failed", err)
		}
	}
	e.watch = watch{at: now}
	b = e.view.Confirm(&e.rules, now, &look, &answers)
	e.signals.lowerHeight(e.view.VerifiedAt)
	again := slices.ContainsFunc(b.Records, func(r Record) bool { return r.State == Pending })
	if e.stage(b); len(b.Add) > 0 || again { // these requests must be read
		return true, e.commitStaged(ctx)
	}
	return true, nil
}

// lookFailed notes that a report could not be read or is not trusted.
func (e *Executor) lookFailed(ctx context.Context, message string, err error) (bool, error) {
	e.watch.failed++
	e.watch.err = fmt.Errorf("eoa: %s: %w", message, err)
	e.signals.requestLook()
	e.noteBusy(err)
	e.cfg.Logger.Warn("eoa: "+message, "account", e.account.String(), "failures", e.watch.failed, "err", err)
	// No new request is sent until a read succeeds.
	return false, ctx.Err()
}
