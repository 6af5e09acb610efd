package submit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// ChainFeed delivers a JAM chain to a builder. Packages submit/jip2 and
// submit/jamnps implement it. A host that imports blocks itself can call the
// builder directly instead.
type ChainFeed interface {
	// Follow delivers blocks and finality to a sink until ctx ends. It then
	// returns ctx's error. It returns another error if it cannot continue: a
	// missing block is no longer available, or the sink refused a block.
	//
	// Follow delivers parents before children. It delivers every block of a
	// chain that it calls best or final, even if it loses its connection
	// meanwhile. It calls the sink from one goroutine at a time.
	Follow(ctx context.Context, to ChainSink) error
}

// FeedHealth is the condition of a feed, so that a host sees without a log that
// its feed stands still. A feed that fails has a LastError. If it has none and
// LastBest is many slots ago, the chain itself stands still, or the node does
// not learn of new blocks.
type FeedHealth struct {
	// Following is true while Follow runs.
	Following bool
	// Failures counts consecutive failed attempts to catch up with the nodes. An
	// attempt fails if one of the connected nodes fails. A success sets it to 0.
	Failures int
	// FailingSince is when the first of these failures happened; zero if there
	// is none.
	FailingSince time.Time
	// LastError is the error of the last attempt, or nil if it succeeded.
	LastError error
	// LastSuccess is when the feed last knew all that its nodes knew; zero
	// before the first time.
	LastSuccess time.Time
	// LastBest is when the best block last changed; zero before the first time.
	LastBest time.Time
	// Best and Finalized are the slots of the best and of the finalized block
	// among those delivered.
	Best, Finalized jamq.Slot
	// Behind is the number of slots by which Best is older than the newest head that the
	// nodes name now. The feed has not verified that head.
	Behind jamq.Slot
	// AnswerTime is how long the last request to a node took. A feed that is Behind
	// although no attempt fails has nodes whose answers take too long.
	AnswerTime time.Duration
	// Nodes is the number of nodes to which the feed is connected, of the
	// Wanted ones that it follows.
	Nodes, Wanted int
}

// String returns the condition of the feed in one line.
func (h FeedHealth) String() string {
	switch {
	case !h.Following:
		return "not following"
	case h.Failures > 0:
		return fmt.Sprintf("%d attempts failed since %s: %v", h.Failures, h.FailingSince.UTC().Format(time.RFC3339), h.LastError)
	case h.Behind > 0:
		return fmt.Sprintf("behind by %d slots; each answer takes %v", h.Behind, h.AnswerTime.Round(time.Millisecond))
	}
	return fmt.Sprintf("following; the best block is of slot %d", h.Best)
}

// ChainSink receives the blocks of a feed. A builder.Builder is one.
type ChainSink interface {
	// Import receives a block and the head of the best chain after it. The head
	// has been imported already, or is the block itself. An error that wraps
	// chainview.ErrFull means that finality has stood still for
	// chainview.MaxUnfinalized blocks. Nothing is changed: deliver newer finality
	// first, and the block again after it. Other errors end Follow.
	Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error
	// Finalize receives the hash of an imported block that has become final.
	Finalize(ctx context.Context, hash jamq.HeaderHash) error
}

// Recovery is the place at which a feed continues for a builder that has read its log.
type Recovery struct {
	// Finalized and Best are the last finalized block and the best block of the JAM
	// chain that the builder knows. A feed continues after Finalized. It may deliver
	// blocks again that the builder knows already.
	Finalized, Best anchor.Point
	// Out lists the packages that may be on the network, for a feed that follows
	// packages.
	Out []Out
	// Logger receives what the feed has to tell operators, unless the feed has another
	// logger. Nil means none.
	Logger *slog.Logger
}

// Out is a package that may be on the network: it was sent, and its bundle is
// not final.
type Out struct {
	// Number is the number of the bundle, Version the version of its package,
	// and Package the package's hash.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was last sent to.
	Core jamq.CoreIndex
	// Context holds the parts of its refine context that serve as evidence: the
	// anchor's hash and slot, the lookup anchor's slot, and the prerequisites.
	Context jamq.RefineContext
	// Reported, Available and Accumulated are the blocks of the best chain in
	// which the package was reported, became available and was accumulated. A
	// zero point means that this has not happened.
	Reported, Available, Accumulated anchor.Point
}
