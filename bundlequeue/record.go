package bundlequeue

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/wire"
)

// recordVersion is the first byte of every record. The queue refuses records with a
// different version, because their format may differ.
const recordVersion = 6

// These bytes tell the kinds of records apart. Journals on disk contain them, so no byte
// may ever change its meaning.
const (
	kindReserve = iota
	kindEnqueue
	kindRelease
	kindRekey
	kindBuilt
	kindBuildFailed
	kindSent
	kindImported
	kindFinalizedBlock
	kindRetry
	kindTick
	kindGiveUp
	kindCores
	kindAdopt
	numKinds
)

// AppendRecord appends the record of one step to b: an event that Step has
// accepted, and its time. A driver writes the record to its journal before it
// carries out the effects of the step, so that it can repeat the step after a
// crash: see [Replay]. Records have no checksum, so the journal must detect damage
// by itself.
//
// If the type of the event is unknown, AppendRecord returns b unchanged and an
// error that wraps ErrUnknownEvent.
func AppendRecord(b []byte, now time.Time, ev Event) ([]byte, error) {
	out := wire.AppendInt(append(b, recordVersion), now.UnixNano())
	if out, ok := appendOrder(out, ev); ok {
		return out, nil
	}
	if out, ok := appendAnswer(out, ev); ok {
		return out, nil
	}
	if out, ok := appendEvidence(out, ev); ok {
		return out, nil
	}
	return b, fmt.Errorf("%w: %T", ErrUnknownEvent, ev)
}

// appendKind begins a record with its kind, followed by the given numbers.
func appendKind(b []byte, kind byte, numbers ...uint64) []byte {
	b = append(b, kind)
	for _, n := range numbers {
		b = wire.AppendUint(b, n)
	}
	return b
}

// appendOrder appends the record of an order of the host, such as Enqueue.
func appendOrder(b []byte, ev Event) ([]byte, bool) {
	switch ev := ev.(type) {
	case Reserve:
		b = appendKind(b, kindReserve, ev.Number)
	case Enqueue:
		b = appendKind(b, kindEnqueue, ev.Number)
		b = wire.AppendHash(wire.AppendHash(b, ev.Commitment), ev.Parent)
		b = wire.AppendBytes(b, ev.Bundle)
	case Release:
		b = appendKind(b, kindRelease, ev.Number)
	case Rekey:
		b = appendKind(b, kindRekey, ev.From, ev.To)
	case GiveUp:
		b = appendKind(b, kindGiveUp, ev.Number)
		b = wire.AppendBytes(b, []byte(ev.Reason))
	case Cores:
		b = appendKind(b, kindCores, uint64(len(ev.Cores)))
		for _, core := range ev.Cores {
			b = wire.AppendUint(b, uint64(core))
		}
	case Retry:
		b = appendKind(b, kindRetry, ev.Number)
	case Tick:
		b = appendKind(b, kindTick)
	case Adopt:
		b = wire.AppendHash(appendKind(b, kindAdopt, ev.Number), ev.Package)
	default:
		return b, false
	}
	return b, true
}

// appendAnswer appends the record of an answer to an effect, such as Built.
func appendAnswer(b []byte, ev Event) ([]byte, bool) {
	switch ev := ev.(type) {
	case Built:
		b = appendKind(b, kindBuilt, ev.Ticket)
		b = wire.AppendHash(b, ev.Package)
		b = appendContext(b, &ev.Context)
		b = wire.AppendBytes(b, ev.Bundle)
	case BuildFailed:
		b = appendKind(b, kindBuildFailed, ev.Ticket)
	case Sent:
		b = appendKind(b, kindSent, ev.Ticket)
		b = wire.AppendBool(wire.AppendBool(b, ev.OK), ev.Refused)
	default:
		return b, false
	}
	return b, true
}

// appendEvidence appends the record of a JAM block or its finality.
func appendEvidence(b []byte, ev Event) ([]byte, bool) {
	switch ev := ev.(type) {
	case Imported:
		b = appendKind(b, kindImported)
		b = wire.AppendHash(b, ev.Best)
		b = appendBlock(b, &ev.Block)
	case FinalizedBlock:
		b = appendKind(b, kindFinalizedBlock)
		b = wire.AppendHash(b, ev.Hash)
	default:
		return b, false
	}
	return b, true
}

