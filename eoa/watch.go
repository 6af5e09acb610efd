package eoa

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// watch is an executor's knowledge of its last look at the chain.
type watch struct {
	at     time.Time // of the last successful look
	priced bool      // it included the blob price
	eager  bool      // new bytes accepted since then
	failed int       // failed looks since then
	err    error     // error of the last one
	doubt  error     // contradiction between nodes in the last look
}

// due reports whether the last look is too old.
func (w *watch) due(c *Config, now time.Time, blobs bool) bool {
	age := now.Sub(w.at)
	return w.at.IsZero() || blobs && !w.priced || c.Poll > 0 && age >= c.Poll || age >= c.Rebroadcast
}

// observe reads the chain if that is due, and confirms. It reports whether the
// chain is known well enough to send new transactions.
func (e *Executor) observe(ctx context.Context) (ready bool, err error) {
	now := e.cfg.Now()
	if e.nodeBusy() {
		return false, nil
	}
	newHead, blobs := e.signals.takeHead(), e.wantsBlobs()
	idle := len(e.view.Open)+len(e.inbox.pending) == 0
	if !newHead && (idle || !e.watch.due(&e.cfg, now, blobs)) {
		return e.watch.failed == 0 && e.view.Look() != nil, nil
	}
	if e.report.Reads == 0 { // for work of other processes
		e.inbox.expire()
	}
	ask := e.chain.Look
	if blobs {
		ask = e.chain.LookBlobs
	}
	known := Known{Started: e.view.Head.Started, Floor: e.view.Head.Floor, Next: e.view.Head.Next, Exclusive: e.rules.Exclusive}
	look, err := ask(context.WithValue(ctx, knownKey{}, known), e.account.Address)
	if err != nil {
		return e.lookFailed(ctx, "chain look failed", err)
	}
	e.watch.doubt = look.Doubt
	b, doubt := e.view.Trust(&e.rules, now, &look)
	if err := e.commit(ctx, b); err != nil {
		return false, err
	}
	if doubt != nil {
		return e.lookFailed(ctx, "look not used", doubt)
	}
	answers := Answers{Number: look.Number}
	if q := e.view.Ask(&look); len(q.Txs)+len(q.Heights) > 0 {
		if answers, err = e.chain.Ask(ctx, q); err != nil {
			return e.lookFailed(ctx, "chain query failed", err)
		}
	}
	e.watch = watch{at: now, priced: blobs, doubt: look.Doubt}
	b = e.view.Observe(&e.rules, now, &look, &answers)
	e.signals.fallTo(e.view.Verified())
	again := slices.ContainsFunc(b.Records, func(r Record) bool { return r.State == Pending })
	if e.stage(b); len(b.Add) > 0 || again { // these requests must be read
		return true, e.commitStaged(ctx)
	}
	return true, nil
}

// lookFailed records that the chain could not be read. Nothing new is sent
// until it can be.
func (e *Executor) lookFailed(ctx context.Context, message string, err error) (bool, error) {
	e.watch.failed++
	e.watch.err = fmt.Errorf("eoa: %s: %w", message, err)
	e.signals.noteHead()
	e.noteBusy(err)
	e.cfg.Logger.Warn("eoa: "+message, "account", e.account.String(), "failures", e.watch.failed, "err", err)
	return false, ctx.Err()
}

// wantsBlobs reports whether the price of blobs is needed.
func (e *Executor) wantsBlobs() bool {
	if e.view.HasBlobs() {
		return true
	}
	for i := range e.inbox.pending {
		if e.inbox.pending[i].Kind == Blob {
			return true
		}
	}
	return false
}
