//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/txpool"
)

// judge compares every block of a node with the book of the senders. It trusts
// no receipt and nothing that the queue says.
type judge struct {
	client *ethclient.Client
	book   *book
	funded []devkeys.Account // the accounts of the genesis block

	// By the blocks: where each transaction is, which one used a nonce, and the
	// accounts afterwards.
	found    map[common.Hash][]uint64
	at       map[nonceOf]common.Hash
	nonces   map[common.Address]uint64
	balances map[common.Address]*big.Int
	head     *types.Block // the newest

	// reasons counts acknowledged transactions that are in no block, by the reason
	// that the node has recorded. lost are those without one. twice are
	// transactions in more than one block. problems describes all that is wrong,
	// one line each, at most maxProblems.
	reasons     map[string]int
	lost, twice []common.Hash
	problems    []string
}

// nonceOf names a nonce of an account.
type nonceOf struct {
	sender common.Address
	nonce  uint64
}

// maxProblems bounds how many problems are listed.
const maxProblems = 30

func (j *judge) problem(format string, args ...any) {
	if len(j.problems) < maxProblems {
		j.problems = append(j.problems, fmt.Sprintf(format, args...))
	}
}

// pass reads everything and returns an error only if the node cannot be asked.
// Everything that is wrong is in problems afterwards.
func (j *judge) pass(ctx context.Context) error {
	j.found, j.at = make(map[common.Hash][]uint64), make(map[nonceOf]common.Hash)
	j.nonces, j.balances = make(map[common.Address]uint64), make(map[common.Address]*big.Int)
	j.reasons = make(map[string]int)
	for _, step := range []func(context.Context) error{j.readBlocks, j.checkOffers, j.checkAccounts, j.checkService} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readBlocks reads every block up to the finalized one and applies its transfers.
func (j *judge) readBlocks(ctx context.Context) error {
	wealth := new(big.Int).Mul(big.NewInt(10_000), big.NewInt(params.Ether))
	for _, a := range j.funded {
		j.balances[a.Address] = new(big.Int).Set(wealth)
	}
	final, err := j.client.HeaderByNumber(ctx, big.NewInt(rpc.FinalizedBlockNumber.Int64()))
	if err != nil {
		return err
	}
	for number := uint64(0); number <= final.Number.Uint64(); number++ {
		b, err := j.client.BlockByNumber(ctx, new(big.Int).SetUint64(number))
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		if j.head != nil && b.ParentHash() != j.head.Hash() {
			j.problem("block %d has the parent %s, want %s", number, b.ParentHash(), j.head.Hash())
		}
		j.head = b
		for _, tx := range b.Transactions() {
			j.apply(b, tx)
		}
		if want := params.TxGas * uint64(len(b.Transactions())); b.GasUsed() != want {
			j.problem("block %d used %d gas, want %d for its transfers", number, b.GasUsed(), want)
		}
	}
	return nil
}

// apply applies one transfer of a block.
func (j *judge) apply(b *types.Block, tx *types.Transaction) {
	o := j.book.offers[tx.Hash()]
	if o == nil {
		j.problem("block %d holds %s, which no sender has signed", b.NumberU64(), tx.Hash())
		return
	}
	j.found[tx.Hash()] = append(j.found[tx.Hash()], b.NumberU64())
	if want := j.nonces[o.sender]; tx.Nonce() != want {
		j.problem("block %d holds nonce %d of %s, want %d", b.NumberU64(), tx.Nonce(), o.sender, want)
	}
	j.nonces[o.sender] = tx.Nonce() + 1
	j.at[nonceOf{o.sender, tx.Nonce()}] = tx.Hash()
	tip := new(big.Int).Sub(tx.GasFeeCap(), b.BaseFee())
	if tip.Cmp(tx.GasTipCap()) > 0 {
		tip.Set(tx.GasTipCap())
	}
	gas := new(big.Int).SetUint64(params.TxGas)
	tip.Mul(tip, gas)
	cost := new(big.Int).Mul(b.BaseFee(), gas)
	cost.Add(cost, tip).Add(cost, tx.Value())
	j.add(o.sender, cost.Neg(cost))
	j.add(*tx.To(), tx.Value())
	j.add(b.Coinbase(), tip)
}

func (j *judge) add(to common.Address, amount *big.Int) {
	if j.balances[to] == nil {
		j.balances[to] = new(big.Int)
	}
	j.balances[to].Add(j.balances[to], amount)
}

// checkOffers looks for each transaction of the book in the blocks.
func (j *judge) checkOffers(ctx context.Context) error {
	for hash, o := range j.book.offers {
		blocks := j.found[hash]
		if len(blocks) > 1 {
			j.twice = append(j.twice, hash)
			j.problem("%s is in the blocks %v", hash, blocks)
		}
		if len(blocks) > 0 && o.fate == refused {
			j.problem("%s was refused, and is in block %d", hash, blocks[0])
		}
		if len(blocks) > 0 || o.fate != acknowledged {
			continue
		}
		if err := j.checkReason(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// checkReason checks the recorded reason of an acknowledged transaction that is
// in no block. The only good reasons are that another transaction of the same
// sender and nonce replaced it, or ran before it.
func (j *judge) checkReason(ctx context.Context, o *offer) error {
	hash := o.tx.Hash()
	var status *rpcapi.TransactionStatus
	if err := j.client.Client().CallContext(ctx, &status, "jam_getTransactionStatus", hash); err != nil {
		return err
	}
	rival, ran := j.at[nonceOf{o.sender, o.tx.Nonce()}]
	switch {
	case status == nil:
		j.lost = append(j.lost, hash)
		j.problem("%s (nonce %d of %s) is in no block, and its status is null", hash, o.tx.Nonce(), o.sender)
	case status.Status == "replaced" && status.ReplacedBy != nil && ran && *status.ReplacedBy == rival:
		j.reasons["replaced"]++
	case status.Status == "dropped" && ran && strings.Contains(*status.Reason, txpool.ErrNonceTooLow.Error()):
		j.reasons["dropped: its replacement ran"]++
	default:
		reason := status.Status
		if status.Reason != nil {
			reason += ": " + *status.Reason
		}
		j.reasons[reason]++
		j.problem("%s (nonce %d of %s) is in no block: %s; its nonce was used by %s", hash, o.tx.Nonce(), o.sender, reason, rival)
	}
	return nil
}

// checkAccounts compares balances and nonces by the blocks with those of the
// node's state.
func (j *judge) checkAccounts(ctx context.Context) error {
	for _, account := range slices.SortedFunc(maps.Keys(j.balances), common.Address.Cmp) {
		balance, err := j.client.BalanceAt(ctx, account, j.head.Number())
		if err != nil {
			return err
		}
		if balance.Cmp(j.balances[account]) != 0 {
			j.problem("%s has %v wei, want %v by the blocks", account, balance, j.balances[account])
		}
		nonce, err := j.client.NonceAt(ctx, account, j.head.Number())
		if err != nil {
			return err
		}
		if nonce != j.nonces[account] {
			j.problem("%s has nonce %d, want %d by the blocks", account, nonce, j.nonces[account])
		}
	}
	return nil
}

// checkService compares the blocks with the packages that the JAM chain itself
// accumulated.
func (j *judge) checkService(ctx context.Context) error {
	var s rpcapi.QueueStatus
	if err := j.client.Client().CallContext(ctx, &s, "jam_queueStatus"); err != nil {
		return err
	}
	last := j.head.NumberU64()
	if uint64(s.Pending) != last {
		j.problem("the newest block is %d, want the finalized block %d", s.Pending, last)
	}
	if len(s.Service.Duplicates) > 0 || len(s.Service.Gaps) > 0 {
		j.problem("JAM accumulated the blocks %v twice, and the blocks %v out of order", s.Service.Duplicates, s.Service.Gaps)
	}
	if uint64(s.Service.First) != min(last, 1) || uint64(s.Service.Last) != last || uint64(s.Service.Accumulated) != last {
		j.problem("JAM accumulated %d packages of the blocks %d to %d, want one for each of 1 to %d",
			s.Service.Accumulated, s.Service.First, s.Service.Last, last)
	}
	if s.Service.Root != j.head.Root() || s.CanonicalRoot != j.head.Root() {
		j.problem("state root %s on JAM and %s in the node, want %s of block %d", s.Service.Root, s.CanonicalRoot, j.head.Root(), last)
	}
	return nil
}
