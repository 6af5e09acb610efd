// Package simnet provides a simulated JAM chain as a builder.Network, for
// programs and tests that have no JAM node.
//
//	network, err := simnet.Tiny(100*time.Millisecond, service, nil)
//	go network.Run(ctx, nil)
//	b, err := builder.Open(ctx, builder.DefaultConfig(network.Spec()), log, rollup, network)
package simnet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit"
)

// Network is a simulated JAM chain as a builder.Network. Run drives the chain. Several
// builders can use a network one after the other: each gets the blocks after the last
// final block that it knows, if this block is not older than the 8,192 slots that the
// network keeps. All methods are safe for concurrent use.
type Network struct {
	service jamq.ServiceID
	spec    jamq.ChainSpec
	driver  *jamtest.Driver
	root    jamq.Block

	mu      sync.Mutex
	history []jamtest.Update // without payloads
	dropped int              // updates before history
	moved   chan struct{}    // closed when history grows
}

var (
	_ builder.Network  = (*Network)(nil)
	_ builder.Receiver = (*Network)(nil)
)

// New returns a network for the rollup with the given service on a simulated
// chain. From then on, only the network may use chain.
func New(chain *jamtest.Chain, service jamq.ServiceID) *Network {
	return &Network{
		service: service, spec: chain.Config().Spec, root: chain.Best(), driver: jamtest.NewDriver(chain), moved: make(chan struct{}),
	}
}

// Tiny returns a network with the constants of the tiny chain and with slots of
// the given length. The chain begins at the current slot. If change is not nil,
// Tiny calls it with the configuration of the chain, for example to add faults.
func Tiny(slot time.Duration, service jamq.ServiceID, change func(*jamtest.Config)) (*Network, error) {
	spec := jamq.Tiny()
	spec.SlotDuration = slot
	cfg := jamtest.DefaultConfig(spec, 1)
	cfg.StartSlot = jamq.NewSlotClock(spec).SlotAt(time.Now())
	if change != nil {
		change(&cfg)
	}
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	return New(chain, service), nil
}

// kept is the minimum number of slots that a network remembers.
const kept = 8192

// Spec returns the constants of the chain.
func (n *Network) Spec() jamq.ChainSpec { return n.spec }

// Driver returns the driver of the chain, so that a test can change the chain's faults.
func (n *Network) Driver() *jamtest.Driver { return n.driver }

// Run advances the chain in real time, slot by slot, until ctx ends. If see is
// not nil, Run calls it with each update of the chain.
func (n *Network) Run(ctx context.Context, see func(jamtest.Update)) error {
	return n.driver.Run(ctx, func(u jamtest.Update) {
		if see != nil {
			see(u)
		}
		u.Imported = n.marked(u.Imported)
		n.mu.Lock()
		defer n.mu.Unlock()
		u.Final = nil
		if n.history = append(n.history, u); len(n.history) > 2*kept {
			n.dropped += len(n.history) - kept
			n.history = slices.Clone(n.history[len(n.history)-kept:])
		}
		close(n.moved)
		n.moved = make(chan struct{})
	})
}

// marked corrects Block.Accumulated so that blocks look as a node shows them.
func (n *Network) marked(blocks []jamq.Block) []jamq.Block {
	n.driver.View(func(chain *jamtest.Chain) {
		if chain.Config().Genesis == nil {
			return
		}
		blocks = slices.Clone(blocks)
		for i := range blocks {
			// JAM can accumulate a package although the service ignores its rollup
			// block or keeps it for later. The package counts as accumulated only in
			// the JAM block in which the service has stored its mark.
			blocks[i].Accumulated = n.applied(chain, blocks[i])
		}
	})
	return blocks
}

// applied returns the packages whose rollup blocks the service has executed in the given
// JAM block.
func (n *Network) applied(chain *jamtest.Chain, in jamq.Block) (packages []jamq.PackageHash) {
	value := func(key []byte) []byte {
		value, _ := chain.Value(n.service, in.Hash, key) // the chain still has the block
		return value
	}
	last, _ := service.Last(func(key string) []byte { return value([]byte(key)) })
	// The newest rollup blocks were executed last, so search from the newest one back.
	for number := last.Number; number > 0; number-- {
		entry := value(service.EntryKey(number - 1))
		if len(entry) < common.HashLength {
			break // the rollup block is the genesis
		}
		pkg := jamq.PackageHash(entry[:common.HashLength])
		if !bytes.Equal(value(service.MarkKey(pkg)), binary.LittleEndian.AppendUint32(nil, uint32(in.Slot))) {
			break // the rollup block was applied in an earlier JAM block
		}
		packages = append(packages, pkg)
	}
	slices.Reverse(packages)
	return packages
}

// Root implements builder.Network. It returns the newest final block.
func (n *Network) Root(context.Context) (jamq.Block, error) {
	_, finalized := n.driver.Heads()
	return finalized, nil
}

