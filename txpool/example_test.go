package txpool_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/txpool"
)

// allRich is a chain on which every account has an ether and no transaction.
type allRich struct{}

func (allRich) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

// transferOf returns a signed transfer of one of the example's users.
func transferOf(user string, nonce uint64, gwei int64) *types.Transaction {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(user)))
	if err != nil {
		panic(err)
	}
	return types.MustSignNewTx(key, types.LatestSignerForChainID(big.NewInt(4359)), &types.LegacyTx{
		Nonce: nonce, GasPrice: big.NewInt(gwei * 1e9), Gas: 100_000, To: &common.Address{1},
	})
}

func ExamplePool() {
	pool, err := txpool.New(txpool.DefaultConfig(big.NewInt(4359)), allRich{})
	if err != nil {
		panic(err)
	}
	for _, nonce := range []uint64{0, 2} {
		fmt.Println("nonce", nonce, pool.Add(transferOf("alice", nonce, 2)))
	}
	session := pool.Build(context.Background(), txpool.Budget{Gas: 30_000_000})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		fmt.Println("into the block: nonce", tx.Nonce())
	}
	fmt.Println("still waiting:", pool.Stats().Queued)
	// Output:
	// nonce 0 <nil>
	// nonce 2 <nil>
	// into the block: nonce 0
	// still waiting: 1
}

// A host passes events to a reader that may be slow through a channel. If the channel is full,
// the reader misses events, and the pool does not wait.
func ExampleEvent() {
	events := make(chan txpool.Event, 16)
	cfg := txpool.DefaultConfig(big.NewInt(4359))
	cfg.Observe = func(e txpool.Event) {
		select {
		case events <- e:
		default: // count it
		}
	}
	pool, err := txpool.New(cfg, allRich{})
	if err != nil {
		panic(err)
	}
	for _, gwei := range []int64{2, 3} {
		if err := pool.Add(transferOf("alice", 0, gwei)); err != nil {
			panic(err)
		}
	}
	for range 3 {
		event := <-events
		fmt.Println(event.Kind, event.Tx.GasPrice())
	}
	// Output:
	// pending 2000000000
	// replaced 2000000000
	// pending 3000000000
}

// A builder executes one transaction after the other and counts the gas that
// each used. A gas limit only decides whether a transaction may start.
func ExamplePool_Build() {
	pool, err := txpool.New(txpool.DefaultConfig(big.NewInt(4359)), allRich{})
	if err != nil {
		panic(err)
	}
	for i, user := range []string{"alice", "bob", "carol"} {
		if err := pool.Add(transferOf(user, 0, int64(10-i))); err != nil {
			panic(err)
		}
	}
	session := pool.Build(context.Background(), txpool.Budget{Gas: 130_000})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		session.Used(21_000, tx.Size()) // execute it before
		fmt.Println("gas price", tx.GasPrice(), "limit", tx.Gas())
	}
	// Output:
	// gas price 10000000000 limit 100000
	// gas price 9000000000 limit 100000
}

// A transaction that fails leaves the pool, and one that is postponed stays.
// The session takes no later transaction of either sender.
func ExampleSession() {
	pool, err := txpool.New(txpool.DefaultConfig(big.NewInt(4359)), allRich{})
	if err != nil {
		panic(err)
	}
	failing, postponed, good := transferOf("alice", 0, 10), transferOf("bob", 0, 9), transferOf("carol", 0, 8)
	for _, err := range pool.AddAll([]*types.Transaction{failing, postponed, transferOf("bob", 1, 9), good}) {
		if err != nil {
			panic(err)
		}
	}
	session := pool.Build(context.Background(), txpool.Budget{Gas: 30_000_000})
	for tx := session.Next(); tx != nil; tx = session.Next() {
		switch tx.Hash() {
		case failing.Hash():
			session.Fail(errors.New("the contract forbids it"))
		case postponed.Hash():
			session.Later()
		default:
			session.Used(21_000, tx.Size())
		}
	}
	fmt.Println("in the block:", len(session.Transactions()))
	fmt.Println(pool.Status(failing.Hash()), pool.Status(postponed.Hash()), pool.Status(good.Hash()))
	fmt.Println(errors.Is(pool.Add(failing), txpool.ErrQuarantined))
	// Output:
	// in the block: 1
	// unknown pending locked
	// true
}

// A host that has its own log appends what the pool has changed before it answers a user. The
// process can then end at any moment.
func ExamplePool_TakeChanges() {
	log := new(journal.Memory) // or one on the disk
	cfg := txpool.DefaultConfig(big.NewInt(4359))
	cfg.KeepChanges = true
	pool, err := txpool.New(cfg, allRich{})
	if err != nil {
		panic(err)
	}
	var writing sync.Mutex // the log has the changes in their order
	send := func(tx *types.Transaction) error {
		if err := pool.Add(tx); err != nil {
			return err
		}
		writing.Lock()
		defer writing.Unlock()
		return log.Append(pool.TakeChanges()...) // after an error the host begins again
	}
	fmt.Println("alice:", send(transferOf("alice", 0, 2)))
	fmt.Println("alice pays more:", send(transferOf("alice", 0, 3)))
	fmt.Println("bob:", send(transferOf("bob", 0, 2)))

	// The process ends, and another one begins with the log.
	pool, err = txpool.New(cfg, allRich{})
	if err != nil {
		panic(err)
	}
	err = log.Replay(func(record []byte) error { pool.ReplayChange(record); return nil })
	fmt.Println("restored:", pool.Restore().Transactions, err)
	for tx := range pool.Snapshot().All() {
		fmt.Println(tx.GasPrice())
	}
	// Output:
	// alice: <nil>
	// alice pays more: <nil>
	// bob: <nil>
	// restored: 2 <nil>
	// 3000000000
	// 2000000000
}
