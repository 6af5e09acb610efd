package builder

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// ErrIdle is returned by [Rollup.Propose] if no operation waits.
var ErrIdle = errors.New("builder: nothing to execute")

// Block is a rollup block.
type Block[B any] struct {
	// Number counts the blocks of the rollup from 1.
	Number uint64
	// PreRoot and Root are the roots of the state before and after the block.
	PreRoot, Root common.Hash
	// Body is the host's part: the operations in their order, and whatever else a
	// second execution needs to have the same result. The builder shares it with the
	// rollup and never changes it; neither does the rollup.
	Body B
	// Progress is the way of the block through JAM so far. It is set in Final and in
	// the result of Builder.Block.
	Progress Progress

	raw        []byte      // encoded body
	serial     uint64      // of the execution; no two blocks of a log have the same
	commitment common.Hash // in the queue
}

// Hash returns the hash that Builder.Heads has for the block. A rollup that serves blocks by
// their hash keeps it in Apply. The hash differs for each execution: if a block fails and its
// operations are executed again, the new block has another hash.
func (b Block[B]) Hash() common.Hash { return b.commitment }

// Progress is the way of a block through JAM.
type Progress struct {
	// State is the state of its bundle. A block is final only when those before it are.
	State bundlequeue.State
	// Version and Package identify the package that determines the state. They are zero
	// if none does.
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was sent to.
	Core jamq.CoreIndex
	// At is the JAM block that proves Guaranteed, Accumulated or Finalized. It is zero
	// for other states.
	At anchor.Point
}

// Rollup is the state of a rollup and the operations that wait. The builder calls
// Apply and Undo in the order of its log, also when it recovers: a rollup begins
// with its genesis, or with the state that Restore sets, and is then led to the
// present state. A rollup that keeps its state on disk must begin there too, or
// implement [Checkpointer].
type Rollup[B any] interface {
	Operations
	// Propose executes the next block on the newest state, and returns it with the
	// root after it. The proposal may be discarded, so Propose changes neither the
	// state nor the operations that can run. It may drop operations that can never run,
	// in whatever state a failed block leads to; that is a change, which TakeChanges
	// returns. Propose returns ErrIdle if there is nothing to execute. ctx ends early if an
	// earlier block has failed meanwhile, because the proposal is then worthless.
	Propose(ctx context.Context, number uint64) (body B, root common.Hash, err error)
	// Apply makes a block the newest one: it executes the block on the newest state,
	// and its operations wait no longer. The block is in the log already. After an
	// error nothing is changed, and the builder calls Apply again.
	Apply(ctx context.Context, block Block[B]) error
	// Undo removes the newest block, because it can never be accumulated: it restores
	// the state before the block. Its operations wait again, and come before all others
	// unless the rollup orders them itself, as a mempool does. After an error nothing
	// is changed, and the builder calls Undo again.
	Undo(ctx context.Context, block Block[B]) error
	// Root returns the root of the newest state.
	Root() common.Hash
	// Payload returns the input of the rollup's service for a block. It must fit into a work
	// package (jamq.ChainSpec.MaxBundleSize), or the block is never packed. It depends on the
	// block only, and must not change it. It is called concurrently with all others, also
	// for blocks that are not applied yet, and again for a block whose call has not returned
	// within Config.BuildTimeout.
	Payload(ctx context.Context, block Block[B]) ([]byte, error)
}

// Operations are the operations of a rollup that wait to be executed. A rollup gets the four
// methods by embedding a [List], or a mempool.Pool for Ethereum transactions. It makes a change
// first; the builder then writes the change to its log, and answers the user last.
type Operations interface {
	// Admit decides on an operation of a user. It is called concurrently with everything else,
	// and only for users: after a restart ReplayChange is called in its place. Three rules hold:
	//
	//   - nil: the operation waits from now on. If it waits already, nothing changes, because
	//     a user who got no answer submits an operation again.
	//   - an error, which Submit returns: nothing has changed.
	//   - an operation that was executed never waits again, whatever Admit returns. So
	//     operations must be distinct: a rollup whose users may want the same thing twice
	//     has a nonce in them.
	Admit(ctx context.Context, op []byte) error
	// TakeChanges returns the changes of the operations that wait since its last call, in their
	// order, as records for the log: the operations that Admit has accepted, and those that the
	// rollup has dropped. The changes by Apply and Undo are not among them. The builder calls it
	// before each write to the log, never twice at a time, and concurrently with all other
	// methods. So the lock that TakeChanges needs must not be held during a call of the
	// builder. The builder keeps the records and does not change them.
	TakeChanges() [][]byte
	// ReplayChange makes a change again. Open calls it for each record in the order of the log,
	// also with respect to Apply and Undo. The state that Restore has set may have the first
	// changes after the checkpoint already; ReplayChange must recognize them.
	ReplayChange(ctx context.Context, change []byte) error
	// Recovered is called once, at the end of Open, when the rollup has followed the whole log.
	// save writes the changes of the rollup to the log, for a rollup that gets operations other
	// than by Submit. It returns nil when the changes that were made before its call are
	// durable; otherwise its error wraps ErrLog or ErrStopped, and the changes may be in the
	// log. It can be called concurrently, also by methods of the rollup, but not while the lock
	// that TakeChanges needs is held.
	Recovered(ctx context.Context, save func() error) error
}