// Received implements builder.Receiver. On a chain with services it returns the
// number of the last block that the service has applied. On any other chain it
// returns how many of the accumulated packages the chain still remembers.
func (n *Network) Received(context.Context) (received uint64, err error) {
	n.driver.View(func(chain *jamtest.Chain) {
		head := chain.Best().Hash
		if chain.Config().Genesis == nil {
			var inbox []jamtest.Accumulation
			inbox, err = chain.Inbox(n.service, head)
			received = uint64(len(inbox))
			return
		}
		var last proof.Commitment
		last, err = service.Last(func(key string) []byte {
			value, _ := chain.Value(n.service, head, []byte(key))
			return value
		})
		received = last.Number
	})
	return received, err
}

// Accepted implements builder.Explainer: it returns the package with which JAM has
// accepted the block of a payload. If the simulated chain runs no services, that is the
// first accumulated package with the payload.
func (n *Network) Accepted(_ context.Context, payload []byte) (pkg jamq.PackageHash, err error) {
	_, finalized := n.driver.Heads()
	n.driver.View(func(chain *jamtest.Chain) {
		if chain.Config().Genesis != nil {
			pkg, err = service.Accepted(func(key string) []byte {
				value, _ := chain.Value(n.service, finalized.Hash, []byte(key))
				return value
			}, payload)
			return
		}
		var inbox []jamtest.Accumulation
		inbox, err = chain.Inbox(n.service, finalized.Hash)
		i := slices.IndexFunc(inbox, func(a jamtest.Accumulation) bool { return bytes.Equal(a.Payload, payload) })
		if i >= 0 {
			pkg = inbox[i].Hash
		}
	})
	if errors.Is(err, service.ErrOtherBlock) {
		err = fmt.Errorf("%w: %w", builder.ErrServiceInUse, err)
	}
	return pkg, err
}

// Pack implements builder.Network.
func (n *Network) Pack(_ context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	recent, lookup := n.driver.Anchors()
	refine, err := anchor.Pick(recent, at.Hash, lookup, at.Prerequisites)
	if err != nil {
		return builder.Package{}, err
	}
	return builder.Package{Hash: jamtest.NewPackage(n.service, refine, payload).Hash, Context: refine, Data: payload}, nil
}

// Send implements builder.Network.
func (n *Network) Send(_ context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	return n.driver.Submit(jamtest.NewPackage(n.service, pkg.Context, pkg.Data), core, attempt)
}

// Follow implements builder.Network. It delivers all updates after the last
// final block that the builder knows.
func (n *Network) Follow(ctx context.Context, recovered submit.Recovery, to submit.ChainSink) error {
	f := follower{to: to, since: recovered.Finalized.Hash}
	if f.since == n.root.Hash {
		f.since = jamq.HeaderHash{}
	}
	f.final = f.since
	var fed int
	if f.since != (jamq.HeaderHash{}) {
		var known bool
		if fed, known = n.find(f.since); !known {
			return fmt.Errorf("%w: it has no block %s", ErrOtherChain, f.since)
		}
	}
	for {
		n.mu.Lock()
		if fed < n.dropped {
			n.mu.Unlock()
			return fmt.Errorf("%w: %d slots are gone", ErrOtherChain, n.dropped-fed)
		}
		news, moved := n.history[fed-n.dropped:], n.moved
		n.mu.Unlock()
		for _, u := range news {
			if err := f.deliver(ctx, u); err != nil {
				return err
			}
		}
		fed += len(news)
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ErrOtherChain is wrapped by the error of Follow if the chain lacks JAM blocks that
// the builder's log names. The usual cause is a log of an earlier process, because a
// simulated chain ends with its process. Set builder.Config.NewChain to begin a new
// chain with such a log.
var ErrOtherChain = errors.New("simnet: the log is of another chain")

// find returns the number, from 0, of the retained update that delivered a block.
func (n *Network) find(hash jamq.HeaderHash) (number int, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, u := range n.history {
		if slices.ContainsFunc(u.Imported, func(b jamq.Block) bool { return b.Hash == hash }) {
			return n.dropped + i, true
		}
	}
	return 0, false
}

// follower passes the updates of a chain to a builder, beginning after the blocks that
// the builder already knows.
type follower struct {
	to submit.ChainSink
	// The chain delivers its updates from the start, but the builder already knows some of
	// them. Blocks up to since and finality up to final are skipped. Each field becomes zero
	// when that block was reached.
	since, final jamq.HeaderHash
}

func (f *follower) deliver(ctx context.Context, u jamtest.Update) error {
	for _, block := range u.Imported {
		if f.since != (jamq.HeaderHash{}) {
			if block.Hash == f.since {
				f.since = jamq.HeaderHash{}
			}
			continue
		}
		if err := f.to.Import(ctx, block, u.Best); err != nil {
			return err
		}
	}
	if f.final != (jamq.HeaderHash{}) {
		if u.Finalized == f.final {
			f.final = jamq.HeaderHash{}
		}
		return nil
	}
	return f.to.Finalize(ctx, u.Finalized)
}
