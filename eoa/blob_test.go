package eoa_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/repeat"
)

// blobRequest returns a request whose only blob begins with its key.
func blobRequest(key string) eoa.Request {
	q := request(key)
	q.Kind, q.Blobs = eoa.Blob, [][]byte{make([]byte, eoa.BlobSize)}
	copy(q.Blobs[0][1:], key)
	return q
}

// A blob transaction lands with its blobs. Its hash does not cover them, and a
// finished record drops them.
func TestBlob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	q := blobRequest("a")
	second := make([]byte, eoa.BlobSize)
	second[31] = 9
	q.Blobs = append(q.Blobs, second)
	w.submit(t, e, q)
	w.keys = []string{"a"}
	w.step(t, e)
	require.Less(t, len(w.get(t, "a").Attempts[0].Raw), 1000, "the blobs are kept once, with the request")
	w.finish(t, e)
	w.exactlyOnce(t)
	tx := w.chain.Transactions()[0]
	require.EqualValues(t, types.BlobTxType, tx.Type())
	require.Equal(t, q.Blobs[1], tx.BlobTxSidecar().Blobs[1][:])
	hashes, err := q.BlobHashes()
	require.NoError(t, err)
	require.Equal(t, hashes, tx.BlobHashes())
	r := w.get(t, "a")
	require.Equal(t, tx.Hash(), r.Tx)
	require.Empty(t, r.Blobs)
	require.Equal(t, *uint256.NewInt(6), r.Attempts[0].Fees.Blob)
	want := new(uint256.Int).SetUint64(r.Attempts[0].Gas*202 + 2*uint64(eoa.BlobSize)*6 + 1)
	require.Equal(t, *want, r.Attempts[0].Cost)
	_, err = e.Submit(context.Background(), q)
	require.NoError(t, err)
	q.Blobs[1][31]++
	_, err = e.Submit(context.Background(), q)
	require.ErrorIs(t, err, eoa.ErrKeyReused)
}

// Blob and other transactions of one account land exactly once under all
// faults. Nodes keep them in two pools, and an account is in one pool at a
// time.
func TestBlobsExactlyOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, repeat.First()+seed, 12)
			w.cfg.Fees.StallTimeout = 10 * time.Second
			w.chain.SetFaults(eoatest.Faults{DropRequest: 0.1, DropResponse: 0.1, Busy: 0.05, Garbage: 0.1, Refuse: 0.1, Lag: 0.1, LosePool: 0.1, Reorg: 0.1, ReorgDepth: 4})
			for i, key := range w.keys {
				q := request(key)
				if i/3%2 == 0 {
					q = blobRequest(key)
				}
				w.submit(t, w.executor(t, w.store, w.chain), q)
			}
			for i := range 300 {
				e := w.executor(t, w.store, w.chain)
				for range 7 { // and dies
					_, _ = e.Step(context.Background())
					w.tick(i)
				}
				w.now = w.now.Add(w.cfg.LeaseFor)
				if w.done(t) {
					break
				}
			}
			w.chain.SetFaults(eoatest.Faults{})
			w.finish(t, w.executor(t, w.store, w.chain))
			w.exactlyOnce(t)
		})
	}
}

// Requests behind one of the other pool wait with it, and no more blob
// transactions are in flight than nodes take.
func TestPoolsTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	w.cfg.Batch = 40
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("first"))
	for i := range 18 {
		w.submit(t, e, blobRequest(fmt.Sprint("blob ", i)))
	}
	w.submit(t, e, request("last"))
	w.keys = []string{"first", "last"}
	for i := range 18 {
		w.keys = append(w.keys, fmt.Sprint("blob ", i))
	}
	w.steps(t, e, 3)
	require.Equal(t, eoa.Broadcast, w.get(t, "first").State)
	for _, key := range []string{"blob 0", "last"} {
		require.Equal(t, eoa.Pending, w.get(t, key).State, key)
	}
	w.chain.SetPerBlock(1)
	w.chain.Mine()
	w.chain.SetPerBlock(0)
	w.steps(t, e, 3)
	require.Equal(t, eoa.Broadcast, w.get(t, "blob 15").State)
	for _, key := range []string{"blob 16", "last"} {
		require.Equal(t, eoa.Pending, w.get(t, key).State, key)
	}
	w.chain.SetPerBlock(100)
	w.finish(t, e)
	w.exactlyOnce(t)
}

