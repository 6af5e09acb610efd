package main

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/memstore"
)

// held is a node that cannot be reached for sends, while on is true.
type held struct {
	*ethchain.Chain
	on bool
}

func (h *held) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	if h.on {
		return make([]eoa.Sent, len(raws))
	}
	return h.Chain.Send(ctx, raws)
}

// stepped is an executor on go-ethereum's chain, with a block after each step,
// and a clock that is as fast.
type stepped struct {
	t      *testing.T
	chain  *chain
	client *ethclient.Client
	node   *held
	now    time.Time
	store  eoa.Store
	e      *eoa.Executor
	owner  *ecdsa.PrivateKey
}

func (s *stepped) Now() time.Time { return s.now }

func newStepped(t *testing.T, owner, stranger *ecdsa.PrivateKey) *stepped {
	c, err := newChain(time.Hour, owner, stranger)
	require.NoError(t, err)
	t.Cleanup(c.close)
	s := &stepped{t: t, chain: c, client: c.dial(t), now: time.Now(), store: memstore.New(), owner: owner}
	node, err := ethchain.New(s.client.Client(), ethchain.Options{FinalityDepth: 2})
	require.NoError(t, err)
	s.node = &held{Chain: node}
	id, err := s.client.ChainID(t.Context())
	require.NoError(t, err)
	cfg := eoa.DefaultConfig()
	cfg.Now, cfg.Poll = s.Now, time.Second
	account := eoa.Account{ChainID: id.Uint64(), Address: crypto.PubkeyToAddress(owner.PublicKey)}
	s.e, err = eoa.New(cfg, account, s.store, s.node, eoa.NewKeySigner(id.Uint64(), owner))
	require.NoError(t, err)
	return s
}

// step runs the executor once and makes a block.
func (s *stepped) step() {
	s.t.Helper()
	_, err := s.e.Step(s.t.Context())
	require.NoError(s.t, err)
	s.chain.backend.Commit()
	s.now = s.now.Add(4 * time.Second)
}

// finish runs the executor until a request has ended.
func (s *stepped) finish(key string) eoa.Record {
	s.t.Helper()
	for range 200 {
		r, err := s.e.Get(s.t.Context(), key)
		require.NoError(s.t, err)
		if r.State.Terminal() {
			return r
		}
		s.step()
	}
	s.t.Fatalf("%q has not ended", key)
	return eoa.Record{}
}

func (s *stepped) submit(q eoa.Request) {
	s.t.Helper()
	_, err := s.e.Submit(s.t.Context(), q)
	require.NoError(s.t, err)
}

func transfer(key string) eoa.Request {
	return eoa.Request{Key: key, To: &common.Address{7}, Value: uint256.NewInt(1)}
}

// received returns how many transfers have arrived.
func (s *stepped) received() uint64 {
	wei, err := s.client.BalanceAt(s.t.Context(), common.Address{7}, nil)
	require.NoError(s.t, err)
	return wei.Uint64()
}

// authorize returns the owner's authorization, for an account with code.
func (s *stepped) authorize(code common.Address, nonce uint64) types.SetCodeAuthorization {
	auth, err := types.SignSetCode(s.owner, types.SetCodeAuthorization{Address: code, Nonce: nonce})
	require.NoError(s.t, err)
	return auth
}

// sendAs mines a transaction of another account.
func (s *stepped) sendAs(key *ecdsa.PrivateKey, tx types.TxData) common.Address {
	s.t.Helper()
	id, err := s.client.ChainID(s.t.Context())
	require.NoError(s.t, err)
	signed, err := types.SignNewTx(key, types.LatestSignerForChainID(id), tx)
	require.NoError(s.t, err)
	require.NoError(s.t, s.client.SendTransaction(s.t.Context(), signed))
	s.chain.backend.Commit()
	r, err := s.client.TransactionReceipt(s.t.Context(), signed.Hash())
	require.NoError(s.t, err)
	require.EqualValues(s.t, 1, r.Status)
	return r.ContractAddress
}

// go-ethereum's chain uses nonces of an account without its transactions: for
// its own authorization, for its authorization in another account's transaction,
// and for a contract that its code creates. Every transfer lands once.
func TestNoncesWithoutTransactions(t *testing.T) {
	owner, err := crypto.ToECDSA(crypto.Keccak256([]byte("owner")))
	require.NoError(t, err)
	other, err := crypto.ToECDSA(crypto.Keccak256([]byte("stranger")))
	require.NoError(t, err)
	s := newStepped(t, owner, other)
	gwei := big.NewInt(10_000_000_000)
	id, err := s.client.ChainID(t.Context())
	require.NoError(t, err)

	// The runtime code creates an empty contract: CREATE(0, 0, 0).
	runtime := common.Hex2Bytes("600060006000f000")
	init := append(common.Hex2Bytes("67"), append(runtime, common.Hex2Bytes("60005260086018f3")...)...)
	creator := s.sendAs(other, &types.DynamicFeeTx{ChainID: id, Gas: 200_000, GasFeeCap: gwei, GasTipCap: gwei, Data: init})
	code, err := s.client.CodeAt(t.Context(), creator, nil)
	require.NoError(t, err)
	require.Equal(t, runtime, code)

	s.submit(eoa.Request{Key: "own", Kind: eoa.SetCode, To: &common.Address{8}, Authorizations: []types.SetCodeAuthorization{s.authorize(creator, 1)}})
	s.submit(transfer("after own"))
	require.Equal(t, eoa.Final, s.finish("own").State)
	r := s.finish("after own")
	require.Equal(t, eoa.Final, r.State)
	require.Equal(t, uint64(2), r.Nonce)
	require.Len(t, r.Attempts, 1)

	s.node.on = true
	s.submit(transfer("during creation"))
	s.step()
	address := crypto.PubkeyToAddress(owner.PublicKey)
	s.sendAs(other, &types.DynamicFeeTx{ChainID: id, Nonce: 1, Gas: 200_000, GasFeeCap: gwei, GasTipCap: gwei, To: &address})
	s.node.on = false
	r = s.finish("during creation")
	require.Equal(t, eoa.Final, r.State)
	require.Equal(t, uint64(4), r.Nonce)

	s.node.on = true
	s.submit(transfer("during authorization"))
	s.step()
	s.sendAs(other, &types.SetCodeTx{ChainID: uint256.MustFromBig(id), Nonce: 2, Gas: 200_000, GasFeeCap: uint256.MustFromBig(gwei), GasTipCap: uint256.MustFromBig(gwei),
		To: common.Address{8}, AuthList: []types.SetCodeAuthorization{s.authorize(common.Address{}, 5)}})
	s.node.on = false
	r = s.finish("during authorization")
	require.Equal(t, eoa.Final, r.State)
	require.Equal(t, uint64(6), r.Nonce)
	require.Equal(t, uint64(3), s.received())
}
