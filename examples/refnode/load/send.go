package load

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/evmrollup/devkeys"
)

// sender is an account that sends transactions.
type sender struct {
	key     *ecdsa.PrivateKey
	address common.Address
	nonce   uint64
}

const (
	// maxBatch is the maximum number of transactions in a request.
	maxBatch = 200
	// tick is the maximum time between two batches.
	tick = 100 * time.Millisecond
	// funding is the amount that a new account receives, in ether.
	funding = 20
)

var (
	tip    = big.NewInt(params.GWei)
	feeCap = big.NewInt(1000 * params.GWei)
)

// counterCode is a contract that adds one to its slot 0.
var counterCode = []byte{0x5f, 0x54, 0x60, 0x01, 0x01, 0x5f, 0x55, 0x00}

// prepare sets up the senders and, for a mixed load, deploys the contract. It
// waits until the set-up is executed.
func (r *runner) prepare(ctx context.Context, rich []devkeys.Account) error {
	r.sent, r.refused = map[common.Hash]time.Time{}, map[string]int{}
	chainID, err := r.eth.ChainID(ctx)
	if err != nil {
		return err
	}
	r.signer = types.LatestSignerForChainID(chainID)
	r.chainID = chainID
	payers := make([]*sender, len(rich))
	for i, a := range rich {
		payers[i] = &sender{key: a.Key, address: a.Address}
		if payers[i].nonce, err = r.eth.PendingNonceAt(ctx, a.Address); err != nil {
			return err
		}
	}
	var setUp []*types.Transaction
	if r.cfg.Mixed {
		r.counter = crypto.CreateAddress(payers[0].address, payers[0].nonce)
		init := append([]byte{0x60, byte(len(counterCode)), 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3, 0x00}, counterCode...)
		tx, err := r.sign(payers[0], &types.DynamicFeeTx{ChainID: chainID, GasTipCap: tip, GasFeeCap: feeCap, Gas: 200_000, Data: init})
		if err != nil {
			return err
		}
		setUp = append(setUp, tx)
	}
	if r.senders = payers; r.cfg.Accounts > len(payers) {
		made, err := r.fund(payers)
		if err != nil {
			return err
		}
		setUp = append(setUp, made...)
	} else {
		r.senders = payers[:r.cfg.Accounts]
	}
	if err := r.settleSetUp(ctx, setUp); err != nil {
		return err
	}
	status, err := r.status(ctx)
	if err != nil {
		return err
	}
	r.first = uint64(status.Pending) + 1
	return nil
}

// fund creates new senders, and the transactions that fund them.
func (r *runner) fund(payers []*sender) (txs []*types.Transaction, err error) {
	r.senders = nil
	amount := new(big.Int).Mul(big.NewInt(funding), big.NewInt(params.Ether))
	for i := range r.cfg.Accounts {
		key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Appendf(nil, "jamq load %d %d", time.Now().UnixNano(), i)))
		if err != nil {
			return nil, err
		}
		s := &sender{key: key, address: crypto.PubkeyToAddress(key.PublicKey)}
		tx, err := r.sign(payers[i%len(payers)], &types.DynamicFeeTx{ChainID: r.chainID, GasTipCap: tip, GasFeeCap: feeCap, Gas: 21_000, To: &s.address, Value: amount})
		if err != nil {
			return nil, err
		}
		r.senders, txs = append(r.senders, s), append(txs, tx)
	}
	return txs, nil
}