// All three prices double, and the limit of each is a limit.
func TestBlobBump(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*eoa.Request, *eoa.Config)
		capped bool
	}{
		"no limit":         {func(*eoa.Request, *eoa.Config) {}, false},
		"request's limit":  {func(q *eoa.Request, _ *eoa.Config) { q.MaxBlobFee = uint256.NewInt(11) }, true},
		"operator's limit": {func(_ *eoa.Request, c *eoa.Config) { c.Fees.MaxBlobFee = uint256.NewInt(11) }, true},
		"price of gas":     {func(q *eoa.Request, _ *eoa.Config) { q.MaxFee = uint256.NewInt(403) }, true},
		"enough":           {func(q *eoa.Request, _ *eoa.Config) { q.MaxFee, q.MaxBlobFee = uint256.NewInt(404), uint256.NewInt(12) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			w.cfg.Fees.StallTimeout = 5 * time.Second
			q := blobRequest("a")
			c.change(&q, &w.cfg)
			e := w.executor(t, w.store, w.chain)
			w.chain.SetPerBlock(0)
			w.submit(t, e, q)
			w.steps(t, e, 10)
			r := w.get(t, "a")
			require.Equal(t, eoa.Fees{Cap: *uint256.NewInt(202), Tip: *uint256.NewInt(2), Blob: *uint256.NewInt(6)}, r.Attempts[0].Fees)
			require.Equal(t, c.capped, r.Capped)
			if !c.capped {
				require.Len(t, r.Attempts, 2)
				require.Equal(t, eoa.Fees{Cap: *uint256.NewInt(404), Tip: *uint256.NewInt(4), Blob: *uint256.NewInt(12)}, r.Attempts[1].Fees)
				require.Equal(t, eoa.Accepted, r.Attempts[1].Result)
			}
			w.chain.SetPerBlock(10)
			w.steps(t, e, 60)
			require.Equal(t, eoa.Final, w.get(t, "a").State)
		})
	}
}

// A blob transaction is cancelled by one with one blob of zeros, and replaced
// only by another blob transaction.
func TestCancelAndReplaceBlob(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, blobRequest("a"))
	w.submit(t, e, blobRequest("b"))
	w.submit(t, e, request("c"))
	w.steps(t, e, 2)
	require.ErrorIs(t, e.Replace(ctx, "a", request("x")), eoa.ErrInvalidRequest)
	require.ErrorIs(t, e.Replace(ctx, "c", blobRequest("x")), eoa.ErrInvalidRequest)
	crossing := request("x")
	require.NoError(t, w.store.Order(ctx, w.account, w.now, eoa.Order{Kind: account.OrderReplace, Key: "a", Payload: &crossing}))
	require.NoError(t, e.Replace(ctx, "b", blobRequest("y")))
	w.steps(t, e, 2)
	require.Equal(t, eoa.Blob, w.get(t, "a").Kind)
	require.NoError(t, e.Cancel(ctx, "a"))
	w.steps(t, e, 2)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 90)
	require.Equal(t, eoa.Cancelled, w.get(t, "a").State)
	for _, key := range []string{"b", "c"} {
		require.Equal(t, eoa.Final, w.get(t, key).State)
	}
	txs := w.chain.Transactions()
	require.Len(t, txs, 3)
	require.Equal(t, []kzg4844.Blob{{}}, txs[0].BlobTxSidecar().Blobs)
	require.Empty(t, txs[0].Data())
	require.Equal(t, w.account.Address, *txs[0].To())
	require.Equal(t, "y", string(txs[1].Data()))
	require.Equal(t, "c", string(txs[2].Data()))
}

// If a node refuses the replacement of a request's blobs, the old attempt is
// sent again with the old blobs, and lands.
func TestReplacedBlobsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	old, other := blobRequest("old"), blobRequest("other")
	w.submit(t, e, old)
	w.steps(t, e, 2)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if string(tx.Data()) == "other" {
			return "replacement transaction underpriced"
		}
		return ""
	})
	require.NoError(t, e.Replace(context.Background(), "old", other))
	w.steps(t, e, 2)
	require.Len(t, w.get(t, "old").Attempts, 2)
	require.Equal(t, other.Blobs, w.get(t, "old").Blobs)
	w.chain.LosePool()
	w.now = w.now.Add(w.cfg.Rebroadcast)
	e = w.executor(t, w.store, w.chain)
	w.now = w.now.Add(w.cfg.LeaseFor)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	r := w.get(t, "old")
	require.Equal(t, eoa.Final, r.State)
	require.Empty(t, r.Attempts[0].Blobs)
	require.Empty(t, r.Attempts[0].Proofs)
	require.Equal(t, old.Blobs[0], w.chain.Transactions()[0].BlobTxSidecar().Blobs[0][:])
}

