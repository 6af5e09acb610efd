package jamnps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/feed"
)

// way is the blocks from an announced head back to the first one that was
// delivered, which is not among them. A long way holds only its oldest blocks in
// memory, and the others are fetched a second time. Otherwise a host that closes a
// gap of a day, or a peer that invents one, would need gigabytes: a block has up to
// 341 reports.
type way struct {
	path []mark          // the blocks, newest first
	next jamq.HeaderHash // the parent of the last one
	held []jamq.Block    // the last ones of path, or none
	size int             // of held when the last one was added, in bytes
	most int             // the number of blocks in the next request
}

// mark is a block on a way, and its size in bytes.
type mark struct {
	leaf
	size int
}

// defaultMaxHeld is the size of the blocks that a way holds, in bytes.
const defaultMaxHeld = 8 << 20

// blocksPerRequest is the number of blocks per request. If they are too large
// for an answer, the feed requests a quarter of them, and so on down to one.
const blocksPerRequest = 64

// add adds a block, which is the parent of the last one. If the blocks that the way
// holds would be larger than most, it holds the new one only.
func (w *way) add(b *jamq.Block, most int) {
	size := sizeOf(b)
	w.path = append(w.path, mark{leaf{b.Hash, b.Slot}, size})
	w.next = b.Parent
	if w.size += size; w.size > most {
		w.held, w.size = nil, size
	}
	w.held = append(w.held, *b)
}

// sizeOf returns an upper bound on the memory of a block, in bytes.
func sizeOf(b *jamq.Block) int {
	const block, report, hash = 256, 256, 32
	size := block + report*cap(b.Reported) + hash*(cap(b.Available)+cap(b.Condemned)+cap(b.Accumulated))
	for i := range b.Reported {
		size += hash * cap(b.Reported[i].Prerequisites)
	}
	return size
}

// oldest returns the last block, which must be held.
func (w *way) oldest() *jamq.Block { return &w.held[len(w.held)-1] }

// truncate removes all blocks but the newest n, which are fewer than all.
func (w *way) truncate(n int) {
	held := max(0, len(w.held)-(len(w.path)-n))
	clear(w.held[held:]) // frees them
	w.held = w.held[:held]
	w.next, w.path = w.path[n].hash, w.path[:n]
}

// pop removes the last block.
func (w *way) pop() { w.truncate(len(w.path) - 1) }

// shrink makes the next request one for fewer blocks. It returns false if it is for one
// already.
func (w *way) shrink() bool {
	was := w.most
	w.most = max(1, w.most/4)
	return w.most < was
}

// join adds an earlier way, which continues this one.
func (w *way) join(earlier *way) {
	path := append(w.path, earlier.path...)
	*w = *earlier
	w.path = path
}

// grow lets the next request be for more blocks.
func (w *way) grow() { w.most = min(2*w.most, blocksPerRequest) }

// ways are the unfinished ways of a peer. Together they hold what one may hold.
type ways []*way

// maxWays is the maximum number of unfinished ways of a peer: one that is long, and one
// from a newer head that has not met it yet.
const maxWays = 2

// from returns the way that begins with a block, or nil.
func (all ways) from(at jamq.HeaderHash) *way {
	for _, w := range all {
		if len(w.path) > 0 && w.path[0].hash == at {
			return w
		}
	}
	return nil
}

// keep adds a way, unless it is there, and drops the shortest one if there are too many.
// The others hold no blocks any more if all together would be larger than most.
func (all *ways) keep(w *way, most int) {
	all.forget(w)
	room := most - w.size
	for _, other := range *all {
		if other.size > room {
			other.held, other.size = nil, 0
		}
		room -= other.size
	}
	if len(*all) == maxWays {
		all.forget(slices.MinFunc(*all, func(a, b *way) int { return cmp.Compare(len(a.path), len(b.path)) }))
	}
	*all = append(*all, w)
}

// forget removes a way.
func (all *ways) forget(w *way) {
	*all = slices.DeleteFunc(*all, func(other *way) bool { return other == w })
}

// walk returns the way from an announced head. It requests blocks from the head back
// to the first delivered one. If that fails, or the way is not delivered to its end,
// the next walk that meets it continues there. A way on which history is lost, or that
// has passed the finalized block, is forgotten.
func (f *Feed) walk(ctx context.Context, now *turn, head leaf) (*way, error) {
	w := &way{next: head.hash, most: blocksPerRequest}
	err := f.extend(ctx, now, w)
	switch {
	case errors.Is(err, ErrHistoryLost), errors.Is(err, feed.ErrExcludes):
		f.unfinished[now.peer.index].forget(w)
	case err == nil && !f.tree.Get(w.next).Descends(f.tree.Finalized()):
		f.unfinished[now.peer.index].forget(w)
		err = f.chain().Exclude(head.hash, head.slot)
	}
	return w, err
}

