// Minimal is a builder without package builder: the loop around the bundle queue,
// complete and safe against a crash at any instruction. Five words become bundles on
// a simulated JAM chain that loses a third of the submissions, and the process dies
// once on the way.
//
// The queue is a value without goroutine and clock. The loop gives it events, writes
// each one down, and only then carries out the effects:
//
//	event → Queue.Step → log.Append → follow (the host's state) → build, send → event
//
// After a crash the same records go through the same functions.
//
//	go run ./examples/minimal
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
)

const service = 7

func main() {
	if err := run(os.Stdout, &mortal{left: 30}); err != nil { // it dies at the thirtieth record
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs builders on one log and one JAM chain until all words are final. A builder
// that dies is followed by another one.
func run(out io.Writer, log *mortal) error {
	_, err := play(out, log)
	return err
}

// play is run, and returns the chain.
func play(out io.Writer, log *mortal) (*jamtest.Chain, error) {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.LossProbability = 0.3
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	jam := &network{chain: chain, genesis: chain.Best()}
	for {
		b, err := open(out, jam, log)
		if err == nil {
			err = b.run()
		}
		if !errors.Is(err, errDied) {
			return chain, err
		}
		fmt.Fprintf(out, "slot %2d: the process has died and starts again\n", chain.Slot())
	}
}

// network is the JAM chain with all that it has delivered, as a node keeps it.
type network struct {
	chain   *jamtest.Chain
	genesis jamq.Block
	updates []jamtest.Update
}

// builder is one process.
type builder struct {
	out     io.Writer
	jam     *network
	log     *mortal
	queue   *bundlequeue.Queue
	waiting []string             // words that are in no bundle: the state of this host
	todo    []bundlequeue.Effect // requests that are not carried out
}

// open returns a builder that continues at the end of the log.
func open(out io.Writer, jam *network, log *mortal) (*builder, error) {
	queue, err := bundlequeue.New(bundlequeue.DefaultConfig(jamq.Tiny()), jam.genesis)
	if err != nil {
		return nil, err
	}
	b := &builder{out: out, jam: jam, log: log, queue: queue, waiting: []string{"one", "two", "three", "four", "five"}}
	var records [][]byte
	err = log.Replay(func(record []byte) error { records = append(records, bytes.Clone(record)); return nil })
	if err == nil {
		err = bundlequeue.Replay(queue, records, b.follow)
	}
	b.todo = queue.Open() // a package may be sent twice, which is harmless
	return b, err
}

// run delivers the chain to the queue, and puts the words into it.
func (b *builder) run() error {
	for i := 0; ; i++ {
		for len(b.waiting) > 0 && b.queue.CanEnqueue() {
			if err := b.step(bundlequeue.Enqueue{Number: b.queue.Next(), Bundle: []byte(b.waiting[0])}); err != nil {
				return err
			}
		}
		if err := b.carryOut(); err != nil || b.queue.Pending() == 0 {
			return err
		}
		if i == len(b.jam.updates) { // all others were delivered before the process died
			b.jam.updates = append(b.jam.updates, b.jam.chain.Advance())
		}
		update := b.jam.updates[i]
		for _, block := range update.Imported {
			if err := b.step(bundlequeue.Imported{Block: block, Best: update.Best}); err != nil {
				return err
			}
		}
		for _, event := range []bundlequeue.Event{bundlequeue.FinalizedBlock{Hash: update.Finalized}, bundlequeue.Tick{}} {
			if err := b.step(event); err != nil && !errors.Is(err, chainview.ErrOld) {
				return err
			}
		}
	}
}

// step gives an event to the queue and writes it down. The effects count from then on.
func (b *builder) step(event bundlequeue.Event) error {
	now := jamq.NewSlotClock(jamq.Tiny()).Start(b.jam.chain.Slot())
	effects, err := b.queue.Step(now, event)
	if err != nil {
		return err
	}
	record, err := bundlequeue.AppendRecord(nil, now, event)
	if err != nil {
		return err
	}
	if err := b.log.Append(record); err != nil {
		return err // the process ends here, because the queue is ahead of the log
	}
	b.follow(event, effects)
	b.todo = append(b.todo, effects...)
	return nil
}

// follow derives the state of the host from a step, in the same way before a crash and
// after it: a word leaves when it is enqueued, and comes back when its bundle fails.
func (b *builder) follow(event bundlequeue.Event, effects []bundlequeue.Effect) {
	if _, ok := event.(bundlequeue.Enqueue); ok {
		b.waiting = b.waiting[1:]
	}
	back := 0
	for _, effect := range effects {
		if failed, ok := effect.(bundlequeue.Failed); ok {
			b.waiting = slices.Insert(b.waiting, back, string(failed.Bundle))
			back++
		}
	}
}

// carryOut carries out the requests, whose answers are events again.
func (b *builder) carryOut() error {
	for len(b.todo) > 0 {
		effect := b.todo[0]
		b.todo = b.todo[1:]
		var answer bundlequeue.Event
		switch e := effect.(type) {
		case bundlequeue.Build:
			answer = b.build(&e)
		case bundlequeue.Send: // any attempt may be lost
			p, err := decode(e.Bundle)
			if err == nil {
				err = b.jam.chain.Submit(p, e.Core, e.Attempt)
			}
			answer = bundlequeue.Sent{Ticket: e.Ticket, OK: err == nil}
		default: // notices: a state changed, a version died
			fmt.Fprintf(b.out, "slot %2d: %s\n", b.jam.chain.Slot(), effect)
			continue
		}
		if err := b.step(answer); err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			return err
		}
	}
	return nil
}

// build makes a package. A real builder executes the bundle and encodes a work package.
func (b *builder) build(e *bundlequeue.Build) bundlequeue.Event {
	refine, err := anchor.Pick(b.jam.chain.Anchors(), e.Anchor.Hash, b.jam.chain.LookupAnchor(), e.Prerequisites)
	if err != nil {
		return bundlequeue.BuildFailed{Ticket: e.Ticket}
	}
	p := jamtest.NewPackage(service, refine, e.Bundle)
	return bundlequeue.Built{Ticket: e.Ticket, Package: p.Hash, Context: refine, Bundle: encode(refine, e.Bundle)}
}

// mortal is a log in memory that kills its process once.
type mortal struct {
	journal.Memory
	left    int  // records until the process dies
	written bool // the last record is in the log although it has no answer
}

var errDied = errors.New("the process has died")

// Append writes a record. The process that dies has either written it or not.
func (m *mortal) Append(records ...[]byte) error {
	if m.left--; m.left != 0 {
		return m.Memory.Append(records...)
	}
	if m.written {
		_ = m.Memory.Append(records...)
	}
	return errDied
}
