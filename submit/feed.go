package submit

import (
	"context"

	"github.com/jamq/jamq"
)

// ChainFeed shows a JAM chain to a runner: submit/jip2 and submit/jamnps have one each, and a host
// that imports blocks itself may be its own.
type ChainFeed interface {
	// Follow delivers blocks and finality to a sink until ctx ends, then it returns ctx's error. It
	// delivers parents before children, leaves no block of a chain out that it calls best or final,
	// whatever happens to its connection, and calls the sink from one goroutine at a time. Another
	// error means that it cannot go on: what is missing is gone, or the sink refused a block.
	Follow(ctx context.Context, to ChainSink) error
}

// ChainSink takes what a feed delivers. A [Runner] is one.
type ChainSink interface {
	// Import takes a block and the head of the best chain after it, which has been imported, too.
	Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error
	// Finalize takes a block that was imported and is final now.
	Finalize(ctx context.Context, hash jamq.HeaderHash) error
}

var _ ChainSink = (*Runner[struct{}])(nil)
