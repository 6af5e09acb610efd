package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	_ "github.com/jamq/jamq/eoa/blobs"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/wait"
)

// executor returns one for the developer's account, whose bumps are soon, and its connection.
func (c *chain) executor(ctx context.Context, t *testing.T) (*eoa.Executor, *rpc.Client) {
	client, err := ethchain.Dial(ctx, c.url)
	require.NoError(t, err)
	answers, err := ethchain.New(client, ethchain.Options{FinalityDepth: 2})
	require.NoError(t, err)
	chain := cells{answers, t}
	cfg := eoa.DefaultConfig()
	cfg.Poll, cfg.Retry, cfg.Fees.StallTimeout = 20*time.Millisecond, 20*time.Millisecond, 300*time.Millisecond
	// The first commitment loads the trusted setup, which is slow with -race.
	cfg.Timeout = time.Minute
	e, err := eoa.New(cfg, developerAccount, memstore.New(), chain, eoa.NewKeySigner(developerAccount.ChainID, developer()))
	require.NoError(t, err)
	return e, client
}

// cells is a node that expects all blobs with cell proofs. go-ethereum's types
// check them, because its RPC would add missing ones.
type cells struct {
	*ethchain.Chain
	t *testing.T
}

func (c cells) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	for _, raw := range raws {
		tx := new(types.Transaction)
		require.NoError(c.t, tx.UnmarshalBinary(raw))
		if s := tx.BlobTxSidecar(); s != nil {
			require.EqualValues(c.t, types.BlobSidecarVersion1, s.Version)
			require.NoError(c.t, s.ValidateBlobCommitmentHashes(tx.BlobHashes()))
			require.NoError(c.t, kzg4844.VerifyCellProofs(s.Blobs, s.Commitments, s.Proofs))
		}
	}
	return c.Chain.Send(ctx, raws)
}

// developerAccount is on the simulated chain, whose id is always the same.
var developerAccount = eoa.Account{ChainID: 1337, Address: crypto.PubkeyToAddress(developer().PublicKey)}

// Blob and other transactions of one account take turns on go-ethereum's pools.
// Each lands once, and blob transactions land with their blobs.
func TestBlobs(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	c := newTestChain(t)
	e, client := c.executor(ctx, t)
	defer client.Close()
	done := make(chan struct{})
	running, stop := context.WithCancel(ctx)
	go func() { defer close(done); _ = e.Run(running) }()
	defer func() { stop(); <-done }()

	requests := make([]eoa.Request, 8)
	for i := range requests {
		requests[i] = eoa.Request{Key: fmt.Sprint(i), To: &developerAccount.Address, Value: uint256.NewInt(1)}
		if i%4 < 3 {
			blob := make([]byte, eoa.BlobSize)
			blob[31] = byte(i)
			requests[i].Kind, requests[i].Blobs = eoa.Blob, [][]byte{blob}
		}
	}
	_, err := e.Submit(ctx, requests...)
	require.NoError(t, err)
	for i := range requests {
		r, err := e.Wait(ctx, fmt.Sprint(i), eoa.Final)
		require.NoError(t, err, "%v", r.Reason)
		require.Equal(t, eoa.Final, r.State, r.Reason)
		require.EqualValues(t, i, r.Nonce)
		tx, _, err := c.dial(t).TransactionByHash(ctx, r.Tx)
		require.NoError(t, err)
		hashes, err := requests[i].BlobHashes()
		require.NoError(t, err)
		require.Equal(t, hashes, tx.BlobHashes())
		require.Equal(t, requests[i].Kind == eoa.Blob, tx.Type() == types.BlobTxType)
	}
	count, err := c.dial(t).NonceAt(ctx, developerAccount.Address, nil)
	require.NoError(t, err)
	require.EqualValues(t, len(requests), count)
}

// go-ethereum's pool takes a bump of a blob transaction, and the transaction that cancels it.
func TestBlobReplacement(t *testing.T) {
	ctx := wait.Context(t)
	c, err := newChain(time.Hour, developer())
	require.NoError(t, err)
	defer c.close()
	e, client := c.executor(ctx, t)
	defer client.Close()
	step := func(state string, met func(eoa.Record) bool) (r eoa.Record) {
		wait.Until(t, func() bool {
			_, err := e.Step(ctx)
			require.NoError(t, err)
			r, err = e.Get(ctx, "a")
			require.NoError(t, err)
			return met(r)
		}, "%s", state)
		return r
	}
	newest := func(attempts int) func(eoa.Record) bool {
		return func(r eoa.Record) bool { return len(r.Attempts) == attempts && r.Newest().Result == eoa.Accepted }
	}
	_, err = e.Submit(ctx, eoa.Request{Key: "a", Kind: eoa.Blob, To: &common.Address{7}, Blobs: [][]byte{make([]byte, eoa.BlobSize)}})
	require.NoError(t, err)
	r := step("bumped", newest(2))
	require.False(t, r.Attempts[1].Noop)
	require.NoError(t, e.Cancel(ctx, "a"))
	r = step("cancelled", func(r eoa.Record) bool { return r.Newest().Noop && r.Newest().Result == eoa.Accepted })
	c.backend.Commit()
	c.backend.Commit()
	c.backend.Commit()
	require.Equal(t, eoa.Cancelled, step("over", func(r eoa.Record) bool { return r.State.Terminal() }).State)
}