// extend adds blocks to a way, back to the first delivered one.
func (f *Feed) extend(ctx context.Context, now *turn, w *way) error {
	unfinished := &f.unfinished[now.peer.index]
	for f.tree.Get(w.next) == nil {
		if earlier := unfinished.from(w.next); earlier != nil {
			delivered := slices.IndexFunc(earlier.path, func(at mark) bool { return f.tree.Get(at.hash) != nil })
			if delivered > 0 { // meanwhile
				earlier.truncate(delivered)
			}
			unfinished.forget(earlier)
			w.join(earlier)
			unfinished.keep(w, f.maxHeld)
			continue
		}
		switch n := len(w.path); {
		case n > 0 && w.path[n-1].slot <= f.tree.Oldest().Slot:
			return f.chain().Exclude(w.path[0].hash, w.path[0].slot)
		case n >= f.cfg.MaxGap:
			return fmt.Errorf("%w: block %s, %d blocks before the head, does not follow one that was delivered since slot %d", ErrHistoryLost, w.next, n, f.tree.Oldest().Slot)
		}
		more, err := f.request(ctx, now, w.next, w.most)
		if errors.Is(err, ErrTooLarge) && w.shrink() {
			continue
		}
		if err != nil {
			return err
		}
		w.grow()
		for i := range more {
			if f.tree.Get(w.next) != nil || unfinished.from(w.next) != nil {
				break
			}
			w.add(&more[i], f.maxHeld)
		}
		unfinished.keep(w, f.maxHeld)
	}
	return nil
}

// refill fetches the oldest blocks of a way a second time if it holds none. After a
// failure it tries fewer at once, so that a slow peer gets to the end of a way too.
func (f *Feed) refill(ctx context.Context, now *turn, w *way) error {
	for len(w.held) == 0 {
		held, err := f.fetchAgain(ctx, now, w)
		if err == nil {
			w.held, w.size = held, f.maxHeld
			f.unfinished[now.peer.index].keep(w, f.maxHeld)
			w.grow()
			return nil
		}
		if smaller := w.shrink(); !smaller || !errors.Is(err, ErrTooLarge) {
			return err
		}
	}
	return nil
}

// fetchAgain fetches the oldest blocks of a way, as many as one request and the way
// may have.
func (f *Feed) fetchAgain(ctx context.Context, now *turn, w *way) (blocks []jamq.Block, err error) {
	first := len(w.path) - 1
	size := w.path[first].size
	for first > 0 && len(w.path)-first < w.most && size+w.path[first-1].size <= f.maxHeld {
		first--
		size += w.path[first].size
	}
	for missing := w.path[first:]; len(missing) > 0; {
		more, err := f.request(ctx, now, missing[0].hash, len(missing))
		if err != nil {
			return nil, err
		}
		blocks, missing = append(blocks, more...), missing[len(more):]
	}
	return blocks, nil
}

// request requests a block and some of its ancestors, from the peer of the turn if it
// can serve them.
func (f *Feed) request(ctx context.Context, now *turn, from jamq.HeaderHash, most int) ([]jamq.Block, error) {
	if err := now.checkPace(); err != nil {
		return nil, err
	}
	begun := time.Now()
	blocks, err := anyPeer(f.client, now.peer, func(peer int) ([]jamq.Block, error) { return f.fetchSome(ctx, peer, from, most) })
	took := time.Since(begun)
	now.took += took
	f.loop.NoteAnswer(took)
	if err != nil {
		return nil, err
	}
	now.walked += len(blocks)
	return blocks, nil
}

// turn is the time that a peer gets to serve blocks, before the others get theirs.
type turn struct {
	timeout   time.Duration // Config.RequestTimeout
	peer      *peer
	took      time.Duration // by all requests
	walked    int           // blocks of the present head that were served
	delivered int           // blocks of all heads
}

// maxWalked is the number of served blocks that give a peer time before one of them
// is delivered.
const maxWalked = 4 * blocksPerRequest

// checkPace returns an error if the peer is too slow: if it has taken longer than
// the time-out, and once more for each blocksPerRequest blocks that it has served.
// Blocks of heads that were not delivered do not count, because a peer can invent any
// number of them.
func (t *turn) checkPace() error {
	served := t.delivered + min(t.walked, maxWalked)
	if most := t.timeout * time.Duration(1+served/blocksPerRequest); t.took > most {
		return fmt.Errorf("jamnps: %s has taken %v to serve blocks that it announced, want at most %v", t.peer.Addr, t.took.Round(time.Millisecond), most)
	}
	return nil
}