// The nonce of a blob transaction that nodes refuse for good is filled by another
// blob transaction.
func TestRefusedBelowBlobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if string(tx.Data()) == "bad" {
			return "intrinsic gas too low: gas 21000, minimum needed 21064"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, blobRequest("a"))
	w.submit(t, e, blobRequest("bad"))
	w.submit(t, e, blobRequest("b"))
	w.steps(t, e, 60)
	bad := w.get(t, "bad")
	require.True(t, bad.Newest().Noop)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Failed, w.get(t, "bad").State)
	require.Equal(t, eoa.Final, w.get(t, "b").State)
	txs := w.chain.Transactions()
	require.Len(t, txs, 3)
	require.EqualValues(t, types.BlobTxType, txs[1].Type())
	require.Empty(t, txs[1].Data())
}

// While the price of blobs is unknown, blob requests wait, no event is
// recorded, and other requests go on.
func TestNoPriceOfBlobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	w.chain.SetBlobFee(0)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, blobRequest("a"))
	w.submit(t, e, request("b"))
	w.steps(t, e, 60)
	require.Equal(t, eoa.Pending, w.get(t, "a").State)
	require.Equal(t, eoa.Final, w.get(t, "b").State)
	w.chain.SetBlobFee(3)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
}

// A request whose limit for blobs is too low waits with that reason, however high
// its limit for gas is.
func TestLimitBelowThePriceOfBlobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	q := blobRequest("a")
	q.MaxBlobFee = uint256.NewInt(2)
	w.submit(t, e, q)
	w.steps(t, e, 2)
	require.Equal(t, eoa.Pending, w.get(t, "a").State)
	require.Equal(t, "the limit for blobs is below their price of 3 wei", w.get(t, "a").Reason)
	w.chain.SetBlobFee(1)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
}

// rewriter is a signer that signs, or gives back, something else than it was asked.
type rewriter struct {
	eoa.Signer
	asked, given func(*types.Transaction) *types.Transaction
}

func (r rewriter) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	signed, err := r.Signer.Sign(ctx, a, r.asked(tx))
	return r.given(signed), err
}

// Only the hashes of the blobs are signed. The executor ignores other data in
// the signer's answer, and refuses other hashes.
func TestBlobSigner(t *testing.T) {
	t.Parallel()
	same := func(tx *types.Transaction) *types.Transaction { return tx }
	bare := func(tx *types.Transaction) *types.Transaction { return tx.WithoutBlobTxSidecar() }
	junk := func(tx *types.Transaction) *types.Transaction {
		return tx.WithBlobTxSidecar(&types.BlobTxSidecar{Blobs: make([]kzg4844.Blob, 1), Commitments: make([]kzg4844.Commitment, 1), Proofs: make([]kzg4844.Proof, 1)})
	}
	other := func(tx *types.Transaction) *types.Transaction {
		return types.NewTx(&types.BlobTx{ChainID: uint256.MustFromBig(tx.ChainId()), Nonce: tx.Nonce(), Gas: tx.Gas(), To: *tx.To(), Value: uint256.MustFromBig(tx.Value()), Data: tx.Data(),
			GasTipCap: uint256.MustFromBig(tx.GasTipCap()), GasFeeCap: uint256.MustFromBig(tx.GasFeeCap()), BlobFeeCap: uint256.MustFromBig(tx.BlobGasFeeCap()), BlobHashes: []common.Hash{{1}}})
	}
	for name, c := range map[string]struct {
		asked, given func(*types.Transaction) *types.Transaction
		ok           bool
	}{"honest": {same, same, true}, "bare": {bare, bare, true}, "junk": {same, junk, true}, "other hashes": {other, same, false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			e, err := eoa.New(w.cfg, w.account, w.store, w.chain, rewriter{w.signer, c.asked, c.given})
			require.NoError(t, err)
			w.submit(t, e, blobRequest("a"))
			w.steps(t, e, 60)
			r := w.get(t, "a")
			if !c.ok {
				require.Equal(t, eoa.Pending, r.State)
				require.Contains(t, r.Reason, eoa.ErrSigner.Error())
				return
			}
			require.Equal(t, eoa.Final, r.State)
		})
	}
}

