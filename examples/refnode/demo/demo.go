package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/rpcapi"
)

// ErrIncomplete means that a check failed, or that the transactions did not
// become final in time.
var ErrIncomplete = errors.New("demo: incomplete")

// timeout is the maximum duration of a demonstration.
const timeout = 3 * time.Minute

// client is a connection to the node under test.
type client struct {
	*ethclient.Client
	raw *rpc.Client
	out io.Writer
}

// Run sends n transactions to the node at url, shows their progress and prints
// a table of bundles. It returns nil only if all checks through the RPC
// succeeded. The last line is a summary.
func Run(ctx context.Context, url string, accounts []devkeys.Account, n int, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%v have passed", timeout))
	defer cancel()
	raw, err := rpc.DialContext(ctx, url)
	if err != nil {
		return err
	}
	defer raw.Close()
	c := &client{Client: ethclient.NewClient(raw), raw: raw, out: out}

	chainID, err := c.ChainID(ctx)
	if err != nil {
		return err
	}
	first, err := c.BlockNumber(ctx)
	if err != nil {
		return err
	}
	p, err := c.plan(ctx, accounts, chainID, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "node at %s, chain id %v; sending %d transactions from %d accounts\n", url, chainID, n, len(accounts))
	for i, t := range p.txs {
		if err := c.SendTransaction(ctx, t.tx); err != nil {
			return fmt.Errorf("transaction %d of %d refused: %w", i+1, n, err)
		}
	}
	watchErr := c.watch(ctx, p)
	status, err := c.status(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if err := c.table(context.WithoutCancel(ctx), first+1, uint64(status.Pending)); err != nil {
		return err
	}
	return errors.Join(watchErr, c.verdict(context.WithoutCancel(ctx), p, first))
}

func (c *client) plan(ctx context.Context, accounts []devkeys.Account, chainID *big.Int, n int) (*plan, error) {
	nonces := make(map[common.Address]uint64, len(accounts))
	for _, a := range accounts {
		nonce, err := c.PendingNonceAt(ctx, a.Address)
		if err != nil {
			return nil, err
		}
		nonces[a.Address] = nonce
	}
	return traffic(accounts, nonces, chainID, n)
}

func (c *client) status(ctx context.Context) (*rpcapi.QueueStatus, error) {
	var s rpcapi.QueueStatus
	return &s, c.raw.CallContext(ctx, &s, "jam_queueStatus")
}

// isTerminal reports whether w is a terminal, or another device that is no file.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// refresh is the interval at which the progress line is redrawn.
const refresh = 200 * time.Millisecond

// watch draws a progress line until every transaction is in a finalized block.
// If the output is not a terminal, it prints a new line each time, and fewer of
// them.
func (c *client) watch(ctx context.Context, p *plan) error {
	begin, end, every := "\r\033[K", "", 1
	if !isTerminal(c.out) {
		begin, end, every = "", "\n", 5
	}
	defer fmt.Fprintln(c.out)
	var base hexutil.Uint64 // the first slot seen
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for polls := 0; ; polls++ {
		final, err := c.finalized(ctx, p)
		if err != nil {
			return err
		}
		s, err := c.status(ctx)
		if err != nil {
			return err
		}
		if base == 0 {
			base = s.JAMSlot
		}
		if polls%every == 0 || final == len(p.txs) {
			fmt.Fprintf(c.out, "%s%s %d/%d final | slot +%d | pending %d latest %d finalized %d | queued %d submitted %d guaranteed %d accumulated %d | %d packages, %d died%s",
				begin, bar(final, len(p.txs)), final, len(p.txs), s.JAMSlot-base, s.Pending, s.Latest, s.Finalized,
				s.Bundles["queued"], s.Bundles["submitted"], s.Bundles["guaranteed"], s.Bundles["accumulated"], s.Packages, s.Died, end)
		}
		if final == len(p.txs) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d transactions are final: %w", ErrIncomplete, final, len(p.txs), context.Cause(ctx))
		}
	}
}

// bar draws a progress bar of twenty characters.
func bar(done, all int) string {
	const places = 20
	full := places * done / all
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", places-full) + "]"
}

// finalized counts the transactions whose receipt is in a finalized block.
func (c *client) finalized(ctx context.Context, p *plan) (int, error) {
	head, err := c.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
	if err != nil {
		return 0, err
	}
	batch := make([]rpc.BatchElem, len(p.txs))
	blocks := make([]struct {
		BlockNumber *rpc.BlockNumber `json:"blockNumber"`
	}, len(p.txs))
	for i, t := range p.txs {
		batch[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{t.tx.Hash()}, Result: &blocks[i]}
	}
	if err := c.batch(ctx, batch); err != nil {
		return 0, err
	}
	final := 0
	for _, b := range blocks {
		if b.BlockNumber != nil && b.BlockNumber.Int64() <= head.Number.Int64() {
			final++
		}
	}
	return final, nil
}

// maxBatch is the number of calls in a batch, below the server's limit.
const maxBatch = 500

func (c *client) batch(ctx context.Context, elems []rpc.BatchElem) error {
	for len(elems) > 0 {
		part := elems[:min(maxBatch, len(elems))]
		elems = elems[len(part):]
		if err := c.raw.BatchCallContext(ctx, part); err != nil {
			return err
		}
		for _, e := range part {
			if e.Error != nil {
				return fmt.Errorf("%s: %w", e.Method, e.Error)
			}
		}
	}
	return nil
}
