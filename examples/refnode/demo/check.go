package demo

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"text/tabwriter"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/rpcapi"
)

// shown are the states with a column in the table.
var shown = []string{"queued", "submitted", "guaranteed", "accumulated", "finalized"}

// table prints the bundles from first to last. For each state it prints the JAM
// slot in which the bundle last entered it, relative to the earliest slot.
func (c *client) table(ctx context.Context, first, last uint64) error {
	bundles, base, err := c.bundles(ctx, first, last)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nbundles (JAM slots, counted from slot %d)\n", base)
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "block\ttxs\tversions\tattempts\tcore\t%s\tpackage\t\n", strings.Join(shown, "\t"))
	for _, b := range bundles {
		attempts, pkg := 0, "-"
		for _, v := range b.Versions {
			attempts += v.Attempts
		}
		if b.WorkPackageHash != nil {
			pkg = b.WorkPackageHash.Short()
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t", b.Number, len(b.Transactions), len(b.Versions), attempts, b.Core)
		for _, state := range shown {
			if slot, ok := b.Slots[state]; ok {
				fmt.Fprintf(w, "%d\t", slot-base)
			} else {
				fmt.Fprint(w, "-\t")
			}
		}
		fmt.Fprintf(w, "%s\t\n", pkg)
	}
	return w.Flush()
}

// bundles returns the bundles from first to last, and the earliest of their
// slots.
func (c *client) bundles(ctx context.Context, first, last uint64) (bundles []*rpcapi.Bundle, base hexutil.Uint64, err error) {
	for number := first; number <= last; number++ {
		var b *rpcapi.Bundle
		if err := c.raw.CallContext(ctx, &b, "jam_getBundle", hexutil.Uint64(number)); err != nil {
			return nil, 0, err
		}
		if b == nil {
			return nil, 0, fmt.Errorf("%w: jam_getBundle does not know block %d", ErrIncomplete, number)
		}
		bundles = append(bundles, b)
	}
	for i, b := range bundles {
		if slot := b.Slots["queued"]; i == 0 || slot < base {
			base = slot
		}
	}
	return bundles, base, nil
}

// findings is the outcome of the checks.
type findings struct {
	finalized, lost, twice int
	bundles                int
	root                   common.Hash
	problems               []error
}

func (f *findings) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf(format, args...))
}

// verdict runs all checks through the RPC and prints the summary.
func (c *client) verdict(ctx context.Context, p *plan, before uint64) error {
	f := &findings{}
	for _, check := range []func(context.Context, *plan, uint64, *findings) error{c.checkInclusion, c.checkEffects, c.checkJAM, c.checkProofs} {
		if err := check(ctx, p, before, f); err != nil {
			return err
		}
	}
	if f.finalized != len(p.txs) {
		f.problem("%d of %d transactions are not final", len(p.txs)-f.finalized, len(p.txs))
	}
	for _, err := range f.problems {
		fmt.Fprintln(c.out, "problem:", err)
	}
	fmt.Fprintf(c.out, "%d/%d transactions finalized in %d bundles; %d lost; %d executed twice; canonical root %s\n",
		f.finalized, len(p.txs), f.bundles, f.lost, f.twice, f.root)
	if len(f.problems) > 0 {
		return fmt.Errorf("%w: %w", ErrIncomplete, errors.Join(f.problems...))
	}
	return nil
}