// Checkpointer is an optional part of a [Rollup]. With it the log keeps only what
// happened since the last checkpoint. Without it the log is never shortened.
type Checkpointer interface {
	// Checkpoint returns records that have the newest state, the operations that wait,
	// and whatever Undo needs for blocks that are not final. All changes that TakeChanges
	// has returned, and all applied blocks, must be in them. There may be none, if the
	// state is on disk; see [Pruner].
	// A record must be smaller than journal.MaxRecord, or the log refuses the checkpoint.
	Checkpoint(ctx context.Context) ([][]byte, error)
	// Restore sets the state and the waiting operations to those of the records. It
	// is called once, before any other method.
	Restore(ctx context.Context, records [][]byte) error
}

// Pruner is an optional part of a [Checkpointer] whose checkpoints need data outside of the
// log, for example a state on disk.
type Pruner interface {
	// Prune is called when the log has the records of the last call of Checkpoint, and no
	// earlier ones: the data that only earlier checkpoints need may be removed. Until then it
	// must stay, because the log can refuse any number of checkpoints, and a crash can come
	// before the log has one. Restore tells the same about the checkpoint that it gets. If
	// Prune fails, it is called again after the next checkpoint.
	Prune(ctx context.Context) error
}

// Finalizer is an optional part of a [Rollup].
type Finalizer[B any] interface {
	// Final is called for each block that is final on JAM, in order. It will not be
	// undone. After a restart it is called again for the blocks that have become final
	// since the last checkpoint. After an error it is called again; blocks are made
	// meanwhile, but no checkpoint.
	Final(ctx context.Context, block Block[B]) error
}

// Network is the way to JAM. All methods are called concurrently.
type Network interface {
	// Root returns a final JAM block, for a builder with an empty log. Follow
	// delivers the blocks after it.
	Root(ctx context.Context) (jamq.Block, error)
	// Pack makes the work package for a payload. If it returns an error, or does not return
	// within Config.BuildTimeout, it is called again after a back-off.
	Pack(ctx context.Context, at Anchor, payload []byte) (Package, error)
	// Send sends a package to a guarantor of a core, to another one for each attempt,
	// counted from 1. The class of an error is that of submit.WithClass.
	Send(ctx context.Context, pkg Package, core jamq.CoreIndex, attempt int) error
	// Follow delivers JAM blocks and finality until ctx ends: see submit.ChainFeed. It
	// continues after the last final block that the builder has recovered. If Follow
	// returns nil before ctx ends, Run returns ErrFollow. A host that
	// calls [Builder.Import] and [Builder.Finalize] itself only waits for ctx.
	Follow(ctx context.Context, recovered submit.Recovery, to submit.ChainSink) error
}

// Anchor is the place of a package: its core, and the block at which it must be
// anchored. The fields are those of bundlequeue.Build.
type Anchor struct {
	// Number is the number of the rollup block. Version counts its packages from 1.
	Number  uint64
	Version int
	// Core is the core to which the package will be sent.
	Core jamq.CoreIndex
	// Hash is the JAM block at which the package must be anchored, and Offset its
	// distance from the newest block.
	Hash   jamq.HeaderHash
	Offset int
	// Prerequisites are the packages that the refine context must name.
	Prerequisites []jamq.PackageHash
}

// Package is a work package that can be sent.
type Package struct {
	// Hash is the hash of the package, and Context its refine context.
	Hash    jamq.PackageHash
	Context jamq.RefineContext
	// Data is all that Network.Send needs. It is kept in the log, because a package
	// may be sent again after a restart.
	Data []byte
}

// Codec is an optional part of a [Rollup]: it encodes the bodies of blocks for the log.
// Without it they are encoded as JSON, which keeps exported fields only. JSON cannot have
// strings that are not UTF-8, so a body keeps the bytes of operations as []byte: the builder
// makes no block with such a string.
type Codec[B any] interface {
	// Encode returns the encoding of a body: always the same one for the same body. The
	// builder discards a proposal that cannot be encoded, or whose encoding Decode refuses or
	// decodes to a body with another encoding. It logs the error and proposes again later.
	Encode(body B) ([]byte, error)
	// Decode returns the body that was encoded, and nothing less: after a restart the
	// rollup applies this body, and must come to the same state. raw is valid only during
	// the call.
	Decode(raw []byte) (B, error)
}

// jsonCodec is the codec of a rollup that has none.
type jsonCodec[B any] struct{}

func (jsonCodec[B]) Encode(body B) ([]byte, error) { return json.Marshal(body) }

func (jsonCodec[B]) Decode(raw []byte) (body B, err error) {
	err = json.Unmarshal(raw, &body)
	return body, err
}

// Log stores the records of a builder, in order. Package journal has one in
// memory and one in a file, and pebble/pebblejournal one on Pebble, which is the
// usual choice. journal/journaltest tests others. Records are any bytes, in any length up
// to journal.MaxRecord. If a log refuses shorter ones, it returns an error that wraps
// journal.ErrTooLarge, and changes nothing. If it refuses a change or a block, Run ends.
type Log interface {
	// Append adds records. If the process crashes during the call, either all
	// records survive or none. After Append has returned nil, all survive.
	Append(records ...[]byte) error
	// Replace replaces all records of the log with the given ones. A crash
	// leaves either all old records or all new ones. A call that is refused because of
	// the size of a record changes nothing.
	Replace(records ...[]byte) error
	// Replay calls f with each record in order. A record is only valid during
	// its call. If f returns an error, Replay stops and returns it.
	Replay(f func(record []byte) error) error
}

// anchorOf converts the request of the queue.
func anchorOf(r *bundlequeue.Build) Anchor {
	return Anchor{Number: r.Number, Version: r.Version, Core: r.Core, Hash: r.Anchor.Hash, Offset: r.Offset, Prerequisites: r.Prerequisites}
}
