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
	// Body is the host's part of the block: the operations in their order, and all other data that
	// a second execution needs to have the same result. The builder shares Body with the rollup,
	// and neither may change it.
	Body B
	// Progress is how far the block has come on its way through JAM. It is set in the argument of
	// Final and in the result of Builder.Block.
	Progress Progress

	raw        []byte      // encoded body
	serial     uint64      // of the execution; no two blocks of a log have the same
	commitment common.Hash // in the queue
}

// Hash returns the hash by which Builder.Heads identifies the block. A rollup that serves blocks by
// their hash stores it in Apply. Each execution has a different hash: if a block fails and its
// operations are executed again, the new block has another hash.
func (b Block[B]) Hash() common.Hash { return b.commitment }

// Progress is how far a block has come on its way through JAM.
type Progress struct {
	// State is the state of the block's bundle in the queue. A block is final only if all earlier
	// blocks are.
	State bundlequeue.State
	// Version and Package identify the package because of which the bundle is in this state. They
	// are zero if there is no such package.
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was sent to.
	Core jamq.CoreIndex
	// At is the JAM block that proves Guaranteed, Accumulated or Finalized. It is zero
	// for other states.
	At anchor.Point
}

// Rollup is the host's part of a builder: the state of the rollup and the operations that wait. The
// builder calls Apply and Undo in the order of its log, also when it recovers. A rollup therefore
// begins with its genesis, or with the state that Restore sets, and the builder leads it to the
// present state by these calls. A rollup that keeps its state on disk must begin there too, or
// implement [Checkpointer].
type Rollup[B any] interface {
	Operations
	// Propose executes the next block on the newest state, and returns the block with the root
	// after it, or ErrIdle if there is nothing to execute.
	//
	// The builder may discard the proposal, so Propose changes neither the state nor the operations
	// that can run. It may only drop operations that can never run, whatever blocks fail; this is a
	// change, which TakeChanges returns. ctx ends early if an earlier block fails during the call,
	// because the proposal is then worthless.
	Propose(ctx context.Context, number uint64) (body B, root common.Hash, err error)
	// Apply makes a block the newest one: it executes the block on the newest state, and removes
	// its operations from those that wait. The block is in the log already. If Apply returns an
	// error, it must have changed nothing, and the builder calls it again.
	Apply(ctx context.Context, block Block[B]) error
	// Undo removes the newest block, because it can never be accumulated: it restores the state
	// before the block. The operations of the block wait again. They come before all others, unless
	// the rollup orders operations itself, as a mempool does. If Undo returns an error, it must
	// have changed nothing, and the builder calls it again.
	Undo(ctx context.Context, block Block[B]) error
	// Root returns the root of the newest state.
	Root() common.Hash
	// Payload returns the input of the rollup's service for a block. It must fit into a work
	// package (jamq.ChainSpec.MaxBundleSize); otherwise the block is never packed. The result
	// depends on the block only, which Payload must not change.
	//
	// Payload is called concurrently with all other methods, also for blocks that are not applied
	// yet. If a call has not returned within Config.BuildTimeout, it is called again for the same
	// block.
	Payload(ctx context.Context, block Block[B]) ([]byte, error)
}

// Operations are the operations of a rollup that wait to be executed. A rollup gets the four
// methods by embedding a [List], or a mempool.Pool for Ethereum transactions. The rollup makes a
// change first, then the builder writes the change to its log, and last the user gets an answer.
type Operations interface {
	// Admit decides on an operation of a user. It is called concurrently with everything else, and
	// only for users: after a restart ReplayChange is called in its place. Three rules hold:
	//
	//   - If Admit returns nil, the operation waits from now on. If it waits already, nothing
	//     changes, because a user who got no answer submits an operation again.
	//   - If Admit returns an error, which Submit returns to the user, nothing has changed.
	//   - An operation that was executed never waits again, whatever Admit returns. Operations must
	//     therefore be distinct: a rollup whose users may want the same thing twice has a nonce in
	//     them.
	Admit(ctx context.Context, op []byte) error
	// TakeChanges returns the changes of the waiting operations since its last call, in their
	// order, as records for the log: the operations that Admit has accepted, and those that the
	// rollup has dropped. It does not return changes by Apply and Undo.
	//
	// The builder calls TakeChanges before each write to the log, never twice at a time, and
	// concurrently with all other methods. A lock that TakeChanges needs must therefore not be held
	// during a call of the builder. The builder keeps the records and does not change them.
	TakeChanges() [][]byte
	// ReplayChange makes a change again after a restart. Open calls it for each record in the order
	// of the log, also relative to Apply and Undo. The state that Restore has set may already
	// contain the first changes after the checkpoint; ReplayChange must recognize them.
	ReplayChange(ctx context.Context, change []byte) error
	// Recovered is called once, at the end of Open, when the rollup has followed the whole log. A
	// rollup that gets operations in other ways than by Submit keeps save, which writes the
	// rollup's changes to the log.
	//
	// save returns nil when the changes that were made before its call are durable. Otherwise its
	// error wraps ErrLog or ErrStopped, and the changes may be in the log. save can be called
	// concurrently, also by methods of the rollup, but not while the lock that TakeChanges needs is
	// held.
	Recovered(ctx context.Context, save func() error) error
}