// DecodeRecord decodes a record that AppendRecord has made. The error wraps
// ErrCorrupt if the bytes are not such a record. DecodeRecord does not panic,
// whatever the bytes are.
func DecodeRecord(record []byte) (time.Time, Event, error) {
	if len(record) == 0 || record[0] != recordVersion {
		return time.Time{}, nil, fmt.Errorf("%w: record of %d bytes is not of version %d", ErrCorrupt, len(record), recordVersion)
	}
	r := wire.NewReader(record[1:])
	now := time.Unix(0, r.Int()).UTC()
	ev := readEvent(r)
	if err := r.Done(); err != nil {
		return time.Time{}, nil, fmt.Errorf("%w: record: %w", ErrCorrupt, err)
	}
	return now, ev, nil
}

func readEvent(r *wire.Reader) Event {
	switch r.UintBelow(numKinds, "kind of record") {
	case kindReserve:
		return Reserve{Number: r.Uint()}
	case kindEnqueue:
		return Enqueue{Number: r.Uint(), Commitment: wire.ReadHash[common.Hash](r), Parent: wire.ReadHash[common.Hash](r), Bundle: bytes.Clone(r.Bytes())}
	case kindRelease:
		return Release{Number: r.Uint()}
	case kindRekey:
		return Rekey{From: r.Uint(), To: r.Uint()}
	case kindBuilt:
		return Built{Ticket: r.Uint(), Package: wire.ReadHash[jamq.PackageHash](r), Context: readContext(r), Bundle: bytes.Clone(r.Bytes())}
	case kindBuildFailed:
		return BuildFailed{Ticket: r.Uint()}
	case kindSent:
		return Sent{Ticket: r.Uint(), OK: r.Bool(), Refused: r.Bool()}
	case kindImported:
		return Imported{Best: wire.ReadHash[jamq.HeaderHash](r), Block: readBlock(r)}
	case kindFinalizedBlock:
		return FinalizedBlock{Hash: wire.ReadHash[jamq.HeaderHash](r)}
	case kindRetry:
		return Retry{Number: r.Uint()}
	case kindGiveUp:
		return GiveUp{Number: r.Uint(), Reason: string(r.Bytes())}
	case kindCores:
		return Cores{Cores: readCoreIndices(r)}
	case kindAdopt:
		return Adopt{Number: r.Uint(), Package: wire.ReadHash[jamq.PackageHash](r)}
	}
	return Tick{}
}

func readCoreIndices(r *wire.Reader) []jamq.CoreIndex {
	const cores = 1 << 16
	var out []jamq.CoreIndex
	for range r.Count(1) {
		out = append(out, jamq.CoreIndex(r.UintBelow(cores, "core")))
	}
	return out
}

// Replay repeats the steps in the records of a journal, so that a queue is in the
// same state as before a crash. The queue must be in the state that it had when the
// first record was written: either new, or restored from a snapshot of that moment.
// After Replay, the queue equals the queue that wrote the records, byte for byte.
//
// Unless follow is nil, Replay calls it with each step, so that a host can derive
// its state from the steps just as it did before the crash. Before the crash, the
// host carried out the effects of all records except perhaps those of the last one.
// [Queue.Open] returns the requests among the effects that are still open.
//
// The error wraps ErrCorrupt and names the index of the bad record, counted from 0.
// The queue is then in the state after the record before it.
func Replay(q *Queue, records [][]byte, follow func(Event, []Effect)) error {
	for i, record := range records {
		now, ev, err := DecodeRecord(record)
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		effects, err := q.Step(now, ev)
		if err != nil {
			return fmt.Errorf("%w: record %d: the queue refuses an event that it accepted before: %w", ErrCorrupt, i, err)
		}
		if follow != nil {
			follow(ev, effects)
		}
	}
	return nil
}

// Open returns the Build and Send effects that the host has not answered. A driver
// carries them out again after a restart. Sending a package twice does no harm,
// because JAM reports the same bytes only once.
func (q *Queue) Open() []Effect {
	var out []Effect
	for _, it := range q.items {
		if it.request != nil {
			at, least, offset := q.anchorAgain(it)
			out = append(out, q.buildEffect(it, at, least, offset))
		}
		for _, v := range it.versions {
			if v.ticket != 0 && it.hasBundle() {
				out = append(out, q.sendEffect(v))
			}
		}
	}
	return out
}

