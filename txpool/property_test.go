package txpool

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

// The invariants hold after every step of any sequence of calls on a small pool, and every transaction that was added leaves
// by exactly one event.
func TestInvariantsUnderRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		inside := make(map[common.Hash]bool)
		cfg := DefaultConfig(chainID)
		cfg.MaxPending = rapid.IntRange(1, 6).Draw(t, "pending")
		cfg.MaxQueued = rapid.IntRange(1, 4).Draw(t, "queued")
		cfg.MaxPerSender = rapid.IntRange(1, 5).Draw(t, "sender")
		cfg.Observe = func(e Event) {
			if e.Kind == Added == inside[e.Tx.Hash()] {
				t.Fatalf("%v of %s, which is in the pool: %v", e.Kind, e.Tx.Hash(), inside[e.Tx.Hash()])
			}
			inside[e.Tx.Hash()] = e.Kind == Added
		}
		p, err := New(cfg, w)
		if err != nil {
			t.Fatal(err)
		}
		var leases []*Lease
		sender := rapid.IntRange(0, 4)
		pickLease := func(t *rapid.T) *Lease {
			if len(leases) == 0 {
				t.Skip("no lease")
			}
			return leases[rapid.IntRange(0, len(leases)-1).Draw(t, "lease")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				tx := tx(sender.Draw(t, "sender"), rapid.Uint64Range(0, 6).Draw(t, "nonce"), rapid.Int64Range(1, 12).Draw(t, "tip"))
				err := p.Add(tx)
				if (err == nil) != (p.Get(tx.Hash()) != nil) && err != ErrAlreadyKnown {
					t.Fatalf("Add said %v, stored: %v", err, p.Get(tx.Hash()) != nil)
				}
			},
			"drain": func(t *rapid.T) {
				leases = append(leases, p.Drain(Budget{Count: rapid.IntRange(0, 4).Draw(t, "count")}))
			},
			"commit": func(t *rapid.T) {
				l := pickLease(t)
				for _, tx := range l.Transactions() {
					from, _ := types.Sender(signer, tx)
					w.nonce[from] = max(w.nonce[from], tx.Nonce()+1)
				}
				_ = l.Commit()
			},
			"release": func(t *rapid.T) { _ = pickLease(t).Release() },
			"reject": func(t *rapid.T) {
				l := pickLease(t)
				if txs := l.Transactions(); len(txs) > 0 {
					_ = l.Reject(txs[0].Hash(), ErrIntrinsicGas)
				}
			},
			"reset": func(t *rapid.T) {
				a := addr(sender.Draw(t, "sender"))
				w.nonce[a] = rapid.Uint64Range(0, 3).Draw(t, "nonce")
				w.wealth[a] = uint256.NewInt(rapid.Uint64Range(0, 40*txGas*gwei).Draw(t, "balance"))
				p.Reset(nil)
			},
			"": func(t *rapid.T) {
				if err := p.core.check(); err != nil {
					t.Fatal(err)
				}
				for hash, in := range inside {
					if in != (p.Get(hash) != nil) {
						t.Fatalf("by its events %s is in the pool: %v", hash, in)
					}
				}
			},
		})
	})
}

// Whatever comes over the wire is an error or a transaction, and never a panic.
func FuzzAddRaw(f *testing.F) {
	for _, data := range []types.TxData{
		&types.LegacyTx{GasPrice: big.NewInt(2 * gwei), Gas: txGas, To: &common.Address{1}},
		&types.AccessListTx{ChainID: chainID, GasPrice: big.NewInt(2 * gwei), Gas: 30_000, AccessList: types.AccessList{{StorageKeys: []common.Hash{{1}}}}},
		&types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: 100_000, AuthList: []types.SetCodeAuthorization{{}}},
	} {
		raw, err := sign(0, data).MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := newPool(t, newWorld(), nil)
		hash, err := p.AddRaw(raw)
		if (err == nil) != (p.Get(hash) != nil) {
			t.Fatalf("AddRaw said %v, stored: %v", err, p.Get(hash) != nil)
		}
		if err := p.core.check(); err != nil {
			t.Fatal(err)
		}
	})
}
