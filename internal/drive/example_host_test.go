package drive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// words is the bundle of a rollup without an EVM, whose transactions are words.
type words struct {
	// Parent is the commitment of the block on which this one was executed.
	Parent common.Hash
	// Number is the number of the block. Serial differs in each execution, so a
	// block that is executed again after a failure has another commitment.
	Number, Serial uint64
	Words          []string
	// Context is the refine context of a built package.
	Context *jamq.RefineContext
}

func (b words) commitment() common.Hash {
	b.Context = nil
	return crypto.Keccak256Hash(mustEncode(b))
}

func mustEncode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible for these types
	}
	return raw
}

// decodeWords decodes a bundle of the queue.
func decodeWords(raw []byte) (b words) {
	if err := json.Unmarshal(raw, &b); err != nil {
		panic(err) // the host has encoded it
	}
	return b
}

// hostState is the part of the host that must survive a kill. It is stored as a
// whole.
type hostState struct {
	Pool   []string // transactions that are in no block
	Blocks []words  // executed and not known to be final, oldest first
	Final  words    // the last final block; the first one is the genesis
	Serial uint64   // of the last execution
}

// wordHost is the host of a rollup. It can be killed at any instruction, and any
// block may fail.
type wordHost struct {
	runner *drive.Runner
	driver *jamtest.Driver
	save   func(hostState) // stores the state before it returns

	mu    sync.Mutex
	state hostState
}

// Example_host shows a whole host: it stores its blocks, takes failed ones back,
// and continues after a kill.
func Example_host() {
	chain, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 1))
	if err != nil {
		panic(err)
	}
	// A real host loads its state from its database, and uses journal.Open.
	h := &wordHost{driver: jamtest.NewDriver(chain), save: func(hostState) {}, state: hostState{Pool: []string{"a", "b", "c"}}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.open(ctx, submit.DefaultConfig(jamq.Tiny()), chain.Best(), new(journal.Memory), h, h); err != nil {
		panic(err)
	}
	defer h.runner.Stop()
	err = h.produce(ctx)
	stats, _ := h.runner.Stats(ctx)
	fmt.Println("next block:", stats.Next, err)
	// Output: next block: 3 <nil>
}

// open starts the host from its stored state and the runner's journal.
func (h *wordHost) open(ctx context.Context, cfg submit.Config, root jamq.Block, j drive.Journal, b drive.Builder, s drive.Submitter) (err error) {
	cfg.Observe = h.observe
	d := drive.Durability{Journal: j, SnapshotEvery: 40}
	if h.runner, err = drive.OpenRunner(cfg, root, d, b, s); err != nil {
		return err
	}
	if err := h.reconcile(h.runner.Recovered()); err != nil {
		return err
	}
	return h.runner.Start(ctx)
}

// reconcile compares the stored blocks with the bundles in the queue. The queue
// decides: it has forgotten final blocks, and it never received a block whose
// process was killed before Enqueue.
func (h *wordHost) reconcile(found submit.Recovery) error {
	oldest, queued := found.Next, map[common.Hash]bool{}
	for _, info := range found.Bundles {
		oldest = min(oldest, info.Number)
		queued[info.Commitment] = true
	}
	for _, b := range slices.Clone(h.state.Blocks) {
		switch {
		case b.Number < oldest:
			h.finalized(b.commitment())
		case !queued[b.commitment()]:
			h.takeBack(b.commitment())
		}
	}
	if head := h.head().commitment(); found.Head != (common.Hash{}) && found.Head != head {
		return fmt.Errorf("the queue ends with block %s and the host with %s: restore both from one backup", found.Head, head)
	}
	return nil
}

// observe follows the queue. The host is on disk when it returns.
func (h *wordHost) observe(o submit.Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := o.Effect.(type) {
	case bundlequeue.Changed:
		if e.To == bundlequeue.Finalized {
			h.finalized(e.Commitment)
		}
	case bundlequeue.Failed:
		h.takeBack(e.Commitment)
	}
}

func (h *wordHost) find(commitment common.Hash) int {
	return slices.IndexFunc(h.state.Blocks, func(b words) bool { return b.commitment() == commitment })
}

// finalized forgets the oldest block.
func (h *wordHost) finalized(commitment common.Hash) {
	if h.find(commitment) == 0 {
		h.state.Final, h.state.Blocks = h.state.Blocks[0], h.state.Blocks[1:]
		h.save(h.state)
	}
}

// takeBack undoes a block and all blocks after it, because their pre-states do
// not exist any more. Blocks that were taken back with an earlier one are
// unknown.
func (h *wordHost) takeBack(commitment common.Hash) {
	i := h.find(commitment)
	if i < 0 {
		return
	}
	var back []string
	for _, b := range h.state.Blocks[i:] {
		back = append(back, b.Words...)
	}
	h.state.Pool, h.state.Blocks = append(back, h.state.Pool...), h.state.Blocks[:i]
	h.save(h.state)
}

// head returns the last block.
func (h *wordHost) head() words {
	if n := len(h.state.Blocks); n > 0 {
		return h.state.Blocks[n-1]
	}
	return h.state.Final
}

// produce makes blocks while there are transactions and the queue has room.
func (h *wordHost) produce(ctx context.Context) error {
	for {
		b, ok := h.execute()
		if !ok {
			return nil
		}
		if more, err := h.enqueue(ctx, b); err != nil || !more {
			return err
		}
	}
}

// enqueue passes an executed block to the queue. It reports whether another one
// can follow.
func (h *wordHost) enqueue(ctx context.Context, b words) (more bool, err error) {
	_, err = h.runner.EnqueueNext(ctx, b.Parent, b.commitment(), mustEncode(b))
	switch {
	case errors.Is(err, bundlequeue.ErrWrongParent):
		return true, nil // an earlier block failed meanwhile, and observe took both back
	case errors.Is(err, bundlequeue.ErrQueueFull):
		h.mu.Lock()
		h.takeBack(b.commitment())
		h.mu.Unlock()
		return false, nil
	}
	return err == nil, err
}

// execute moves transactions from the pool to a new block.
func (h *wordHost) execute() (b words, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(2, len(h.state.Pool))
	if n == 0 {
		return b, false
	}
	h.state.Serial++
	head := h.head()
	b = words{Parent: head.commitment(), Number: head.Number + 1, Serial: h.state.Serial, Words: slices.Clone(h.state.Pool[:n])}
	h.state.Pool, h.state.Blocks = slices.Clone(h.state.Pool[n:]), append(slices.Clip(h.state.Blocks), b)
	h.save(h.state)
	return b, true
}

// Build implements drive.Builder.
func (h *wordHost) Build(_ context.Context, r bundlequeue.Build) (drive.Package, error) {
	recent, lookup := h.driver.Anchors()
	c, err := anchor.Pick(recent, r.Anchor.Hash, lookup, r.Prerequisites)
	if err != nil {
		return drive.Package{}, err
	}
	b := decodeWords(r.Bundle)
	b.Context = &c
	return drive.Package{Hash: b.pack().Hash, Context: c, Bundle: mustEncode(b)}, nil
}

// Submit implements drive.Submitter.
func (h *wordHost) Submit(_ context.Context, r bundlequeue.Send) error {
	return h.driver.Submit(decodeWords(r.Bundle).pack(), r.Core, r.Attempt)
}

// pack returns the package of a built block.
func (b words) pack() jamtest.Package { return jamtest.NewPackage(1, *b.Context, mustEncode(b.Words)) }
