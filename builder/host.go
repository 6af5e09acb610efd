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

// Block is a block of the rollup. B is the type of its body, which the host
// chooses.
type Block[B any] struct {
	// Number is the number of the block. The genesis has number 0.
	Number uint64
	// PreRoot and Root are the roots of the state before and after the block.
	PreRoot, Root common.Hash
	// Body is the host's part of the block: the operations in their order, and everything else
	// that another execution needs to reach the same state. The builder and the rollup share
	// Body, and neither may change it.
	Body B
	// Progress is how far the block has come on its way through JAM. It is set only in the
	// argument of Final and in the result of Builder.Block.
	Progress Progress

	raw        []byte      // encoded body
	serial     uint64      // number of the execution; unique in a log
	commitment common.Hash // in the queue
}

// Hash returns the hash that identifies the block in Builder.Heads. A rollup that serves
// blocks by this hash stores it in Apply. Each execution has a different hash: if a block
// fails and its operations are executed again, the new block has a new hash.
func (b Block[B]) Hash() common.Hash { return b.commitment }

// Progress is how far a block has come on its way through JAM.
type Progress struct {
	// State is the state of the block's bundle in the queue. A block is final only if all earlier
	// blocks are.
	State bundlequeue.State
	// Version and Package identify the package that has brought the bundle into this
	// state. They are zero if the state is not due to a package.
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was sent to.
	Core jamq.CoreIndex
	// At is the JAM block that proves the state, if the state is Guaranteed, Accumulated
	// or Finalized. It is zero for other states.
	At anchor.Point
}

// Rollup is the host's part of a builder: the state of the rollup and the
// operations that wait. The builder calls Apply and Undo in the order of its log,
// also when it recovers after a restart. A rollup therefore begins with its
// genesis, or with the state that Restore sets, and these calls lead it to the
// present state. The same holds for a rollup that keeps its state on disk: it must
// begin with its genesis, or implement [Checkpointer].
type Rollup[B any] interface {
	Operations
	// Propose executes the next block on the newest state, and returns the body of the block
	// and the root after it. It returns ErrIdle if there is nothing to execute.
	//
	// The builder may discard the proposal, so Propose must change neither the state nor the
	// operations that can run. It may drop operations that can never run, whatever blocks fail;
	// TakeChanges then returns this change. If an earlier block fails during the call, ctx
	// ends, because the proposal is then worthless.
	Propose(ctx context.Context, number uint64) (body B, root common.Hash, err error)
	// Apply makes a block the newest one: it executes the block on the newest state, and
	// removes the block's operations from those that wait. The log already has the block. If
	// Apply returns an error, it must have changed nothing, and the builder calls it again.
	Apply(ctx context.Context, block Block[B]) error
	// Undo takes back the newest block, because no JAM chain can accumulate it any more. It
	// restores the state before the block, and the operations of the block wait to be executed
	// again. They come before all others, unless the rollup orders operations itself, as a
	// mempool does. If Undo returns an error, it must have changed nothing, and the builder
	// calls it again.
	Undo(ctx context.Context, block Block[B]) error
	// Root returns the root of the newest state.
	Root() common.Hash
	// Payload returns the input of the rollup's service for a block. It must fit into a work
	// package (jamq.ChainSpec.MaxBundleSize); otherwise the block can never be packed. The
	// result must depend only on the block, and Payload must not change the block.
	//
	// Payload is called concurrently with all other methods, also for blocks that are not
	// applied yet. If a call has not returned within Config.BuildTimeout, it is called again
	// for the same block.
	Payload(ctx context.Context, block Block[B]) ([]byte, error)
}

