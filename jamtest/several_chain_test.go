package jamtest_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

// This file and several_builder_test.go simulate builders of different operators for one rollup:
// they share the JAM chain and the users, and nothing else. docs/several-builders.md explains the
// rules and has the tables.

// scenario is one run.
type scenario struct {
	builders int
	// guard makes the service the one of package service. Without it the service executes each
	// block that JAM accumulates.
	guard bool
	// turn is the length of a builder's turn in slots, 0 for no schedule. In the last quiet slots
	// of its turn a builder makes no block, so that those on their way arrive before the next turn.
	turn, quiet jamq.Slot
	// faults makes the chain lose packages and reports, skip slots, and fork.
	faults bool
	// down is the number of builders that do nothing, the last ones.
	down int
	seed uint64
}

const (
	trafficSlots = 200 // in these, users send transactions
	settleSlots  = 300 // after these, a transaction that is not final is lost
	txsPerSlot   = 2
	maxTxs       = 16 // in one block
)

// rollupBlock is a block of the rollup as its builder executed it.
type rollupBlock struct {
	proof.Commitment
	Author int
	Txs    []int // transactions are numbered in the order of their arrival
}

// sentPackage is a package that a builder has made, and its block.
type sentPackage struct {
	jamtest.Package
	block *rollupBlock
}

// applied is a block that the service has executed, in a slot.
type applied struct {
	*rollupBlock
	slot jamq.Slot
}

// several is a JAM chain with a rollup of several builders.
type several struct {
	scenario
	chain    *jamtest.Chain
	oracle   *jamtest.Oracle
	working  []*severalBuilder // without those that are down
	recent   []jamq.Block      // the final block and its descendants
	arrived  []jamq.Slot       // of each transaction
	executed int               // blocks, by their builders
	// sent has the packages of all builders. They read the blocks of each other in it, as from
	// JAM's data availability.
	sent map[jamq.PackageHash]sentPackage
	// applied has the blocks that the service has executed up to a JAM block, in order.
	applied map[jamq.HeaderHash][]applied
}

func newSeveral(s scenario) (*several, error) {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), s.seed)
	if s.faults {
		cfg.LossProbability, cfg.SkipProbability, cfg.UnavailableProbability = 0.1, 0.1, 0.02
		cfg.ForkProbability, cfg.MaxForkDepth = 0.03, 2
	}
	if s.guard {
		var err error
		if cfg.Genesis, err = (service.Genesis{Service: rollup}).Entries(); err != nil {
			return nil, err
		}
	}
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	w := &several{
		scenario: s, chain: chain, oracle: jamtest.NewOracle(rollup, execution),
		sent: make(map[jamq.PackageHash]sentPackage), applied: make(map[jamq.HeaderHash][]applied),
	}
	w.oracle.Guarded = s.guard
	for i := range s.builders - s.down {
		w.working = append(w.working, &severalBuilder{several: w, index: i})
	}
	return w, nil
}

