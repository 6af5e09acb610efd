package submit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// ChainFeed delivers a JAM chain to a builder. Packages submit/jip2 and submit/jamnps implement it.
// A host that imports JAM blocks itself needs no feed: it can call the builder directly.
type ChainFeed interface {
	// Follow delivers blocks and finality to a sink until ctx ends, and then
	// returns ctx's error. Follow returns another error if it cannot continue,
	// because a missing block is no longer available or the sink refused a block.
	//
	// Follow delivers parents before their children, and calls the sink from one
	// goroutine at a time. Even if the connection is lost in between, the sink gets
	// every block of each chain that Follow reports as best or final.
	Follow(ctx context.Context, to ChainSink) error
}

// ErrContradiction means that a node contradicts itself or the blocks that were
// delivered before. The feed ignores such an answer and tries again.
// FeedHealth.LastContradiction wraps this error, and so does the error of an
// attempt that failed for this reason.
var ErrContradiction = errors.New("submit: a node contradicts itself")

// FeedHealth is the condition of a feed. A host uses it to notice, without reading
// logs, that its feed is stuck. If the feed fails, LastError is set. If LastError
// is nil but LastBest is many slots ago, either the chain itself is stuck or the
// node does not receive new blocks.
type FeedHealth struct {
	// Following is true while Follow runs.
	Following bool
	// Failures is the number of consecutive failed attempts to catch up with the nodes. An attempt
	// fails if one of the connected nodes fails. A successful attempt sets Failures to 0.
	Failures int
	// FailingSince is when the first of these failures happened; zero if Failures
	// is 0.
	FailingSince time.Time
	// LastError is the error of the last attempt; nil if the attempt succeeded.
	LastError error
	// Contradictions is how often the feed has refused a node's answer, because the
	// answer contradicted the node's other answers or the delivered blocks, or
	// because the node could not connect its blocks to them. A node that restarts
	// contradicts itself for a while. Many contradictions without a restart show
	// that the node is faulty or lies. LastContradiction is the newest
	// contradiction, which wraps ErrContradiction, or nil if there is none.
	Contradictions    int
	LastContradiction error
	// LastSuccess is the time of the last successful attempt, after which the feed
	// knew everything that its nodes knew; zero before the first one.
	LastSuccess time.Time
	// LastBest is the time at which the best block last changed; zero before the
	// first change.
	LastBest time.Time
	// Best and Finalized are the slots of the best block and of the finalized block that the feed
	// has delivered.
	Best, Finalized jamq.Slot
	// Behind is the number of slots by which Best is older than the newest head
	// that the nodes report. The feed has not verified that head yet.
	Behind jamq.Slot
	// AnswerTime is how long the last request to a node took; requests for the status of a
	// package count separately, and the longer of the two times is shown. If Behind is large
	// although no attempt fails, the reason is probably a large AnswerTime.
	AnswerTime time.Duration
	// Nodes is the number of nodes to which the feed is connected. Wanted is the number of nodes
	// that it follows.
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
	text := fmt.Sprintf("following; the best block is of slot %d", h.Best)
	if h.Contradictions > 0 {
		text += fmt.Sprintf("; %d contradictions were ignored, the last one: %v", h.Contradictions, h.LastContradiction)
	}
	return text
}

// ChainSink receives the blocks that a feed delivers. A builder.Builder is a ChainSink.
type ChainSink interface {
	// Import receives a block, and the hash of the best chain's head after this
	// block. The head is this block or a block that was imported earlier. If the
	// error wraps chainview.ErrFull, finality has not advanced for
	// chainview.MaxUnfinalized blocks, and the sink is unchanged. The feed then
	// delivers newer finality first, and this block again afterwards. After any
	// other error, Follow ends.
	Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error
	// Finalize receives the hash of an imported block that has become final.
	Finalize(ctx context.Context, hash jamq.HeaderHash) error
}

// Recovery tells a feed where to continue after a restart. A builder fills it from
// its log.
type Recovery struct {
	// Finalized and Best are the last finalized block and the best block of the JAM chain that the
	// builder knows. The feed delivers the blocks after Finalized. It may deliver blocks again that
	// the builder already knows.
	Finalized, Best anchor.Point
	// Out lists the packages that may be on the network. Feeds that follow single
	// packages, such as the feed of jip2, need them.
	Out []Out
	// Logger receives the feed's messages to operators, unless the feed has a logger already. Nil
	// discards these messages.
	Logger *slog.Logger
}

// Out is a package that may be on the network, because it was sent and its bundle
// is not final.
type Out struct {
	// Number is the number of the bundle. Version is the version of the bundle's package that was
	// sent, and Package is the hash of that package.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was last sent to.
	Core jamq.CoreIndex
	// Context has those parts of the package's refine context that a feed uses as
	// evidence about the package: the hash and slot of the anchor, the slot of the
	// lookup anchor, and the prerequisites.
	Context jamq.RefineContext
	// Reported, Available and Accumulated are the blocks of the best chain in which the package was
	// reported, became available and was accumulated. A zero point means that this has not
	// happened.
	Reported, Available, Accumulated anchor.Point
}