// checkInclusion reads every finalized block since the start and counts how
// often each transaction occurs.
func (c *client) checkInclusion(ctx context.Context, p *plan, before uint64, f *findings) error {
	head, err := c.BlockByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
	if err != nil {
		return err
	}
	f.root = head.Root()
	times := make(map[common.Hash]int)
	parent, err := c.HeaderByNumber(ctx, new(big.Int).SetUint64(before))
	if err != nil {
		return err
	}
	for number := before + 1; number <= head.NumberU64(); number++ {
		b, err := c.BlockByNumber(ctx, new(big.Int).SetUint64(number))
		if err != nil {
			return err
		}
		if b.ParentHash() != parent.Hash() {
			f.problem("the parent hash of block %d is not the hash of block %d", number, number-1)
		}
		parent = b.Header()
		for _, tx := range b.Transactions() {
			times[tx.Hash()]++
		}
		f.bundles++
	}
	for _, t := range p.txs {
		switch n := times[t.tx.Hash()]; {
		case n == 1:
			f.finalized++
		case n > 1:
			f.finalized++
			f.twice++
			f.problem("transaction %s is in %d blocks", t.tx.Hash(), n)
		default:
			if _, _, err := c.TransactionByHash(ctx, t.tx.Hash()); errors.Is(err, ethereum.NotFound) {
				f.lost++
				f.problem("transaction %s is lost", t.tx.Hash())
			}
		}
	}
	return nil
}

// checkEffects compares the finalized state with the expected effects of the
// transactions.
func (c *client) checkEffects(ctx context.Context, p *plan, _ uint64, f *findings) error {
	at := big.NewInt(int64(rpc.FinalizedBlockNumber))
	for _, t := range p.txs {
		r, err := c.TransactionReceipt(ctx, t.tx.Hash())
		if errors.Is(err, ethereum.NotFound) {
			continue // counted by checkInclusion
		}
		if err != nil {
			return err
		}
		if r.Status != types.ReceiptStatusSuccessful {
			f.problem("transaction %s failed", t.tx.Hash())
		}
		if t.kind == transfer {
			balance, err := c.BalanceAt(ctx, t.to, at)
			if err != nil {
				return err
			}
			if balance.Cmp(amount) != 0 && f.finalized == len(p.txs) {
				f.problem("recipient %s has %v wei, want %v: the transfer did not run exactly once", t.to, balance, amount)
			}
		}
	}
	if f.finalized != len(p.txs) {
		return nil
	}
	counted, err := c.StorageAt(ctx, p.counter, common.Hash{}, at)
	if err != nil {
		return err
	}
	if got := new(big.Int).SetBytes(counted).Uint64(); got != p.calls {
		f.problem("the contract counted %d calls, want %d", got, p.calls)
	}
	logs, err := c.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: common.Big0, ToBlock: at, Addresses: []common.Address{p.counter}, Topics: [][]common.Hash{{{31: counterTopic}}}})
	if err != nil {
		return err
	}
	if uint64(len(logs)) != p.calls {
		f.problem("the contract emitted %d logs, want %d", len(logs), p.calls)
	}
	for _, t := range p.txs {
		nonce, err := c.NonceAt(ctx, t.from, at)
		if err != nil {
			return err
		}
		if nonce <= t.tx.Nonce() {
			f.problem("account %s is at nonce %d, want more than %d", t.from, nonce, t.tx.Nonce())
		}
	}
	return nil
}

// checkJAM checks the blocks that the JAM chain accumulated. It must have
// accumulated every block once, each on the state of its predecessor, up to the
// canonical root.
func (c *client) checkJAM(ctx context.Context, _ *plan, before uint64, f *findings) error {
	s, err := c.status(ctx)
	if err != nil {
		return err
	}
	if n := len(s.Service.Duplicates); n > 0 {
		f.twice += n
		f.problem("JAM accumulated blocks %v again", s.Service.Duplicates)
	}
	if len(s.Service.Gaps) > 0 {
		f.problem("JAM accumulated blocks %v out of order", s.Service.Gaps)
	}
	if uint64(s.Service.Last) < before+uint64(f.bundles) {
		f.problem("JAM accumulated blocks up to %d, want at least %d, the finalized block", s.Service.Last, before+uint64(f.bundles))
	}
	if s.CanonicalRoot != f.root {
		f.problem("canonical root is %s, want the root of the finalized block, %s", s.CanonicalRoot, f.root)
	}
	return nil
}