// run lets users send transactions and builders work until all is final.
func (w *several) run() error {
	for slot := 0; slot < trafficSlots || slot < trafficSlots+settleSlots && !w.settled(); slot++ {
		if slot < trafficSlots {
			for range txsPerSlot {
				w.oracle.Expect(fmt.Sprint(len(w.arrived)))
				w.arrived = append(w.arrived, w.chain.Slot())
			}
		}
		update := w.chain.Advance()
		w.oracle.Observe(update)
		for _, b := range update.Imported {
			if err := w.follow(b); err != nil {
				return err
			}
		}
		w.recent = slices.DeleteFunc(append(w.recent, update.Imported...), func(b jamq.Block) bool {
			return !w.chain.Contains(b.Hash, update.Finalized)
		})
		for i := range w.working { // in turns, so that none is always the first
			if err := w.working[(i+slot)%len(w.working)].act(update); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled reports whether all transactions are executed on the final chain, and no builder has a
// block that is not final.
func (w *several) settled() bool {
	busy := func(b *severalBuilder) bool { return b.queue != nil && b.queue.Pending() > 0 }
	return w.result().lost == 0 && !slices.ContainsFunc(w.working, busy)
}

// follow finds what the service has executed in a JAM block. With the guard it reads the service's
// entries, as a builder does.
func (w *several) follow(b jamq.Block) error {
	list := slices.Clip(w.applied[b.Parent])
	if !w.guard {
		for _, pkg := range b.Accumulated {
			list = append(list, applied{w.sent[pkg].block, b.Slot})
		}
		w.applied[b.Hash] = list
		return nil
	}
	read := func(key string) []byte {
		value, _ := w.chain.Value(rollup, b.Hash, []byte(key)) // nil if it fails
		return value
	}
	last, err := service.Last(read)
	if err != nil {
		return err
	}
	for i := uint64(len(list)); i < last.Number; i++ {
		entry := read(string(service.EntryKey(i)))
		list = append(list, applied{w.sent[jamq.PackageHash(entry[:common.HashLength])].block, b.Slot})
	}
	w.applied[b.Hash] = list
	return nil
}

// inTurn reports whether a builder may send now, and whether it may also make blocks.
func (w *several) inTurn(index int) (sends, makes bool) {
	if w.turn == 0 {
		return true, true
	}
	slot := w.chain.Slot()
	sends = int(slot/w.turn)%w.builders == index
	return sends, sends && slot%w.turn < w.turn-w.quiet
}

// execute makes a block of transactions on a parent. Its root depends on its author, which gets the
// fees.
func (w *several) execute(author int, parent proof.Commitment, txs []int) *rollupBlock {
	w.executed++
	root := sha256.Sum256(fmt.Append(parent.PostRoot[:], author, txs))
	c := proof.Commitment{Number: parent.Number + 1, Hash: root, PreRoot: parent.PostRoot, PostRoot: root}
	return &rollupBlock{Commitment: c, Author: author, Txs: txs}
}

func (b *rollupBlock) payload() ([]byte, error) {
	body, err := json.Marshal(b)
	return append(service.EncodeHeader(b.Commitment), body...), err
}

// decodeRollupBlock is the reverse of payload.
func decodeRollupBlock(payload []byte) (*rollupBlock, error) {
	b := new(rollupBlock)
	return b, json.Unmarshal(payload[service.HeaderSize:], b)
}

// execution returns the content of a payload for the oracle.
func execution(payload []byte) jamtest.Execution {
	b, err := decodeRollupBlock(payload)
	if err != nil {
		panic(err) // rollupBlock.payload made it
	}
	e := jamtest.Execution{Number: b.Number, PreRoot: b.PreRoot.Hex(), PostRoot: b.PostRoot.Hex()}
	for _, tx := range b.Txs {
		e.Txs = append(e.Txs, fmt.Sprint(tx))
	}
	return e
}

// result has the costs of a run. They can be added to those of other runs.
type result struct {
	// reports are the packages that took a core, and useful those that executed a transaction for
	// the first time.
	reports, useful int
	// executed are the blocks that builders executed, and kept those of them that the service
	// executed.
	executed, kept int
	// delays are the slots from the arrival of a transaction to its execution by the service.
	delays []int
	// twice counts the executions of transactions after their first one, and lost the transactions
	// that were not executed.
	twice, lost int
}

// result measures a run on the final chain.
func (w *several) result() (r result) {
	final := w.applied[w.chain.Finalized().Hash]
	count := make([]int, len(w.arrived))
	kept := make(map[*rollupBlock]bool)
	for _, b := range final {
		useful := false
		for _, tx := range b.Txs {
			if count[tx]++; count[tx] > 1 {
				r.twice++
				continue
			}
			useful = true
			r.delays = append(r.delays, int(b.slot-w.arrived[tx]))
		}
		if useful {
			r.useful++
		}
		kept[b.rollupBlock] = true
	}
	r.executed, r.kept, r.lost = w.executed, len(kept), len(count)-len(r.delays)
	for b, ok := w.chain.Finalized(), true; ok; b, ok = w.chain.Block(b.Parent) {
		r.reports += len(b.Reported)
	}
	return r
}