// Operations are the operations of a rollup that wait to be executed. A rollup gets
// these four methods by embedding a [List], or a mempool.Pool for Ethereum
// transactions. Each change passes three stages: the rollup makes the change, then
// the builder writes it to its log, and then the user gets an answer.
type Operations interface {
	// Admit decides on an operation of a user. The builder calls Admit concurrently with
	// everything else, and only for users: after a restart it calls ReplayChange instead.
	// Three rules hold:
	//
	//   - If Admit returns nil, the operation waits from now on. If it waits already, nothing
	//     changes, because a user who got no answer submits an operation again.
	//   - If Admit returns an error, nothing has changed, and Submit returns the error to the
	//     user.
	//   - An operation that was executed must never wait again, whatever Admit returns.
	//     Operations must therefore be distinct; if users may want the same thing twice, their
	//     operations need a nonce.
	Admit(ctx context.Context, op []byte) error
	// TakeChanges returns the changes of the waiting operations since its last call, in order,
	// as records for the log: operations that Admit has accepted, and operations that the
	// rollup has dropped. It does not return the changes by Apply and Undo.
	//
	// The builder calls TakeChanges before each write to the log, concurrently with all other
	// methods but never twice at a time. The rollup must therefore not call the builder while
	// it holds a lock that TakeChanges needs. The builder keeps the records and does not change
	// them.
	TakeChanges() [][]byte
	// ReplayChange repeats a change after a restart. Open calls it for each record in the order
	// of the log, also relative to Apply and Undo. The state that Restore has set may already
	// contain the first changes after the checkpoint, and ReplayChange must recognize them.
	ReplayChange(ctx context.Context, change []byte) error
	// Recovered is called once, at the end of Open, when the rollup has followed the whole log.
	// save writes the rollup's changes to the log. A rollup keeps save if it gets operations in
	// other ways than by Submit.
	//
	// save returns nil when all changes that were made before the call are durable. Otherwise
	// its error wraps ErrLog or ErrStopped, and the changes may or may not be in the log. Any
	// goroutine may call save at any time, but not while it holds the lock that TakeChanges
	// needs.
	Recovered(ctx context.Context, save func() error) error
}

// Checkpointer is an optional part of a [Rollup] that bounds the size of the log:
// with it, the log has only one checkpoint and the records after it. Without it,
// the log is never shortened.
type Checkpointer interface {
	// Checkpoint returns records from which Restore can recover the rollup: the newest state,
	// the operations that wait, and all data that Undo needs for blocks that are not final. The
	// records must include all changes that TakeChanges has returned, and all applied blocks. A
	// rollup that keeps its state on disk may return no records; see [Pruner]. A record must be
	// smaller than journal.MaxRecord; otherwise the log refuses the checkpoint.
	Checkpoint(ctx context.Context) ([][]byte, error)
	// Restore sets the state and the waiting operations to those in the records of a
	// checkpoint. It is called once, before any other method.
	Restore(ctx context.Context, records [][]byte) error
}

// Pruner is an optional part of a [Checkpointer] that keeps data outside the log, for
// example a state on disk. The builder tells it when older data is no longer needed for a
// restart.
type Pruner interface {
	// Prune is called when the log has the records of the last call of Checkpoint, and no
	// earlier checkpoint. The rollup may then remove data that only earlier checkpoints need.
	// Until then it must keep that data, because the log can refuse any number of checkpoints,
	// and the process can crash before the log has the new one.
	//
	// The checkpoint that Restore gets is always the one in the log. If Prune fails, it is
	// called again after the next checkpoint.
	Prune(ctx context.Context) error
}

// Finalizer is an optional part of a [Rollup] that wants to know which blocks are
// final.
type Finalizer[B any] interface {
	// Final is called for each block that is final on JAM, in order. Such a block is never
	// undone. After a restart, Final is called again for the blocks that have become final
	// since the last checkpoint. If Final returns an error, the builder calls it again later;
	// in the meantime it makes blocks but no checkpoint.
	Final(ctx context.Context, block Block[B]) error
}

