package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/examples/refnode/devkeys"
	"github.com/jamq/jamq/examples/refnode/rpcapi"
)

var (
	// ErrUnsafe: something was lost or ran twice. What the node still has is not lost.
	ErrUnsafe = errors.New("load: lost, or executed twice")
	// ErrIncomplete: not all of it became final in time.
	ErrIncomplete = errors.New("load: not all is final")
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("load: invalid config")
)

// Config says how much to send.
type Config struct {
	// Rate is in transactions per second, at least 1. They are sent in batches, ten times a second at least.
	Rate int
	// Duration is for how long, at least a second.
	Duration time.Duration
	// Accounts is how many senders there are, at least 1: the node's funded ones, or as many new ones, which those pay first.
	Accounts int
	// Mixed sends legacy, access-list, dynamic-fee and set-code transactions, transfers and calls; else all are plain transfers.
	Mixed bool
	// Patience is how long what was sent may take to become final; 2 minutes by default.
	Patience time.Duration
}

// Validate names the first field that is out of range. The error wraps ErrInvalidConfig.
func (c *Config) Validate() error {
	switch {
	case c.Rate < 1 || c.Rate > 1e6:
		return fmt.Errorf("%w: Rate is %d, want 1 to 1000000", ErrInvalidConfig, c.Rate)
	case c.Duration < time.Second:
		return fmt.Errorf("%w: Duration is %v, want at least 1s", ErrInvalidConfig, c.Duration)
	case c.Accounts < 1 || c.Accounts > 100_000:
		return fmt.Errorf("%w: Accounts is %d, want 1 to 100000", ErrInvalidConfig, c.Accounts)
	}
	return nil
}

// Run sends the load to the node at url and prints the report, also of what was sent before ctx ended. The error wraps ErrUnsafe, ErrIncomplete, ErrInvalidConfig, or is the connection's.
func Run(ctx context.Context, url string, rich []devkeys.Account, cfg Config, out io.Writer) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Minute
	}
	raw, err := rpc.DialContext(ctx, url)
	if err != nil {
		return err
	}
	defer raw.Close()
	r := &runner{cfg: cfg, raw: raw, eth: ethclient.NewClient(raw), out: out}
	if cfg.Accounts > len(rich) {
		fmt.Fprintf(out, "funding %d accounts\n", cfg.Accounts)
	}
	if err := r.prepare(ctx, rich); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d accounts send %d transactions per second to %s for %v\n", len(r.senders), cfg.Rate, url, cfg.Duration)
	w := newWatcher(r.eth, r.raw, r.first)
	usage := processTime()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() { watched <- w.run(watching) }()
	began := time.Now()
	if err := r.send(ctx); err != nil && ctx.Err() == nil {
		return err
	} // who interrupts it gets the report of what was sent
	sending := time.Since(began)
	used := processTime() - usage
	r.overran = sending - cfg.Duration
	err = w.settle(ctx, r.accepted(), cfg.Patience)
	stop()
	if failed := <-watched; failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, r.report(context.WithoutCancel(ctx), w, began, sending, used))
}

// runner sends.
type runner struct {
	cfg     Config
	raw     *rpc.Client
	eth     *ethclient.Client
	out     io.Writer
	senders []*sender
	first   uint64 // the first block that can have our transactions
	counter common.Address
	signer  types.Signer
	chainID *big.Int

	sent    map[common.Hash]time.Time // of those that the node took
	refused map[string]int
	late    time.Duration // by how much sending fell behind at worst
	overran time.Duration // by how much it was behind at its end
}

func (r *runner) accepted() int { return len(r.sent) }

func (r *runner) status(ctx context.Context) (*rpcapi.QueueStatus, error) {
	var s rpcapi.QueueStatus
	return &s, r.raw.CallContext(ctx, &s, "jam_queueStatus")
}