func appendContext(b []byte, c *jamq.RefineContext) []byte {
	b = wire.AppendHash(b, c.Anchor)
	b = wire.AppendHash(b, c.StateRoot)
	b = wire.AppendHash(b, c.BeefyRoot)
	b = wire.AppendHash(b, c.LookupAnchor)
	b = wire.AppendUint(b, uint64(c.LookupAnchorSlot))
	b = wire.AppendUint(b, uint64(c.AnchorSlot))
	b = wire.AppendHash(b, c.LookupStateRoot)
	return wire.AppendHashes(b, c.Prerequisites)
}

func readContext(r *wire.Reader) jamq.RefineContext {
	return jamq.RefineContext{
		Anchor: wire.ReadHash[jamq.HeaderHash](r), StateRoot: wire.ReadHash[common.Hash](r), BeefyRoot: wire.ReadHash[common.Hash](r),
		LookupAnchor: wire.ReadHash[jamq.HeaderHash](r), LookupAnchorSlot: readSlot(r),
		AnchorSlot: readSlot(r), LookupStateRoot: wire.ReadHash[common.Hash](r), Prerequisites: wire.ReadHashes[jamq.PackageHash](r),
	}
}

func readSlot(r *wire.Reader) jamq.Slot {
	return jamq.Slot(r.UintBelow(uint64(jamq.MaxSlot)+1, "slot"))
}

func appendBlock(b []byte, k *jamq.Block) []byte {
	b = wire.AppendHash(b, k.Hash)
	b = wire.AppendHash(b, k.Parent)
	b = wire.AppendHash(b, k.ParentStateRoot)
	b = wire.AppendUint(b, uint64(k.Slot))
	b = wire.AppendUint(b, uint64(len(k.Reported)))
	for i := range k.Reported {
		r := &k.Reported[i]
		b = wire.AppendHash(b, r.Hash)
		b = wire.AppendHash(b, r.Package)
		b = wire.AppendHash(b, r.SegmentRoot)
		b = wire.AppendUint(b, uint64(r.Core))
		b = wire.AppendHash(b, r.Anchor)
		b = wire.AppendHashes(b, r.Prerequisites)
	}
	b = wire.AppendUint(b, uint64(len(k.Available)))
	for _, core := range k.Available {
		b = wire.AppendUint(b, uint64(core))
	}
	b = wire.AppendHashes(b, k.Condemned)
	b = wire.AppendUint(b, blockFlags(k))
	return wire.AppendHashes(b, k.Accumulated)
}

const flagAccumulatedKnown, flagCoresCleared = 1, 2

// blockFlags encodes the boolean fields of a block as one number.
func blockFlags(k *jamq.Block) (flags uint64) {
	if k.AccumulatedKnown {
		flags |= flagAccumulatedKnown
	}
	if k.CoresCleared {
		flags |= flagCoresCleared
	}
	return flags
}

func readBlock(r *wire.Reader) jamq.Block {
	k := jamq.Block{
		Hash: wire.ReadHash[jamq.HeaderHash](r), Parent: wire.ReadHash[jamq.HeaderHash](r),
		ParentStateRoot: wire.ReadHash[common.Hash](r), Slot: readSlot(r),
	}
	const cores = 1 << 16
	for range r.Count(32) {
		k.Reported = append(k.Reported, jamq.Report{
			Hash: wire.ReadHash[common.Hash](r), Package: wire.ReadHash[jamq.PackageHash](r), SegmentRoot: wire.ReadHash[common.Hash](r),
			Core: jamq.CoreIndex(r.UintBelow(cores, "core")), Anchor: wire.ReadHash[jamq.HeaderHash](r),
			Prerequisites: wire.ReadHashes[jamq.PackageHash](r),
		})
	}
	k.Available = readCoreIndices(r)
	k.Condemned = wire.ReadHashes[common.Hash](r)
	flags := r.UintBelow(4, "flags of a block")
	k.AccumulatedKnown, k.CoresCleared = flags&flagAccumulatedKnown != 0, flags&flagCoresCleared != 0
	k.Accumulated = wire.ReadHashes[jamq.PackageHash](r)
	return k
}
