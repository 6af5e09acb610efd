package jip2

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/headers"
)

// heads are the best blocks that the node has named. The feed requests the parents of
// all of them at once, because behind a slow proxy the chain grows faster than it can be
// walked block by block. Its methods are safe for concurrent use.
type heads struct {
	mu sync.Mutex
	// ends are the oldest blocks that are learned on the ways back from these heads. The
	// way from a new head is the head itself.
	ends   []BlockDescriptor
	newest BlockDescriptor // the last one that the node has named
	named  time.Time       // when it has
	// changed has a value if a head has moved since the last wait. Its capacity is 1.
	changed chan struct{}
}

// maxEnds is the maximum number of ends. The feed drops those of older heads.
const maxEnds = 64

// add adds a head.
func (h *heads) add(head BlockDescriptor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest, h.named = head, time.Now()
	if !slices.Contains(h.ends, head) {
		h.ends = append(h.ends, head)
	}
	h.ends = h.ends[max(0, len(h.ends)-maxEnds):]
}

// follow replaces each end by the block that the function older returns for it, or drops
// it if older returns false. It returns the ends.
func (h *heads) follow(older func(BlockDescriptor) (BlockDescriptor, bool)) []BlockDescriptor {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ends []BlockDescriptor
	for _, end := range h.ends {
		if at, open := older(end); open && !slices.Contains(ends, at) {
			ends = append(ends, at)
		}
	}
	h.ends = ends
	return slices.Clone(ends)
}

// last returns the head that the node has named last, and when.
func (h *heads) last() (BlockDescriptor, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.named
}

// wait waits until a head may have moved, for at most atMost. It returns false if ctx
// has ended.
func (h *heads) wait(ctx context.Context, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-h.changed:
	}
	return true
}

// listen subscribes to the node's heads, so that the feed wakes when one moves. That only
// saves time: the feed requests the heads about once per slot, so a lost notification, or
// a node that sends none, does no harm. The caller must call stop.
func (f *Feed) listen(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { f.hear(ctx, f.client.SubscribeBestBlock, f.nameHead) })
	listening.Go(func() { f.hear(ctx, f.client.SubscribeFinalizedBlock, func(BlockDescriptor) {}) })
	return func() {
		cancel()
		listening.Wait()
	}
}

// hear passes the updates of a subscription to take, and wakes the feed, until ctx or the
// client ends.
func (f *Feed) hear(ctx context.Context, subscribe func(context.Context) (*Subscription[BlockDescriptor], error), take func(BlockDescriptor)) {
	s, err := subscribe(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.log.Warn("cannot subscribe to new blocks, polling once per slot", "err", err)
		}
		return
	}
	defer s.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case u, open := <-s.Updates():
			if !open {
				return // the client was closed: the next call returns ErrClosed
			}
			if u.Err == nil {
				take(u.Value)
			}
			select {
			case f.heads.changed <- struct{}{}:
			default:
			}
		}
	}
}

// nameHead notes a best block of the node, unless its slot lies far ahead of the clock.
func (f *Feed) nameHead(head BlockDescriptor) {
	if headers.CheckAhead(f.clock, time.Now(), head.Slot) == nil {
		f.heads.add(head)
	}
}

// openEnds returns the blocks whose parents the feed requests together with that of the
// given block, which is the first of them.
func (f *Feed) openEnds(at BlockDescriptor) []BlockDescriptor {
	ends := f.heads.follow(func(end BlockDescriptor) (BlockDescriptor, bool) {
		hash := jamq.HeaderHash(end.HeaderHash)
		for known, ok := f.learned[hash]; ok && known.parent.Slot < end.Slot; known, ok = f.learned[hash] {
			end = known.parent
			hash = jamq.HeaderHash(end.HeaderHash)
		}
		return end, f.tree.Get(hash) == nil && !f.tree.Misses(hash, end.Slot)
	})
	ends = slices.DeleteFunc(ends, func(end BlockDescriptor) bool { return end == at })
	return append([]BlockDescriptor{at}, ends[max(0, len(ends)-maxAsking+1):]...)
}
