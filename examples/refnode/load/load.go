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

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/rpcapi"
)

var (
	// ErrUnsafe means that a transaction was lost or executed twice. A
	// transaction that the node still has is not lost.
	ErrUnsafe = errors.New("load: transactions were lost or executed twice")
	// ErrIncomplete means that some transactions did not become final in time.
	ErrIncomplete = errors.New("load: not all transactions are final")
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("load: invalid config")
)

// Config defines the load.
type Config struct {
	// Rate is the number of transactions per second, 1 to 1000000. They are
	// sent in batches, at least every 100 ms.
	Rate int
	// Duration is the time during which transactions are sent, at least 1s.
	Duration time.Duration
	// Accounts is the number of senders, 1 to 100000. Up to the number of the
	// node's funded accounts, these send themselves. Otherwise they first fund
	// that many new accounts.
	Accounts int
	// Mixed sends all transaction types (legacy, access-list, dynamic-fee and
	// set-code), both transfers and calls. If it is false, all transactions are
	// plain transfers.
	Mixed bool
	// Timeout is the maximum time from the end of sending until all
	// transactions are final. 0 means 2 minutes.
	Timeout time.Duration
}

// Validate returns an error that names the first field out of range. The error
// wraps ErrInvalidConfig.
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

// Run sends the load to the node at url and prints a report. If ctx ends, it
// reports on the transactions sent until then. It returns an error that wraps
// ErrUnsafe, ErrIncomplete or ErrInvalidConfig, or an error of the connection.
func Run(ctx context.Context, url string, rich []devkeys.Account, cfg Config, out io.Writer) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Minute
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
	}
	// After an interruption the report covers the transactions sent until then.
	sending := time.Since(began)
	used := processTime() - usage
	r.overran = sending - cfg.Duration
	err = w.settle(ctx, r.accepted(), cfg.Timeout)
	stop()
	if failed := <-watched; failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, r.report(context.WithoutCancel(ctx), w, began, sending, used))
}

// runner sends the load and counts the answers.
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

	sent    map[common.Hash]time.Time // accepted transactions, by hash
	refused map[string]int
	late    time.Duration // maximum lag of sending
	overran time.Duration // lag at the end of sending
}

func (r *runner) accepted() int { return len(r.sent) }

func (r *runner) status(ctx context.Context) (*rpcapi.QueueStatus, error) {
	var s rpcapi.QueueStatus
	return &s, r.raw.CallContext(ctx, &s, "jam_queueStatus")
}
