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
	"github.com/jamq/jamq/submit/codec"
)

// branch is the list of undelivered blocks from an announced head back to the first
// delivered block, which is not in the list. The feed fetches the list from its newest
// block to its oldest, and delivers it in the opposite order.
//
// A long branch keeps only its oldest blocks in memory. The feed fetches the newer ones a
// second time when it delivers them. Otherwise a host that closes a gap of a day, or a
// peer that invents such a gap, would need gigabytes, because a block has up to 341
// reports.
type branch struct {
	path []mark          // the blocks, newest first
	next jamq.HeaderHash // the parent of the last block in path
	held []codec.Effect  // the last blocks of path, or none
	size int             // size of held in bytes when a block was last added
	most int             // the number of blocks in the next request
}

// mark is a block on a branch: its hash, its slot and its size in bytes.
type mark struct {
	leaf
	size int
}

// defaultMaxHeld limits the fetched blocks in memory for one announced head, in bytes.
const defaultMaxHeld = 8 << 20

// blocksPerRequest is the greatest number of blocks in one request. If they do not fit
// into an answer, the feed requests a quarter of them, and so on down to one block.
const blocksPerRequest = 64

// add adds a fetched block, the parent of the oldest block so far.
func (br *branch) add(e *codec.Effect, most int) {
	size := sizeOf(e)
	b := &e.Block
	br.path = append(br.path, mark{leaf{b.Hash, b.Slot}, size})
	br.next = b.Parent
	// If the blocks in memory exceed most bytes, only the new one stays there.
	if br.size += size; br.size > most {
		br.held, br.size = nil, size
	}
	br.held = append(br.held, *e)
}

// sizeOf returns an upper bound on the memory of a block, in bytes.
func sizeOf(e *codec.Effect) int {
	const effect, report, hash, count = 320, 256, 32, 2
	b := &e.Block
	size := effect + count*cap(e.Assured) + report*cap(b.Reported) + hash*cap(b.Condemned)
	for i := range b.Reported {
		size += hash * cap(b.Reported[i].Prerequisites)
	}
	return size
}

// oldest returns the oldest block, which is delivered next and must be in memory.
func (br *branch) oldest() *codec.Effect { return &br.held[len(br.held)-1] }

// truncate keeps only the newest n blocks, which must be fewer than all.
func (br *branch) truncate(n int) {
	held := max(0, len(br.held)-(len(br.path)-n))
	clear(br.held[held:]) // so that their memory can be freed
	br.held = br.held[:held]
	br.next, br.path = br.path[n].hash, br.path[:n]
}

// pop removes the oldest block, which has been delivered.
func (br *branch) pop() { br.truncate(len(br.path) - 1) }

// shrink reduces the number of blocks in the next request to a quarter. It returns
// false if the number is already one.
func (br *branch) shrink() bool {
	was := br.most
	br.most = max(1, br.most/4)
	return br.most < was
}

// join appends an earlier branch that continues at this branch's oldest block.
func (br *branch) join(earlier *branch) {
	path := append(br.path, earlier.path...)
	*br = *earlier
	br.path = path
}

// grow doubles the number of blocks in the next request, up to blocksPerRequest.
func (br *branch) grow() { br.most = min(2*br.most, blocksPerRequest) }

// branches are a peer's branches that are not fetched or delivered completely. Later calls
// of fetchBranch continue them. Together they keep no more blocks in memory than a single
// branch may.
type branches []*branch

// maxBranches is the maximum number of unfinished branches of a peer. Two are needed: a
// long one, and one from a newer head that has not yet reached the long one.
const maxBranches = 2

// from returns the branch whose newest block has the given hash, or nil.
func (all branches) from(at jamq.HeaderHash) *branch {
	for _, br := range all {
		if len(br.path) > 0 && br.path[0].hash == at {
			return br
		}
	}
	return nil
}

// keep adds a branch, unless it is already there.
func (all *branches) keep(br *branch, most int) {
	all.forget(br)
	room := most - br.size
	for _, other := range *all {
		// All unfinished branches of a peer share a limit of memory. The older ones drop their
		// fetched blocks, so that the new one has room.
		if other.size > room {
			other.held, other.size = nil, 0
		}
		room -= other.size
	}
	if len(*all) == maxBranches {
		// The shortest branch has cost the least to fetch.
		all.forget(slices.MinFunc(*all, func(a, b *branch) int { return cmp.Compare(len(a.path), len(b.path)) }))
	}
	*all = append(*all, br)
}

// forget removes a branch, if it is in the list.
func (all *branches) forget(br *branch) {
	*all = slices.DeleteFunc(*all, func(other *branch) bool { return other == br })
}

// fetchBranch fetches the undelivered blocks from an announced head back to the
// delivered ones.
func (f *Feed) fetchBranch(ctx context.Context, now *turn, head leaf) (*branch, error) {
	br := &branch{next: head.hash, most: blocksPerRequest}
	// If the connection fails in the middle, the part that was fetched is kept, and a later
	// call continues there.
	err := f.extend(ctx, now, br)
	switch {
	// The queue can never take this branch: it is longer than FeedConfig.MaxGap, or it does
	// not contain the finalized block.
	case errors.Is(err, feed.ErrApart):
		f.unfinished[now.peer.index].forget(br)
	case err == nil && !f.tree.Get(br.next).Descends(f.tree.Finalized()):
		f.unfinished[now.peer.index].forget(br)
		err = f.chain().Exclude(head.hash, head.slot)
	}
	return br, err
}

