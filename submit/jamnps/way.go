package jamnps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

// way is the blocks from an announced head back to the first one that was
// delivered, which is not among them. A long way holds only its oldest blocks in
// memory, and the others are fetched a second time. Otherwise a host that closes a
// gap of a day, or a peer that invents one, would need gigabytes: a block has up to
// 341 reports.
type way struct {
	path []leaf          // the blocks, newest first
	next jamq.HeaderHash // the parent of the last one
	held []jamq.Block    // the last ones of path, or none
	size int             // of held when the last one was added, in bytes
	step int             // the number of blocks in the next request
}

// defaultMaxHeld is the size of the blocks that a way holds, in bytes.
const defaultMaxHeld = 8 << 20

// blocksPerRequest is the number of blocks per request. If they are too large
// for an answer, the feed requests a quarter of them, and so on down to one.
const blocksPerRequest = 64

// add adds a block, which is the parent of the last one. If the blocks that the way
// holds would be larger than most, it holds the new one only.
func (w *way) add(b *jamq.Block, most int) {
	w.path = append(w.path, leaf{b.Hash, b.Slot})
	w.next = b.Parent
	size := sizeOf(b)
	if w.size += size; w.size > most {
		w.held, w.size = nil, size
	}
	w.held = append(w.held, *b)
}

// sizeOf returns an upper bound on the memory of a block, in bytes.
func sizeOf(b *jamq.Block) int {
	const block, report, hash = 256, 256, 32
	size := block + report*len(b.Reported) + hash*(len(b.Available)+len(b.Condemned)+len(b.Accumulated))
	for i := range b.Reported {
		size += hash * len(b.Reported[i].Prerequisites)
	}
	return size
}

// oldest returns the last block, which must be held.
func (w *way) oldest() *jamq.Block { return &w.held[len(w.held)-1] }

// pop removes the last block.
func (w *way) pop() {
	last := len(w.path) - 1
	w.next, w.path = w.path[last].hash, w.path[:last]
	w.held = w.held[:max(0, len(w.held)-1)]
}

// extend adds the way of an earlier delivery, which continues this one.
func (w *way) extend(earlier *way) {
	path := append(w.path, earlier.path...)
	*w = *earlier
	w.path = path
}

// walk returns the way from an announced head. It requests blocks from the head back
// to the first delivered one. If that fails, or the way is not delivered to its end,
// the next walk that meets it continues there.
func (f *Feed) walk(ctx context.Context, now *turn, head leaf) (*way, error) {
	w := &way{next: head.hash, step: blocksPerRequest}
	earlier := f.unfinished[now.peer.index]
	f.unfinished[now.peer.index] = w
	for f.tree.Get(w.next) == nil {
		if n := len(w.path); n >= f.cfg.MaxGap || n > 0 && w.path[n-1].slot <= f.tree.Oldest().Slot {
			delete(f.unfinished, now.peer.index)
			return nil, fmt.Errorf("%w: %s does not follow a block that was delivered since slot %d", ErrHistoryLost, head.hash, f.tree.Oldest().Slot)
		}
		if earlier != nil && len(earlier.path) > 0 && earlier.path[0].hash == w.next {
			for f.tree.Get(earlier.path[len(earlier.path)-1].hash) != nil { // delivered meanwhile
				earlier.pop()
			}
			w.extend(earlier)
			earlier = nil
			continue
		}
		more, err := now.request(func(peer int) ([]jamq.Block, error) { return f.fetchSome(ctx, peer, w.next, w.step) })
		if errors.Is(err, ErrTooLarge) && w.step > 1 { // large blocks
			w.step /= 4
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range more {
			if f.tree.Get(w.next) != nil {
				break
			}
			w.add(&more[i], f.maxHeld)
		}
	}
	if !f.tree.Get(w.next).Descends(f.tree.Finalized()) {
		delete(f.unfinished, now.peer.index)
		return nil, fmt.Errorf("%w: %s is on a fork that does not contain the finalized block", ErrHistoryLost, head.hash)
	}
	return w, nil
}

// refill fetches the oldest blocks of a way a second time if it holds none. After a
// failure it tries fewer at once, so that a slow peer gets to the end of a way too.
func (f *Feed) refill(ctx context.Context, now *turn, w *way) error {
	for len(w.held) == 0 {
		missing := w.path[max(0, len(w.path)-w.step):]
		held, err := f.fetchAgain(ctx, now, missing)
		switch {
		case err == nil:
			w.held = held
		case w.step == 1 || !errors.Is(err, ErrTooLarge):
			w.step = max(1, w.step/4)
			return err
		default:
			w.step /= 4
		}
	}
	return nil
}

// fetchAgain fetches the blocks on a path.
func (f *Feed) fetchAgain(ctx context.Context, now *turn, path []leaf) (blocks []jamq.Block, err error) {
	for len(blocks) < len(path) {
		rest := path[len(blocks):]
		more, err := now.request(func(peer int) ([]jamq.Block, error) { return f.fetchSome(ctx, peer, rest[0].hash, len(rest)) })
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	return blocks, nil
}

// turn is the time that a peer gets to serve blocks, before the others get theirs.
type turn struct {
	client *Client
	peer   *peer
	took   time.Duration
	served int
}

// request requests blocks, from the peer itself if it can serve them, unless it is
// too slow.
func (t *turn) request(ask func(peer int) ([]jamq.Block, error)) ([]jamq.Block, error) {
	if err := t.checkPace(); err != nil {
		return nil, err
	}
	begun := time.Now()
	blocks, err := anyPeer(t.client, t.peer, ask)
	t.took += time.Since(begun)
	t.served += len(blocks)
	return blocks, err
}

// checkPace returns an error if the peer is too slow: if it has taken longer than
// Config.RequestTimeout for each blocksPerRequest blocks that it has served, a part
// of them counting as all.
func (t *turn) checkPace() error {
	most := t.client.cfg.RequestTimeout * time.Duration(1+t.served/blocksPerRequest)
	if t.took > most {
		return fmt.Errorf("jamnps: %s has taken %v to serve blocks that it announced, want at most %v", t.peer.Addr, t.took.Round(time.Millisecond), most)
	}
	return nil
}
