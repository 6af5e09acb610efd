package jip2

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/internal/headers"
)

// listener subscribes to the node's heads while Follow runs, and wakes the feed
// when a head moves. It also begins to fetch the ancestors of each new head at
// once, because behind a slow proxy the chain can grow faster than the feed can
// fetch one parent after the other. The listener only saves time: the feed also
// requests the heads about once per slot.
type listener struct {
	feed  *Feed
	moved chan struct{} // has a value if a head may have moved since the last wait
	hears sync.WaitGroup
	walks errgroup.Group
	stop  context.CancelFunc
}

// maxWalks is the maximum number of heads whose ancestors are fetched at the same time.
const maxWalks = 64

func (f *Feed) listen(ctx context.Context) *listener {
	ctx, stop := context.WithCancel(ctx)
	l := &listener{feed: f, moved: make(chan struct{}, 1), stop: stop}
	l.walks.SetLimit(maxWalks)
	l.hears.Go(func() { l.hear(ctx, f.client.SubscribeBestBlock, true) })
	l.hears.Go(func() { l.hear(ctx, f.client.SubscribeFinalizedBlock, false) })
	return l
}

// close ends the listener and waits for its goroutines.
func (l *listener) close() {
	l.stop()
	l.hears.Wait()
	_ = l.walks.Wait() // walks return no errors
}

// hear handles the updates of one subscription until ctx ends.
func (l *listener) hear(ctx context.Context, subscribe func(context.Context) (*Subscription[BlockDescriptor], error), best bool) {
	var updates <-chan Update[BlockDescriptor]
	s, err := subscribe(ctx)
	switch {
	case err == nil:
		defer s.Close()
		updates = s.Updates()
	case ctx.Err() == nil:
		l.feed.log.Warn("cannot subscribe to new blocks, polling once per slot", "err", err)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case u, open := <-updates:
			if !open {
				return // the client is closed, so the next call returns ErrClosed
			}
			// Each new head wakes the feed and begins a walk through its ancestors.
			if u.Err == nil {
				l.walks.TryGo(func() error { l.named(ctx, u.Value, best); return nil })
			}
			select {
			case l.moved <- struct{}{}:
			default:
			}
		case <-time.After(l.feed.spec.SlotDuration):
			// The node has sent no head for a slot, so request the best block.
			if !best {
				continue
			}
			l.walks.TryGo(func() error {
				if head, err := l.feed.client.BestBlock(ctx); err == nil {
					l.named(ctx, head, best)
				}
				return nil
			})
		}
	}
}

// named fetches the ancestors of a head down to a known block, in advance.
func (l *listener) named(ctx context.Context, head BlockDescriptor, best bool) {
	f := l.feed
	if headers.CheckAhead(f.clock, time.Now(), head.Slot) != nil {
		return
	}
	if best {
		f.noteNamed(head)
	}
	for at := head; f.isNew(at); {
		parent, err := f.parent(ctx, at)
		if err != nil {
			return
		}
		at = parent
	}
}

// wait returns when a head may have moved, or false if ctx has ended.
func (l *listener) wait(ctx context.Context, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-l.moved:
	}
	return true
}