func TestBlobValidate(t *testing.T) {
	t.Parallel()
	edit := func(f func(*eoa.Request)) eoa.Request {
		q := blobRequest("a")
		f(&q)
		return q
	}
	plain := request("a")
	plain.MaxBlobFee = uint256.NewInt(1)
	order := common.FromHex("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001")
	for name, q := range map[string]eoa.Request{
		"To is nil":          edit(func(q *eoa.Request) { q.To = nil }),
		"0 blobs":            edit(func(q *eoa.Request) { q.Blobs = nil }),
		"7 blobs":            edit(func(q *eoa.Request) { q.Blobs = make([][]byte, 7) }),
		"131071 bytes":       edit(func(q *eoa.Request) { q.Blobs[0] = q.Blobs[0][1:] }),
		"131073 bytes":       edit(func(q *eoa.Request) { q.Blobs[0] = append(q.Blobs[0], 0) }),
		"blob 0: the number": edit(func(q *eoa.Request) { copy(q.Blobs[0][eoa.BlobSize-32:], order) }),
		"1 blobs or":         edit(func(q *eoa.Request) { q.Kind = eoa.DynamicFee }),
		"price limit":        plain,
	} {
		err := q.Validate()
		require.ErrorIs(t, err, eoa.ErrInvalidRequest)
		require.ErrorContains(t, err, name)
	}
	order[31]--
	greatest := edit(func(q *eoa.Request) { copy(q.Blobs[0][eoa.BlobSize-32:], order) })
	require.NoError(t, greatest.Validate())
	_, err := greatest.BlobHashes()
	require.NoError(t, err)
}

// A request that is requeued, because another transaction took its nonce, keeps
// its blobs.
func TestRequeuedBlob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	w.cfg.Requeue = true
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	q := blobRequest("a")
	w.submit(t, e, q)
	w.steps(t, e, 2)
	w.chain.Inject(w.foreign(t, 0))
	w.chain.SetPerBlock(10)
	w.steps(t, e, 150)
	old := w.get(t, "a")
	require.Equal(t, eoa.Superseded, old.State)
	require.Empty(t, old.Blobs)
	require.Equal(t, eoa.Final, w.get(t, fmt.Sprintf("a~%d", old.ID)).State)
	txs := w.chain.Transactions()
	require.Len(t, txs, 2)
	require.Equal(t, q.Blobs[0], txs[1].BlobTxSidecar().Blobs[0][:])
}

// A request that was refused keeps its nonce, and is sent again with its blobs.
func TestRefusedBlob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	refusing := true
	w.chain.SetRefuse(func(*types.Transaction) string {
		if refusing {
			return "insufficient funds for gas * price + value"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, blobRequest("a"))
	w.steps(t, e, 1)
	r := w.get(t, "a")
	require.Equal(t, eoa.Prepared, r.State)
	require.Equal(t, eoa.Rejected, r.Attempts[0].Result)
	refusing = false
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
	require.Equal(t, r.Attempts[0].Hash, w.get(t, "a").Tx)
}

// A reorganization removes a foreign transaction and transactions of both pools
// above it. The nonce is filled by a transaction for the pool of the next one.
// The other pool waits its turn, so that it does not move the account.
func TestGapBelowBothSorts(t *testing.T) {
	t.Parallel()
	for _, blobFirst := range []bool{false, true} {
		t.Run(fmt.Sprint(blobFirst), func(t *testing.T) {
			w := newWorld(t, 1, 2)
			requests := []eoa.Request{request(w.keys[0]), blobRequest(w.keys[1])}
			if blobFirst {
				requests = []eoa.Request{blobRequest(w.keys[0]), request(w.keys[1])}
			}
			e := w.executor(t, w.store, w.chain)
			w.chain.Inject(w.foreign(t, 0))
			w.chain.Mine()
			for i, q := range requests {
				w.submit(t, e, q)
				for n := 0; w.get(t, q.Key).State < eoa.Mined; n++ {
					require.Less(t, n, 10)
					w.step(t, e)
					w.chain.Mine()
				}
				require.EqualValues(t, i+1, w.get(t, q.Key).Nonce)
			}
			w.chain.Reorg(7)
			w.chain.LosePool()
			w.finish(t, e)
			w.exactlyOnce(t)
			filler := w.chain.Transactions()[0]
			require.Zero(t, filler.Nonce())
			require.Equal(t, blobFirst, filler.Type() == types.BlobTxType)
		})
	}
}
