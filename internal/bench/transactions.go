package main

import (
	"crypto/ecdsa"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

const gwei = 1_000_000_000

// people is a set of accounts with keys.
type people struct {
	keys      []*ecdsa.PrivateKey
	addresses []common.Address
}

func newPeople(n int) *people {
	p := &people{make([]*ecdsa.PrivateKey, n), make([]common.Address, n)}
	parallel(n, func(i int) {
		key, err := crypto.ToECDSA(crypto.Keccak256(binary.BigEndian.AppendUint64([]byte("bench"), uint64(i))))
		must(err)
		p.keys[i], p.addresses[i] = key, crypto.PubkeyToAddress(key.PublicKey)
	})
	return p
}

// payment describes a transaction.
type payment struct {
	from  int
	nonce uint64
	tip   int64 // wei per gas
}

// sign returns signed transfers. Their hash, size and sender are cached, as
// after decoding and checking.
func (p *people) sign(payments []payment) []*types.Transaction {
	txs := make([]*types.Transaction, len(payments))
	parallel(len(payments), func(i int) {
		pay := payments[i]
		txs[i] = types.MustSignNewTx(p.keys[pay.from], signer, &types.DynamicFeeTx{
			ChainID: chainID, Nonce: pay.nonce, GasTipCap: big.NewInt(pay.tip), GasFeeCap: big.NewInt(2 * pay.tip),
			Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
		})
		txs[i].Hash()
		txs[i].Size()
		sender(txs[i])
	})
	return txs
}

// once returns one payment of each account in a range, at random prices of 2 to
// 100 gwei.
func once(from, to int, seed uint64) []payment {
	r := rand.New(rand.NewPCG(seed, 0))
	payments := make([]payment, 0, to-from)
	for i := from; i < to; i++ {
		payments = append(payments, payment{i, 0, 2*gwei + r.Int64N(98*gwei)})
	}
	return payments
}

// shuffled returns several payments of each account, in random order.
func shuffled(senders, nonces int, seed uint64) []payment {
	r := rand.New(rand.NewPCG(seed, 0))
	var payments []payment
	for i := range senders {
		for n := range nonces {
			payments = append(payments, payment{i, uint64(n), 2*gwei + r.Int64N(98*gwei)})
		}
	}
	r.Shuffle(len(payments), func(i, j int) { payments[i], payments[j] = payments[j], payments[i] })
	return payments
}

// dearer returns the same payments at a multiple of their price.
func dearer(payments []payment, by int64) []payment {
	more := make([]payment, len(payments))
	for i, p := range payments {
		more[i] = payment{p.from, p.nonce, p.tip * by}
	}
	return more
}

// parallel calls f for 0 to n-1 on all CPUs. A CPU that is slowed down by other
// programs gets fewer calls.
func parallel(n int, f func(int)) {
	const share = 16 // calls at a time
	var group sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for from := int(next.Add(share)) - share; from < n; from = int(next.Add(share)) - share {
				for i := from; i < min(from+share, n); i++ {
					f(i)
				}
			}
		})
	}
	group.Wait()
}