// Checkpointer is an optional part of a [Rollup]. With it, the log keeps only the records since the
// last checkpoint. Without it, the log is never shortened.
type Checkpointer interface {
	// Checkpoint returns records from which Restore can recover the rollup: the newest state, the
	// operations that wait, and all data that Undo needs for blocks that are not final. They must
	// include all changes that TakeChanges has returned, and all applied blocks. There may be no
	// records if the state is on disk; see [Pruner]. A record must be smaller than
	// journal.MaxRecord; otherwise the log refuses the checkpoint.
	Checkpoint(ctx context.Context) ([][]byte, error)
	// Restore sets the state and the waiting operations to those that the records of a checkpoint
	// contain. It is called once, before any other method.
	Restore(ctx context.Context, records [][]byte) error
}

// Pruner is an optional part of a [Checkpointer] whose checkpoints need data outside of the
// log, for example a state on disk.
type Pruner interface {
	// Prune is called when the log has the records of the last call of Checkpoint, and no earlier
	// ones. The rollup may then remove data that only earlier checkpoints need. Until then it must
	// keep that data, because the log can refuse any number of checkpoints, and the process can
	// crash before the log has one.
	//
	// When Restore is called, the log has the checkpoint that Restore gets. If Prune fails, it is
	// called again after the next checkpoint.
	Prune(ctx context.Context) error
}

// Finalizer is an optional part of a [Rollup].
type Finalizer[B any] interface {
	// Final is called for each block that is final on JAM, in order; such a block will not be
	// undone. After a restart it is called again for the blocks that have become final since the
	// last checkpoint. After an error it is called again; in the meantime the builder makes blocks,
	// but no checkpoint.
	Final(ctx context.Context, block Block[B]) error
}

// Network is the way to JAM. All methods are called concurrently.
type Network interface {
	// Root returns a final JAM block with which a builder with an empty log begins. Follow delivers
	// the blocks after it.
	Root(ctx context.Context) (jamq.Block, error)
	// Pack makes the work package for a payload. If Pack returns an error, or does not return
	// within Config.BuildTimeout, the builder calls it again after a back-off.
	Pack(ctx context.Context, at Anchor, payload []byte) (Package, error)
	// Send sends a package to a guarantor of a core. It should choose a different guarantor for
	// each attempt; attempts are counted from 1. If the error has a class by submit.WithClass, the
	// builder acts by that class.
	Send(ctx context.Context, pkg Package, core jamq.CoreIndex, attempt int) error
	// Follow delivers JAM blocks and finality until ctx ends: see submit.ChainFeed. It continues
	// after the last final block that the builder has recovered. If Follow returns nil before ctx
	// ends, Run returns ErrFollow. If the host itself calls [Builder.Import] and
	// [Builder.Finalize], Follow only waits for the end of ctx.
	Follow(ctx context.Context, recovered submit.Recovery, to submit.ChainSink) error
}

// Anchor is the place of a package: the core to which it will be sent, and the JAM block at which
// it must be anchored. The fields are those of bundlequeue.Build.
type Anchor struct {
	// Number is the number of the rollup block. Version counts its packages from 1.
	Number  uint64
	Version int
	// Core is the core to which the package will be sent.
	Core jamq.CoreIndex
	// Hash is the JAM block at which the package must be anchored, and Offset its distance from the
	// newest block, in blocks.
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
	// Data is everything that Network.Send needs. The log contains it, because a package may be
	// sent again after a restart.
	Data []byte
}

// Codec is an optional part of a [Rollup]: it encodes the bodies of blocks for the log. Without it,
// bodies are encoded as JSON, which keeps exported fields only. JSON cannot represent strings that
// are not UTF-8, and the builder makes no block with such a string. A body should therefore have
// the bytes of operations as []byte.
type Codec[B any] interface {
	// Encode returns the encoding of a body, which must always be the same for the same body. The
	// builder discards a proposal that cannot be encoded. It also discards one whose encoding
	// Decode refuses, or decodes to a body with a different encoding. It then logs the error and
	// proposes again later.
	Encode(body B) ([]byte, error)
	// Decode returns the body that was encoded, without any loss: after a restart the rollup
	// applies this body, and must reach the same state. raw is valid only during the call.
	Decode(raw []byte) (B, error)
}

// jsonCodec is the codec of a rollup that has none.
type jsonCodec[B any] struct{}

func (jsonCodec[B]) Encode(body B) ([]byte, error) { return json.Marshal(body) }

func (jsonCodec[B]) Decode(raw []byte) (body B, err error) {
	err = json.Unmarshal(raw, &body)
	return body, err
}

// Log stores the records of a builder, in order. Package journal has a log in memory and one in a
// file. pebble/pebblejournal has one on Pebble, which is the usual choice. journal/journaltest
// tests other implementations.
//
// Records are any bytes, in any length up to journal.MaxRecord. If a log refuses shorter ones, it
// returns an error that wraps journal.ErrTooLarge, and changes nothing. If it refuses a change or a
// block, Run ends.
type Log interface {
	// Append adds records to the log. If the process crashes during the call, either all records
	// survive or none. After Append has returned nil, all survive.
	Append(records ...[]byte) error
	// Replace replaces all records of the log with the given ones. If the process crashes during
	// the call, the log has either all old records or all new ones. A call that is refused because
	// of the size of a record changes nothing.
	Replace(records ...[]byte) error
	// Replay calls f with each record in order. f must not use a record after it has returned. If f
	// returns an error, Replay stops and returns that error.
	Replay(f func(record []byte) error) error
}

// anchorOf converts the request of the queue.
func anchorOf(r *bundlequeue.Build) Anchor {
	return Anchor{Number: r.Number, Version: r.Version, Core: r.Core, Hash: r.Anchor.Hash, Offset: r.Offset, Prerequisites: r.Prerequisites}
}
