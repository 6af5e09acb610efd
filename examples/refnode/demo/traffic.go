package demo

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/evmrollup/devkeys"
)

// counterCode adds one to storage slot 0 and logs the new value under the topic counterTopic.
var counterCode = []byte{
	0x5f, 0x54, 0x60, 0x01, 0x01, // PUSH0 SLOAD PUSH1 1 ADD
	0x80, 0x5f, 0x55, // DUP1 PUSH0 SSTORE
	0x5f, 0x52, // PUSH0 MSTORE
	0x60, counterTopic, 0x60, 0x20, 0x5f, 0xa1, // PUSH1 topic PUSH1 32 PUSH0 LOG1
	0x00, // STOP
}

const counterTopic = 0x07

// counterInit returns the init code of counterCode. It copies the bytes after
// its first ten into memory and returns them.
func counterInit() []byte {
	size := byte(len(counterCode))
	return append([]byte{0x60, size, 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3, 0x00}, counterCode...)
}

// kind is the kind of a transaction of the demonstration.
type kind int

const (
	deploy kind = iota
	call
	transfer
	delegate
)

// planned is a signed transaction with its expected effect.
type planned struct {
	tx   *types.Transaction
	kind kind
	from common.Address
	to   common.Address // of a transfer
}

// plan is the traffic of one demonstration.
type plan struct {
	txs     []planned
	counter common.Address // the deployed contract
	calls   uint64
	sent    map[common.Address]uint64 // transactions by sender
}

// traffic signs n transactions of all types from all accounts, starting at the
// given nonces. The first deploys a contract, a third of the others call it,
// and the rest are transfers. A few delegate an account's code (EIP-7702).
func traffic(accounts []devkeys.Account, nonces map[common.Address]uint64, chainID *big.Int, n int) (*plan, error) {
	signer := types.LatestSignerForChainID(chainID)
	p := &plan{sent: make(map[common.Address]uint64)}
	p.counter = crypto.CreateAddress(accounts[0].Address, nonces[accounts[0].Address])
	for i := range n {
		a := accounts[i%len(accounts)]
		nonce := nonces[a.Address] + p.sent[a.Address]
		t := planned{kind: transfer, from: a.Address, to: recipient(a.Address, nonce)}
		switch {
		case i == 0:
			t.kind = deploy
		case i%17 == 8:
			t.kind = delegate
		case i%3 == 1:
			t.kind = call
			p.calls++
		}
		data, err := p.data(t, i, nonce, chainID, a)
		if err != nil {
			return nil, err
		}
		if t.tx, err = types.SignNewTx(a.Key, signer, data); err != nil {
			return nil, fmt.Errorf("demo: sign: %w", err)
		}
		p.sent[a.Address]++
		p.txs = append(p.txs, t)
	}
	return p, nil
}

// recipient returns an address that receives only this one transfer, even on a
// node that has run demonstrations before.
func recipient(from common.Address, nonce uint64) common.Address {
	return common.BytesToAddress(crypto.Keccak256([]byte("jamq demo recipient"), from[:], new(big.Int).SetUint64(nonce).Bytes()))
}

var (
	tip    = big.NewInt(params.GWei)
	feeCap = big.NewInt(20 * params.GWei)
	amount = big.NewInt(params.GWei)
)

const demoGas = 200_000

// data returns the unsigned transaction. Its type depends on i, so that all
// types occur.
func (p *plan) data(t planned, i int, nonce uint64, chainID *big.Int, a devkeys.Account) (types.TxData, error) {
	to, value, input := &t.to, amount, []byte(nil)
	switch t.kind {
	case deploy:
		to, value, input = nil, new(big.Int), counterInit()
	case call:
		to, value = &p.counter, new(big.Int)
	case delegate:
		return delegation(t, nonce, chainID, a, p.counter)
	}
	switch i % 3 {
	case 0:
		return &types.LegacyTx{Nonce: nonce, GasPrice: feeCap, Gas: demoGas, To: to, Value: value, Data: input}, nil
	case 1:
		list := types.AccessList{{Address: p.counter, StorageKeys: []common.Hash{{}}}}
		return &types.AccessListTx{ChainID: chainID, Nonce: nonce, GasPrice: feeCap, Gas: demoGas, To: to, Value: value, Data: input, AccessList: list}, nil
	}
	return &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: tip, GasFeeCap: feeCap, Gas: demoGas, To: to, Value: value, Data: input}, nil
}

// delegation returns a transaction that makes a fresh account run the counter's
// code. The account's key is derived from the sender and nonce. The transaction
// transfers nothing.
func delegation(t planned, nonce uint64, chainID *big.Int, a devkeys.Account, code common.Address) (types.TxData, error) {
	seed := crypto.Keccak256([]byte("jamq demo delegate"), a.Address[:], new(big.Int).SetUint64(nonce).Bytes())
	key, err := crypto.ToECDSA(seed)
	if err != nil {
		return nil, fmt.Errorf("demo: delegate key: %w", err)
	}
	id, _ := uint256.FromBig(chainID)
	auth, err := types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *id, Address: code})
	if err != nil {
		return nil, fmt.Errorf("demo: sign delegation: %w", err)
	}
	return &types.SetCodeTx{
		ChainID: id, Nonce: nonce, GasTipCap: uint256.MustFromBig(tip), GasFeeCap: uint256.MustFromBig(feeCap), Gas: demoGas,
		To: t.to, AuthList: []types.SetCodeAuthorization{auth},
	}, nil
}