// extend requests the ancestors of br's oldest block until it reaches a delivered block.
func (f *Feed) extend(ctx context.Context, now *turn, br *branch) error {
	unfinished := &f.unfinished[now.peer.index]
	for f.tree.Get(br.next) == nil {
		if earlier := unfinished.from(br.next); earlier != nil {
			delivered := slices.IndexFunc(earlier.path, func(at mark) bool { return f.tree.Get(at.hash) != nil })
			if delivered > 0 { // some of its blocks were delivered meanwhile
				earlier.truncate(delivered)
			}
			unfinished.forget(earlier)
			br.join(earlier)
			unfinished.keep(br, f.maxHeld)
			continue
		}
		switch n := len(br.path); {
		case n > 0 && br.path[n-1].slot <= f.tree.Oldest().Slot:
			return f.chain().Exclude(br.path[0].hash, br.path[0].slot)
		case n >= f.cfg.MaxGap:
			return fmt.Errorf("%w: block %s, %d blocks before the head, does not follow one that was delivered since slot %d", feed.ErrApart, br.next, n, f.tree.Oldest().Slot)
		}
		more, err := f.request(ctx, now, br.next, br.most)
		if errors.Is(err, ErrTooLarge) && br.shrink() {
			continue
		}
		if err != nil {
			return err
		}
		br.grow()
		for i := range more {
			if f.tree.Get(br.next) != nil || unfinished.from(br.next) != nil {
				break
			}
			br.add(&more[i], f.maxHeld)
		}
		unfinished.keep(br, f.maxHeld)
	}
	return nil
}

// refill fetches the next blocks of a long branch a second time, because their bodies were
// dropped to save memory.
func (f *Feed) refill(ctx context.Context, now *turn, br *branch) error {
	for len(br.held) == 0 {
		held, err := f.fetchAgain(ctx, now, br)
		if err == nil {
			br.held, br.size = held, f.maxHeld
			f.unfinished[now.peer.index].keep(br, f.maxHeld)
			br.grow()
			return nil
		}
		// Ask for fewer blocks from now on, whatever the failure was. Even a slow peer then
		// delivers all blocks in the end.
		if smaller := br.shrink(); !smaller || !errors.Is(err, ErrTooLarge) {
			return err
		}
	}
	return nil
}

// fetchAgain fetches the oldest blocks of a branch, whose hashes are known but whose
// bodies were dropped. It fetches as many as fit into one request and into memory.
func (f *Feed) fetchAgain(ctx context.Context, now *turn, br *branch) (blocks []codec.Effect, err error) {
	first := len(br.path) - 1
	size := br.path[first].size
	for first > 0 && len(br.path)-first < br.most && size+br.path[first-1].size <= f.maxHeld {
		first--
		size += br.path[first].size
	}
	for missing := br.path[first:]; len(missing) > 0; {
		more, err := f.request(ctx, now, missing[0].hash, len(missing))
		if err != nil {
			return nil, err
		}
		blocks, missing = append(blocks, more...), missing[len(more):]
	}
	return blocks, nil
}

// request fetches a block and some of its ancestors. It asks the peer that has announced
// the block first, and then the others.
func (f *Feed) request(ctx context.Context, now *turn, from jamq.HeaderHash, most int) ([]codec.Effect, error) {
	if err := now.checkPace(); err != nil {
		return nil, err
	}
	begun := time.Now()
	blocks, err := anyPeer(f.client, now.peer, func(peer int) ([]codec.Effect, error) { return f.fetchSome(ctx, peer, from, most) })
	took := time.Since(begun)
	// Even if another peer has answered, the time counts against the peer whose announcement
	// made the feed fetch the blocks.
	now.took += took
	f.loop.NoteAnswer(took)
	if err != nil {
		return nil, err
	}
	now.walked += len(blocks)
	return blocks, nil
}

// turn measures how long the feed has taken to fetch the blocks that one peer has
// announced. When the peer's time is used up, the feed continues with the next peer.
type turn struct {
	timeout   time.Duration // Config.RequestTimeout
	peer      *peer
	took      time.Duration // by all requests
	walked    int           // blocks of the current head that were fetched
	delivered int           // delivered blocks of all heads
}

// maxWalked limits how many undelivered blocks of a head earn the peer more time.
// Further blocks count only after they were delivered, because a peer can invent
// blocks.
const maxWalked = 4 * blocksPerRequest

// checkPace returns an error if a peer is too slow.
func (t *turn) checkPace() error {
	// A peer may take one time-out, and one more for every blocksPerRequest blocks. Of
	// the undelivered blocks only maxWalked count, because a peer could otherwise gain
	// any amount of time with invented blocks.
	served := t.delivered + min(t.walked, maxWalked)
	if most := t.timeout * time.Duration(1+served/blocksPerRequest); t.took > most {
		return fmt.Errorf("jamnps: %s has taken %v to serve blocks that it announced, want at most %v", t.peer.Addr, t.took.Round(time.Millisecond), most)
	}
	return nil
}