// Network is the builder's connection to JAM. All methods are called concurrently.
type Network interface {
	// Root returns a final JAM block. A builder with an empty log begins with this block,
	// and Follow delivers the blocks after it.
	Root(ctx context.Context) (jamq.Block, error)
	// Pack makes a work package from a payload. If Pack returns an error, or does not return
	// within Config.BuildTimeout, the builder calls it again after a back-off.
	Pack(ctx context.Context, at Anchor, payload []byte) (Package, error)
	// Send sends a package to a guarantor of a core. It should choose a different guarantor for
	// each attempt; attempts are counted from 1. The error may have a class, set with
	// submit.WithClass, which decides what the builder does next.
	Send(ctx context.Context, pkg Package, core jamq.CoreIndex, attempt int) error
	// Follow delivers JAM blocks and finality until ctx ends: see submit.ChainFeed. It
	// continues after the last final block that the builder has recovered. If Follow returns
	// nil before ctx ends, Run returns ErrFollow. If the host itself calls [Builder.Import] and
	// [Builder.Finalize], Follow only has to wait for the end of ctx.
	Follow(ctx context.Context, recovered submit.Recovery, to submit.ChainSink) error
}

// Anchor tells Network.Pack what the queue requires of a package, for example its core
// and the JAM block that it must be anchored to. The fields are those of
// bundlequeue.Build.
type Anchor struct {
	// Number is the number of the rollup block. Version counts the packages of the block from
	// 1.
	Number  uint64
	Version int
	// Core is the core to which the package will be sent.
	Core jamq.CoreIndex
	// Hash is the JAM block that the package must be anchored to, and Offset is how many
	// blocks it lies behind the newest block.
	Hash   jamq.HeaderHash
	Offset int
	// Prerequisites are the packages that the refine context must name.
	Prerequisites []jamq.PackageHash
}

// Package is a work package that can be sent.
type Package struct {
	// Hash is the hash of the package, and Context is its refine context.
	Hash    jamq.PackageHash
	Context jamq.RefineContext
	// Data is everything that Network.Send needs. The log stores Data, because a package may be
	// sent again after a restart.
	Data []byte
}

// Codec is an optional part of a [Rollup] that encodes the bodies of blocks for the
// log. Without it, bodies are encoded as JSON, which keeps exported fields only.
// JSON cannot represent strings that are not valid UTF-8, and the builder makes no
// block with such a string. A body should therefore contain the bytes of operations
// as []byte.
type Codec[B any] interface {
	// Encode returns the encoding of a body, which must always be the same for the same
	// body. To test the codec, the builder decodes each new body and encodes it once
	// more. If this fails or the encodings differ, it discards the proposal, logs the
	// error and proposes again later.
	Encode(body B) ([]byte, error)
	// Decode returns the body that was encoded, without any loss: after a restart the rollup
	// applies this body and must reach the same state. raw is valid only during the call.
	Decode(raw []byte) (B, error)
}

// jsonCodec is the codec for a rollup that does not implement Codec.
type jsonCodec[B any] struct{}

func (jsonCodec[B]) Encode(body B) ([]byte, error) { return json.Marshal(body) }

func (jsonCodec[B]) Decode(raw []byte) (body B, err error) {
	err = json.Unmarshal(raw, &body)
	return body, err
}

// Log stores the records of a builder, in order. Package journal has a log in
// memory and one in a file. The usual choice is the log on Pebble in
// pebble/pebblejournal. Package journal/journaltest tests other implementations.
//
// A record consists of any bytes, up to a length of journal.MaxRecord. A log that
// refuses shorter records returns an error that wraps journal.ErrTooLarge, and
// changes nothing. If it refuses the record of a change or of a block, Run ends.
type Log interface {
	// Append adds records to the log. If the process crashes during the call, either all records
	// survive or none. After Append has returned nil, all survive.
	Append(records ...[]byte) error
	// Replace replaces all records of the log with the given ones. If the process crashes during
	// the call, the log has either all old records or all new ones. A call that is refused because
	// of the size of a record changes nothing.
	Replace(records ...[]byte) error
	// Replay calls f with each record in order. f must not keep a record after it
	// returns. If f returns an error, Replay stops and returns that error.
	Replay(f func(record []byte) error) error
}

// anchorOf converts a build request of the queue to the argument of Network.Pack.
func anchorOf(r *bundlequeue.Build) Anchor {
	return Anchor{Number: r.Number, Version: r.Version, Core: r.Core, Hash: r.Anchor.Hash, Offset: r.Offset, Prerequisites: r.Prerequisites}
}