// settleSetUp sends the set-up transactions and waits until they are executed.
// It sends refused transactions again.
func (r *runner) settleSetUp(ctx context.Context, txs []*types.Transaction) error {
	for len(txs) > 0 {
		part := txs[:min(maxBatch, len(txs))]
		errs, err := r.post(ctx, part)
		if err != nil {
			return err
		}
		var again []*types.Transaction
		for i, err := range errs {
			if err != nil {
				again = append(again, part[i])
			}
		}
		if txs = append(again, txs[len(part):]...); len(again) == 0 {
			continue
		}
		if err := sleep(ctx, tick); err != nil {
			return fmt.Errorf("load: accounts not funded: %w", errors.Join(append(errs, err)...))
		}
	}
	last := r.senders[len(r.senders)-1]
	for {
		balance, err := r.eth.PendingBalanceAt(ctx, last.address)
		if err != nil {
			return err
		}
		code, err := r.eth.PendingCodeAt(ctx, r.counter)
		if err != nil {
			return err
		}
		if balance.Sign() > 0 && (!r.cfg.Mixed || len(code) > 0) {
			return nil
		}
		if err := sleep(ctx, tick); err != nil {
			return fmt.Errorf("load: accounts not funded: %w", err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// sign gives a transaction the sender's next nonce.
func (r *runner) sign(s *sender, data types.TxData) (*types.Transaction, error) {
	switch d := data.(type) {
	case *types.LegacyTx:
		d.Nonce = s.nonce
	case *types.AccessListTx:
		d.Nonce = s.nonce
	case *types.DynamicFeeTx:
		d.Nonce = s.nonce
	case *types.SetCodeTx:
		d.Nonce = s.nonce
	}
	tx, err := types.SignNewTx(s.key, r.signer, data)
	if err == nil {
		s.nonce++
	}
	return tx, err
}

// next returns the i-th transaction of the load and its sender.
func (r *runner) next(i int) (*types.Transaction, *sender, error) {
	s := r.senders[i%len(r.senders)]
	to := &r.senders[(i*7+1)%len(r.senders)].address
	if !r.cfg.Mixed {
		tx, err := r.sign(s, &types.DynamicFeeTx{ChainID: r.chainID, GasTipCap: tip, GasFeeCap: feeCap, Gas: 21_000, To: to, Value: common.Big1})
		return tx, s, err
	}
	var data types.TxData
	switch i % 10 {
	case 0, 1, 2:
		data = &types.LegacyTx{GasPrice: feeCap, Gas: 21_000, To: to, Value: common.Big1}
	case 3:
		list := types.AccessList{{Address: r.counter, StorageKeys: []common.Hash{{}}}}
		data = &types.AccessListTx{ChainID: r.chainID, GasPrice: feeCap, Gas: 60_000, To: &r.counter, AccessList: list}
	case 4, 5:
		data = &types.DynamicFeeTx{ChainID: r.chainID, GasTipCap: tip, GasFeeCap: feeCap, Gas: 60_000, To: &r.counter}
	case 6:
		set, err := r.setCode(i, to)
		if err != nil {
			return nil, nil, err
		}
		data = set
	default:
		data = &types.DynamicFeeTx{ChainID: r.chainID, GasTipCap: tip, GasFeeCap: feeCap, Gas: 21_000, To: to, Value: common.Big1}
	}
	tx, err := r.sign(s, data)
	return tx, s, err
}

// setCode returns a transaction that delegates a new account to the counter
// (EIP-7702).
func (r *runner) setCode(i int, to *common.Address) (*types.SetCodeTx, error) {
	key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Appendf(nil, "jamq load delegate %d %d", time.Now().UnixNano(), i)))
	if err != nil {
		return nil, err
	}
	id := uint256.MustFromBig(r.chainID)
	auth, err := types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *id, Address: r.counter})
	return &types.SetCodeTx{
		ChainID: id, GasTipCap: uint256.MustFromBig(tip), GasFeeCap: uint256.MustFromBig(feeCap), Gas: 100_000, To: *to, AuthList: []types.SetCodeAuthorization{auth},
	}, err
}

// send sends transactions at the configured rate for the configured time. If
// the node refuses one, send counts it, and the sender uses the nonce again.
func (r *runner) send(ctx context.Context) error {
	began, total := time.Now(), int(float64(r.cfg.Rate)*r.cfg.Duration.Seconds())
	for i := 0; i < total; {
		due := min(int(float64(r.cfg.Rate)*time.Since(began).Seconds())+1, total)
		n := min(due-i, maxBatch)
		if n <= 0 {
			if err := sleep(ctx, min(tick, time.Second/time.Duration(r.cfg.Rate)+time.Millisecond)); err != nil {
				return err
			}
			continue
		}
		r.late = max(r.late, time.Since(began)-time.Duration(float64(i)/float64(r.cfg.Rate)*float64(time.Second)))
		if err := r.sendBatch(ctx, i, n); err != nil {
			return err
		}
		i += n
		if wait := tick - time.Since(began)%tick; due-i < maxBatch && i < total {
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
	return sleep(ctx, r.cfg.Duration-time.Since(began))
}

func (r *runner) sendBatch(ctx context.Context, first, n int) error {
	txs, senders := make([]*types.Transaction, n), make([]*sender, n)
	for i := range txs {
		var err error
		if txs[i], senders[i], err = r.next(first + i); err != nil {
			return err
		}
	}
	at := time.Now()
	errs, err := r.postAll(ctx, txs, func(i int) int { return (first + i) % len(r.senders) })
	if err != nil {
		return err
	}
	for i, err := range errs {
		if err == nil {
			r.sent[txs[i].Hash()] = at
			continue
		}
		r.refused[err.Error()]++
		// The sender's later transactions may wait behind the nonce gap.
		if senders[i].nonce, err = r.eth.PendingNonceAt(ctx, senders[i].address); err != nil {
			return err
		}
	}
	return nil
}

// connections is the number of requests under way, because users do not wait for each other.
const connections = 16

// postAll sends transactions in several requests at once, each sender's in one of them, and
// returns the node's answer to each.
func (r *runner) postAll(ctx context.Context, txs []*types.Transaction, sender func(i int) int) ([]error, error) {
	var parts [connections][]int
	for i := range txs {
		to := sender(i) % connections
		parts[to] = append(parts[to], i)
	}
	answers := make([]error, len(txs))
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		group.Go(func() error {
			some := make([]*types.Transaction, len(part))
			for i, at := range part {
				some[i] = txs[at]
			}
			errs, err := r.post(ctx, some)
			for i := range errs {
				answers[part[i]] = errs[i]
			}
			return err
		})
	}
	return answers, group.Wait()
}

// post sends transactions in one request and returns the node's answer to each.
func (r *runner) post(ctx context.Context, txs []*types.Transaction) ([]error, error) {
	batch := make([]rpc.BatchElem, len(txs))
	for i, tx := range txs {
		raw, err := tx.MarshalBinary()
		if err != nil {
			return nil, err
		}
		batch[i] = rpc.BatchElem{Method: "eth_sendRawTransaction", Args: []any{hexutil.Encode(raw)}, Result: new(common.Hash)}
	}
	if err := r.raw.BatchCallContext(ctx, batch); err != nil {
		return nil, err
	}
	errs := make([]error, len(txs))
	for i := range batch {
		errs[i] = batch[i].Error
	}
	return errs, nil
}
