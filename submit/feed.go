package submit

import (
	"context"

	"github.com/jamq/jamq"
)

// ChainFeed delivers a JAM chain to a runner. Packages submit/jip2 and
// submit/jamnps implement it. A host that imports blocks itself can call the
// runner directly instead.
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

// ChainSink receives the blocks of a feed. [Runner] implements it.
type ChainSink interface {
	// Import receives a block and the head of the best chain after it. The head
	// has been imported already, or is the block itself.
	Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error
	// Finalize receives the hash of an imported block that has become final.
	Finalize(ctx context.Context, hash jamq.HeaderHash) error
}

var _ ChainSink = (*Runner[struct{}])(nil)
