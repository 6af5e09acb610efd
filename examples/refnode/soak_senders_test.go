//go:build unix

package main

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/txpool"
)

// fate is the node's answer to a transaction that was sent.
type fate int

const (
	// unanswered: no answer came, so the node may have the transaction or not.
	unanswered fate = iota
	// refused: each send was answered with an error.
	refused
	// acknowledged: a send returned without an error, or the node said that it
	// knows the transaction.
	acknowledged
)

// offer is a signed transaction that a sender has sent.
type offer struct {
	tx     *types.Transaction
	sender common.Address
	fate   fate
}

// book holds every offer. It is safe for concurrent use.
type book struct {
	mu     sync.Mutex
	offers map[common.Hash]*offer
	acked  []common.Hash // in order of acknowledgement
}

// note adds an offer, or changes its fate. An acknowledgement is never taken
// back, and a refusal does not answer an earlier send without an answer.
func (b *book) note(tx *types.Transaction, sender common.Address, f fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, before := b.offers[tx.Hash()]
	if !before {
		o = &offer{tx: tx, sender: sender, fate: f}
		b.offers[tx.Hash()] = o
	}
	if f == acknowledged && (!before || o.fate != acknowledged) {
		b.acked = append(b.acked, tx.Hash())
	}
	if before && (f == acknowledged || f == unanswered && o.fate == refused) {
		o.fate = f
	}
}

// count returns how many offers have a fate.
func (b *book) count(f fate) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.offers {
		if o.fate == f {
			n++
		}
	}
	return n
}

// sample returns the hash of an acknowledged transaction, or false if there is
// none. One of the newest 2,000 is returned as often as any other.
func (b *book) sample(random *rand.Rand) (common.Hash, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.acked) == 0 {
		return common.Hash{}, false
	}
	from := 0
	if random.IntN(2) == 0 {
		from = max(0, len(b.acked)-2000)
	}
	return b.acked[from+random.IntN(len(b.acked)-from)], true
}

// soakSender keeps its account's room in the pool full.
type soakSender struct {
	t       *testing.T
	account devkeys.Account
	to      common.Address // of all its transfers
	book    *book
	client  *ethclient.Client
	random  *rand.Rand
	pause   time.Duration // between two looks for room in the pool
	nonce   uint64
}

// run sends until ctx ends. A transaction without an answer is sent again, byte
// for byte, until the node answers.
func (s *soakSender) run(ctx context.Context) {
	for ctx.Err() == nil {
		tx := s.sign(s.to, big.NewInt(7), 1)
		err := s.send(ctx, tx)
		switch {
		case err == nil, isAny(err, txpool.ErrNonceTooLow):
			if s.random.IntN(50) == 0 {
				s.replace(ctx)
			}
			s.nonce++
		case isAny(err, txpool.ErrSenderLimit, txpool.ErrPoolFull, txpool.ErrNonceTooHigh):
			s.wait(ctx)
		case isAnswer(err):
			s.t.Errorf("nonce %d of %s refused: %v", s.nonce, s.account.Address, err)
			return
		default:
			s.wait(ctx)
		}
	}
}

// replace offers another transaction with the nonce of the last one, once, for
// twice its tip. The node may refuse it, because the last one is in a block.
func (s *soakSender) replace(ctx context.Context) {
	err := s.send(ctx, s.sign(s.to, big.NewInt(7), 2))
	if err != nil && isAnswer(err) && !isAny(err, txpool.ErrNonceTooLow, txpool.ErrInBundle, txpool.ErrReplaceTooOften, txpool.ErrReplaceUnderpriced) {
		s.t.Errorf("replacement of nonce %d of %s refused: %v", s.nonce, s.account.Address, err)
	}
}

// sign signs a transfer with the sender's nonce and a tip in gwei.
func (s *soakSender) sign(to common.Address, value *big.Int, tip int64) *types.Transaction {
	return types.MustSignNewTx(s.account.Key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: s.nonce, GasTipCap: big.NewInt(tip * params.GWei), GasFeeCap: big.NewInt(10 * tip * params.GWei),
		Gas: params.TxGas, To: &to, Value: value,
	})
}

// answerTime bounds the wait for the answer to one send.
const answerTime = 10 * time.Minute

// send sends a transaction once and notes the answer. An answer that the node
// knows the transaction is no error.
func (s *soakSender) send(ctx context.Context, tx *types.Transaction) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	err := s.client.SendTransaction(ctx, tx)
	if isAny(err, txpool.ErrAlreadyKnown) {
		err = nil
	}
	switch {
	case err == nil:
		s.book.note(tx, s.account.Address, acknowledged)
	case isAnswer(err):
		s.book.note(tx, s.account.Address, refused)
	default:
		s.book.note(tx, s.account.Address, unanswered)
	}
	return err
}

// wait paces the sender while its room is full or the node is down.
func (s *soakSender) wait(ctx context.Context) {
	wait.Pace(ctx, s.pause)
}

// isAnswer reports whether an error is the node's answer.
func isAnswer(err error) bool {
	var coded rpc.Error
	return errors.As(err, &coded)
}

// isAny reports whether an error is an answer with the text of one of the
// pool's errors.
func isAny(err error, candidates ...error) bool {
	if err == nil || !isAnswer(err) {
		return false
	}
	for _, c := range candidates {
		if strings.Contains(err.Error(), c.Error()) {
			return true
		}
	}
	return false
}
