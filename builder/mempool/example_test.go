package mempool_test

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/txpool"
)

// batch is the body of a block.
type batch []*types.Transaction

// payments is a rollup whose state counts the transactions of each account.
type payments struct {
	*mempool.Pool
	*state
}

// state implements txpool.State.
type state struct {
	mu     sync.Mutex // the pool reads accounts concurrently with Apply and Undo
	nonces map[common.Address]uint64
	root   common.Hash // a hash of all executed transactions
}

func (s *state) Account(address common.Address) (txpool.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return txpool.Account{Nonce: s.nonces[address], Balance: *uint256.NewInt(1e18)}, nil
}

// set sets the root, and adds to the nonces of the senders of transactions.
func (s *state) set(root common.Hash, txs batch, by int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root = root
	for _, tx := range txs {
		from, err := types.Sender(signer, tx)
		if err != nil {
			return err
		}
		s.nonces[from] += uint64(by)
	}
	return nil
}

func (s *state) after(txs batch) common.Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.root
	for _, tx := range txs {
		root = crypto.Keccak256Hash(root[:], tx.Hash().Bytes())
	}
	return root
}

func (s *state) Root() common.Hash { return s.after(nil) }

func (r *payments) Propose(ctx context.Context, _ uint64) (txs batch, root common.Hash, err error) {
	session := r.Build(ctx, txpool.Budget{Count: 3, Gas: 30_000_000})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		txs = append(txs, tx)
		session.Used(gas, tx.Size())
	}
	if len(txs) == 0 {
		return nil, root, builder.ErrIdle
	}
	return txs, r.after(txs), nil
}

func (r *payments) Apply(_ context.Context, b builder.Block[batch]) error {
	if err := r.set(r.after(b.Body), b.Body, 1); err != nil {
		return err
	}
	r.Applied(txpool.Block{Transactions: b.Body})
	return nil
}

func (r *payments) Undo(_ context.Context, b builder.Block[batch]) error {
	return r.Undone(b.Number, txpool.Block{Transactions: b.Body}, func() error {
		return r.set(b.PreRoot, b.Body, -1)
	})
}

func (r *payments) Payload(_ context.Context, b builder.Block[batch]) ([]byte, error) {
	return rlp.EncodeToBytes(b.Body)
}

// newPayments returns a rollup at its genesis.
func newPayments() (*payments, error) {
	s := &state{nonces: make(map[common.Address]uint64)}
	pool, err := mempool.New(txpool.DefaultConfig(chainID), s, nil)
	return &payments{pool, s}, err
}

const gas = 21_000

var (
	chainID = big.NewInt(4359)
	signer  = types.LatestSignerForChainID(chainID)
)

// pay signs a transaction of a user, whose first one has the nonce 0.
func pay(user string, nonce uint64) []byte {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(user)))
	if err != nil {
		panic(err)
	}
	tx := types.MustSignNewTx(key, signer, &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(2e9), Gas: gas, To: new(common.Address)})
	raw, err := tx.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return raw
}

// A transaction that was accepted waits also after a restart, because it is in the
// builder's log.
func Example() {
	ctx := context.Background()
	network, err := simnet.Tiny(time.Second, 7, nil)
	if err != nil {
		panic(err)
	}
	log := new(journal.Memory) // or Pebble, to survive the process
	for range 2 {
		r, err := newPayments()
		if err != nil {
			panic(err)
		}
		b, err := builder.Open(ctx, builder.DefaultConfig(network.Spec()), log, r, network)
		if err != nil {
			panic(err)
		}
		fmt.Println("waiting:", r.Stats().Pending)
		fmt.Println("submitted:", b.Submit(ctx, pay("alice", uint64(r.Stats().Pending))))
	}
	// Output:
	// waiting: 0
	// submitted: <nil>
	// waiting: 1
	// submitted: <nil>
}
