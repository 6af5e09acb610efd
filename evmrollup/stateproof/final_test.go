package stateproof

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/statedb"
)

// final returns proofs of the accounts of state under a final block, and the trust to verify them.
func final(t testing.TB) (proofs map[common.Address]*FinalAccount, trust *proof.Trust) {
	t.Helper()
	const rollup = 7
	store := statedb.NewStore()
	root := fill(t, store)
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	var err error
	cfg.Genesis, err = service.Genesis{Service: rollup}.Entries()
	require.NoError(t, err)
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	chain.Advance()
	context, err := chain.Context(1)
	require.NoError(t, err)
	header := service.EncodeHeader(proof.Commitment{Number: 1, Hash: common.Hash{1}, PostRoot: root})
	require.NoError(t, chain.Submit(jamtest.NewPackage(rollup, context, header), 0, 0))
	for range 8 {
		chain.Advance()
	}
	block, err := chain.Prove(rollup, 1, jamtest.ByStorage)
	require.NoError(t, err)
	trust, err = chain.Trust(rollup)
	require.NoError(t, err)
	proofs = make(map[common.Address]*FinalAccount)
	for _, addr := range []common.Address{contract, plain, absent} {
		account, err := Prove(func() (*statedb.View, error) { return store.View(root) }, addr, []string{"0x0", "0x64"})
		require.NoError(t, err)
		proofs[addr] = &FinalAccount{Block: block, Account: account}
	}
	return proofs, trust
}

func encode(t testing.TB, f *FinalAccount) []byte {
	t.Helper()
	raw, err := json.Marshal(f)
	require.NoError(t, err)
	return raw
}

// A reader with the trust learns the account, and no other.
func TestFinalAccount(t *testing.T) {
	proofs, trust := final(t)
	for addr, f := range proofs {
		read, err := ParseFinal(encode(t, f))
		require.NoError(t, err)
		r, err := read.Verify(trust)
		require.NoError(t, err)
		require.Equal(t, addr, read.Account.Address)
		require.Len(t, r.Steps, 4)
		require.Contains(t, r.Steps[3], addr.Hex())
	}
	honest := proofs[contract]
	// A valid proof of an account in a state that no block has.
	store := statedb.NewStore()
	view, err := store.View(statedb.EmptyRoot)
	require.NoError(t, err)
	require.NoError(t, view.SetAccount(contract, statedb.Account{Exists: true, Nonce: 1, Balance: uint256.NewInt(1 << 60), CodeHash: types.EmptyCodeHash}))
	lie, err := view.Commit()
	require.NoError(t, err)
	rich := answer(t, store, lie, contract)
	require.NoError(t, rich.Verify(lie))
	for name, c := range map[string]struct {
		forge func(f *FinalAccount)
		want  error
	}{
		"balance":              {func(f *FinalAccount) { f.Account.Balance = (*hexutil.Big)(common.Big3) }, ErrInvalid},
		"nonce":                {func(f *FinalAccount) { f.Account.Nonce++ }, ErrInvalid},
		"slot":                 {func(f *FinalAccount) { f.Account.StorageProof[0].Value = (*hexutil.Big)(common.Big3) }, ErrInvalid},
		"another address":      {func(f *FinalAccount) { f.Account.Address = plain }, ErrInvalid},
		"another state":        {func(f *FinalAccount) { f.Account = rich }, ErrInvalid},
		"another root":         {func(f *FinalAccount) { f.Account.StorageHash = common.Hash{1} }, ErrInvalid},
		"no account":           {func(f *FinalAccount) { f.Account = nil }, ErrInvalid},
		"no block":             {func(f *FinalAccount) { f.Block = nil }, ErrInvalid},
		"too few signatures":   {func(f *FinalAccount) { f.Block.Finality.Signatures = f.Block.Finality.Signatures[1:] }, proof.ErrFinality},
		"another block":        {func(f *FinalAccount) { f.Block.Claim.Number++ }, proof.ErrState},
		"a commitment of ours": {func(f *FinalAccount) { f.Block.Commitment[8+32+32] ^= 1 }, proof.ErrState},
	} {
		var f *FinalAccount
		require.NoError(t, json.Unmarshal(encode(t, honest), &f))
		c.forge(f)
		r, err := f.Verify(trust)
		require.ErrorIs(t, err, c.want, name)
		require.Nil(t, r.Transaction)
		require.Zero(t, r.Commitment, name)
	}
}

// An answer whose text is not the node's is refused, whatever it says.
func TestParseFinalIsStrict(t *testing.T) {
	proofs, _ := final(t)
	text := string(encode(t, proofs[contract]))
	_, err := ParseFinal([]byte(strings.ReplaceAll(text, ",", ",\n ")))
	require.NoError(t, err, "white space is free")
	for name, bad := range map[string]string{
		"nothing":        ``,
		"null":           `null`,
		"no account":     `{"block":` + string(must(json.Marshal(proofs[contract].Block))) + `}`,
		"other name":     strings.Replace(text, `"account":{`, `"Account":{`, 1),
		"unknown name":   strings.Replace(text, `"account":{`, `"account":{"extra":0,`, 1),
		"repeated name":  strings.Replace(text, `"nonce":`, `"nonce":"0x0","nonce":`, 1),
		"trailing":       text + "0",
		"number as text": strings.Replace(text, `"balance":"0x`, `"balance":"0X`, 1),
		"too large":      text + strings.Repeat(" ", MaxFinal),
	} {
		_, err := ParseFinal([]byte(bad))
		require.True(t, errors.Is(err, ErrInvalid) || errors.Is(err, proof.ErrMalformed), "%s: %v", name, err)
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// Of an honest proof with one changed byte nothing is accepted.
func TestMutatedFinalAccount(t *testing.T) {
	proofs, trust := final(t)
	random := rand.New(rand.NewPCG(3, 4))
	for _, addr := range []common.Address{contract, plain, absent} {
		honest := encode(t, proofs[addr])
		for range 2000 {
			changed := slices.Clone(honest)
			at := random.IntN(len(changed))
			changed[at] ^= 1 << random.IntN(8)
			if f, err := ParseFinal(changed); err == nil {
				_, err = f.Verify(trust)
				require.Error(t, err, "byte %d: %s", at, changed[max(0, at-30):at+1])
			}
		}
	}
}
