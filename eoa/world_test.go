package eoa_test

import (
	"context"
	"crypto/ecdsa"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/eoa/memstore"
)

// world is everything that outlives the executor's process: the chain, the
// store and the time.
type world struct {
	chain   *eoatest.Chain
	store   eoa.Store
	now     time.Time
	account eoa.Account
	secret  *ecdsa.PrivateKey
	signer  eoa.Signer
	cfg     eoa.Config
	keys    []string // of all requests that must land exactly once
	request func(key string) eoa.Request
}

const testChain = 4359

// Now is an eoa.Config.Now.
func (w *world) Now() time.Time { return w.now }

func newWorld(t testing.TB, seed uint64, requests int) *world {
	var secret [32]byte
	binary.BigEndian.PutUint64(secret[24:], seed+1)
	key, err := crypto.ToECDSA(secret[:])
	require.NoError(t, err)
	w := &world{chain: eoatest.New(testChain, seed, 7), store: memstore.New(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		account: eoa.Account{ChainID: testChain, Address: crypto.PubkeyToAddress(key.PublicKey)}, secret: key, signer: eoa.NewKeySigner(testChain, key), request: request}
	w.cfg = eoa.DefaultConfig()
	w.cfg.CellProofs = false // which go-ethereum 1.15 does not know, nor eoatest
	w.cfg.Now, w.cfg.Poll, w.cfg.Fees.StallTimeout, w.cfg.Batch, w.cfg.Confirmations = w.Now, 2*time.Second, time.Minute, 4, 2
	for i := range requests {
		w.keys = append(w.keys, fmt.Sprintf("request %d", i))
	}
	return w
}

// request returns a request whose transaction is unique on the chain.
func request(key string) eoa.Request {
	return eoa.Request{Key: key, To: &common.Address{7}, Value: uint256.NewInt(1), Data: []byte(key)}
}

// executor returns a fresh one, on the world's own store and chain or on others.
func (w *world) executor(t testing.TB, store eoa.Store, chain eoa.Chain) *eoa.Executor {
	e, err := eoa.New(w.cfg, w.account, store, chain, w.signer)
	require.NoError(t, err)
	return e
}

// submitAll submits all requests, also those that were before.
func (w *world) submitAll(e *eoa.Executor) error {
	for _, key := range w.keys {
		if _, err := e.Submit(context.Background(), w.request(key)); err != nil {
			return err
		}
	}
	return nil
}

// tick passes a moment of the world: a block every three.
func (w *world) tick(i int) {
	const perTick = 700 * time.Millisecond
	if w.now = w.now.Add(perTick); i%3 == 0 {
		w.chain.Mine()
	}
}

// done reports whether all requests have ended, from the outbox, because
// decoding records with blobs is slow.
func (w *world) done(t testing.TB) bool {
	events, err := w.store.Events(context.Background(), w.account, 0, 100_000)
	require.NoError(t, err)
	over := 0
	for _, e := range events {
		switch e.Kind {
		case eoa.EventFinal, eoa.EventFailed, eoa.EventCancelled, eoa.EventSuperseded:
			if !strings.HasPrefix(e.Key, "eoa/") {
				over++
			}
		}
	}
	return over >= len(w.keys)
}

// finish runs the executor until all requests are over.
func (w *world) finish(t testing.TB, executors ...*eoa.Executor) {
	t.Helper()
	for i := range 6000 {
		if i%6 == 0 && w.done(t) {
			return
		}
		for _, e := range executors {
			_, err := e.Step(context.Background())
			if err != nil && !errors.Is(err, eoa.ErrHeld) && !errors.Is(err, eoa.ErrFenced) && !errors.Is(err, eoa.ErrConflict) {
				t.Logf("step: %v", err)
			}
		}
		w.tick(i)
	}
	w.dump(t)
	t.Fatal("not over after 6000 ticks")
}

func (w *world) dump(t testing.TB) {
	records, err := w.store.List(context.Background(), w.account, 0, 10_000)
	require.NoError(t, err)
	for i := range records {
		r := &records[i]
		t.Logf("%d %s %v nonce %d attempts %d height %d %q", r.ID, r.Key, r.State, r.Nonce, len(r.Attempts), r.Height, r.Reason)
		for _, a := range r.Attempts {
			t.Logf("    %v %v fees %v/%v %q void %t", a.Hash, a.Result, &a.Fees.Cap, &a.Fees.Tip, a.Why, a.Void)
		}
	}
}

// exactlyOnce checks the chain itself: every request is in it once, and nothing else with data is.
func (w *world) exactlyOnce(t testing.TB) {
	t.Helper()
	landed := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		if len(tx.Data()) > 0 {
			landed[string(tx.Data())]++
		}
	}
	for _, key := range w.keys {
		if landed[key] != 1 {
			w.dump(t)
			t.Fatalf("%q landed %d times", key, landed[key])
		}
		r, err := w.store.Get(context.Background(), w.account, key)
		require.NoError(t, err)
		require.Equal(t, eoa.Final, r.State, key)
	}
	require.Len(t, landed, len(w.keys))
	require.Zero(t, w.chain.Pooled(), "something is left in the pool")
	w.allTold(t)
}

// allTold checks that the outbox has the end of each request after its
// beginning, and consecutive numbers.
func (w *world) allTold(t testing.TB) {
	t.Helper()
	events, err := w.store.Events(context.Background(), w.account, 0, 100_000)
	require.NoError(t, err)
	mined, final := map[string]bool{}, map[string]int{}
	for i, e := range events {
		require.Equal(t, uint64(i+1), e.Seq)
		switch e.Kind {
		case eoa.EventMined:
			mined[e.Key] = true
		case eoa.EventFinal:
			require.True(t, mined[e.Key], "%s is final and was never mined", e.Key)
			final[e.Key]++
		}
	}
	for _, key := range w.keys {
		require.Equal(t, 1, final[key], key)
	}
}

// foreign returns a transaction of the account that the executor knows nothing of.
func (w *world) foreign(t testing.TB, nonce uint64) *types.Transaction {
	j := account.Job{Nonce: nonce, Gas: 21_000, Noop: true, Fees: eoa.Fees{Cap: *uint256.NewInt(1000), Tip: *uint256.NewInt(10)}}
	want, err := j.Transaction(w.account)
	require.NoError(t, err)
	tx, err := w.signer.Sign(context.Background(), w.account.Address, want)
	require.NoError(t, err)
	return tx
}

// told reports whether an event of a kind is in the outbox.
func (w *world) told(t testing.TB, kind eoa.EventKind) bool {
	events, err := w.store.Events(context.Background(), w.account, 0, 100_000)
	require.NoError(t, err)
	for i := range events {
		if events[i].Kind == kind {
			return true
		}
	}
	return false
}
